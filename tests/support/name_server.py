# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""A DNS server on its own loopback address, for programs that use only this server.

A program runs in a mount namespace in which /etc/resolv.conf and /etc/hosts are files of the test.
Making the namespace needs root or CAP_SYS_ADMIN.
"""

import contextlib
import pathlib
import random
import socket
import struct
import subprocess
import threading

# Values that a record may have instead of addresses.
SILENT = "silent"    # never an answer
FAILS = "fails"      # SERVFAIL
HALF = "half"        # SERVFAIL for IPv4, and an empty answer for IPv6, LATER_S later
LATER_S = 0.2
NO_ERROR, SERVFAIL, NXDOMAIN = 0, 2, 3
A, AAAA = 1, 28


class NameServer:
    """`records`: name -> list of IPv4 addresses, or one of these values. Others do not exist."""

    def __init__(self, directory, records, options=""):
        self.records = dict(records)
        self.asked = []  # requested names in lower case, in their order
        self._socket = self._bind()
        self.address = self._socket.getsockname()[0]
        directory = pathlib.Path(directory)
        directory.mkdir(parents=True, exist_ok=True)
        self._files = {"/etc/resolv.conf": directory / "resolv.conf",
                       "/etc/hosts": directory / "hosts"}
        self.write_resolv_conf(f"nameserver {self.address}\n{options}\n")
        self.write_hosts("")
        threading.Thread(target=self._serve, daemon=True).start()

    @staticmethod
    def _bind():
        while True:
            here = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            address = f"127.{random.randint(1, 254)}.{random.randint(0, 254)}.53"
            try:
                here.bind((address, 53))
                return here
            except OSError as error:
                here.close()
                if error.errno != 98:  # address in use
                    raise

    def write_resolv_conf(self, text):
        self._files["/etc/resolv.conf"].write_text(text)

    def write_hosts(self, text):
        self._files["/etc/hosts"].write_text("127.0.0.1 localhost\n" + text)

    def prefix(self):
        """Returns the beginning of a command line whose program uses this server."""
        subprocess.run(["unshare", "-m", "true"], check=True, capture_output=True)
        mounts = " && ".join(f"mount --bind '{file.resolve()}' {place}"
                             for place, file in self._files.items())
        return ["unshare", "-m", "sh", "-c", mounts + ' && exec "$@"', "sh"]

    def close(self):
        self._socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _serve(self):
        while True:
            try:
                query, peer = self._socket.recvfrom(4096)
            except OSError:
                return
            self._answer(query, peer)

    def _send(self, answer, peer):
        with contextlib.suppress(OSError):  # the socket may be closed by now
            self._socket.sendto(answer, peer)

    def _answer(self, query, peer):
        labels, at = [], 12
        while query[at]:
            labels.append(query[at + 1:at + 1 + query[at]].decode().lower())
            at += 1 + query[at]
        kind, = struct.unpack("!H", query[at + 1:at + 3])
        question = query[12:at + 5]
        name = ".".join(labels)
        self.asked.append(name)
        known = self.records.get(name)
        if known == SILENT:
            return
        fails = known == FAILS or (known == HALF and kind == A)
        code = NXDOMAIN if known is None else SERVFAIL if fails else NO_ERROR
        found = known if code == NO_ERROR and kind == A else []
        head = query[:2] + struct.pack("!HHHHH", 0x8180 | code, 1, len(found), 0, 0)
        answer = head + question + b"".join(
            struct.pack("!HHHIH", 0xc00c, A, 1, 5, 4) + socket.inet_aton(address)
            for address in found)
        if known == HALF and kind == AAAA:
            threading.Timer(LATER_S, self._send, (answer, peer)).start()
        else:
            self._send(answer, peer)
