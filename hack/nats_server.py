# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Starts Debian's nats-server on a free port. It also has a small client for tests that subscribe,
forge messages or check the server's permissions."""

import contextlib
import itertools
import json
import os
import pathlib
import shutil
import socket
import subprocess
import time

from stack import freeze, thaw

READY_S = 15
PIECE_BYTES = 1 << 16

# Linux gives ports from 32768 on to connections and to listeners on port 0. This range is below, so
# Linux gives a chosen port to no other process before its use. Several processes run tests in
# parallel, so each begins at another port.
FIRST_PORT, PORTS = 12000, 20000
_next_port = itertools.count(os.getpid() * 997)


def free_port():
    """Returns a port without a listener, which no recent call in this process has returned."""
    for number in itertools.islice(_next_port, PORTS):
        port = FIRST_PORT + number % PORTS
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise RuntimeError(f"no port from {FIRST_PORT} to {FIRST_PORT + PORTS - 1} is free")


class NatsServer:
    """A nats-server that can be killed, frozen and started again on the same port. `config` goes
    into its configuration file: permissions, TLS, limits. Use it as a context manager."""

    host = "127.0.0.1"

    def __init__(self, logs, config=""):
        self.logs = pathlib.Path(logs)
        self.config = config
        self.port = free_port()
        self.process = None
        # Debian installs it in /usr/sbin, which is not in every user's PATH.
        self.program = shutil.which("nats-server") or "/usr/sbin/nats-server"

    @property
    def url(self):
        return f"nats://{self.host}:{self.port}"

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.kill()

    def start(self):
        """Returns once the server accepts connections."""
        self.logs.mkdir(parents=True, exist_ok=True)
        file = self.logs / f"nats-{self.port}.conf"
        file.write_text(f'listen: "{self.host}:{self.port}"\n{self.config}\n')
        with open(self.logs / f"nats-{self.port}.log", "ab") as log:
            self.process = subprocess.Popen(
                [self.program, "-c", str(file)], stdout=log, stderr=log, process_group=0)
        deadline = time.monotonic() + READY_S
        while True:
            with contextlib.suppress(OSError):
                socket.create_connection((self.host, self.port), timeout=1).close()
                return
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise RuntimeError(f"nats-server does not start:\n{self.log()}")
            time.sleep(0.02)

    def kill(self):
        """Ends the server with SIGKILL, if it runs."""
        if self.process is None:
            return
        self.process.kill()
        self.process.wait()
        self.process = None

    def freeze(self):
        """Stops its threads. It keeps its connections, but answers nothing."""
        freeze(self.process)

    def thaw(self):
        thaw(self.process)

    def whole_log(self):
        return (self.logs / f"nats-{self.port}.log").read_text(errors="replace")

    def log(self):
        return self.whole_log()[-4000:]


class NatsClient:
    """One connection to the host and port of any server. It reads from the connection only during
    its calls. `errors` has the errors of the server, for example about permissions. Use it as a
    context manager."""

    def __init__(self, server, user=None, password=None):
        self.errors = []
        self._messages = []
        self._buffer = b""
        self._next_id = 1
        self._socket = socket.create_connection((server.host, server.port), timeout=READY_S)
        self.info = json.loads(self._line().removeprefix(b"INFO "))
        options = {"verbose": False, "pedantic": False, "name": "test", "lang": "python",
                   "version": "1"}
        if user is not None:
            options |= {"user": user, "pass": password}
        self._socket.sendall(b"CONNECT " + json.dumps(options).encode() + b"\r\n")
        self.flush()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self._socket.close()

    def subscribe(self, subject):
        """When it returns, the subscription is in force, if the server permits it."""
        self._socket.sendall(f"SUB {subject} {self._next_id}\r\n".encode())
        self._next_id += 1
        self.flush()

    def publish(self, subject, payload):
        self._socket.sendall(f"PUB {subject} {len(payload)}\r\n".encode() + payload + b"\r\n")

    def flush(self):
        """Waits until the server has processed everything sent before."""
        self._socket.sendall(b"PING\r\n")
        while self._read() != b"PONG":
            pass

    def next(self, seconds=READY_S):
        """Returns the next message as (subject, payload), or None after this time without one."""
        deadline = time.monotonic() + seconds
        while not self._messages:
            self._socket.settimeout(max(0.001, deadline - time.monotonic()))
            try:
                self._read()
            except TimeoutError:
                return None
            finally:
                self._socket.settimeout(READY_S)
        return self._messages.pop(0)

    def _read(self):
        """Reads one line of the protocol, handles it and returns it."""
        line = self._line()
        if line.startswith(b"MSG "):
            subject, size = line.split()[1].decode(), int(line.split()[-1])
            self._messages.append((subject, self._take(size + 2)[:-2]))
        elif line == b"PING":
            self._socket.sendall(b"PONG\r\n")
        elif line.startswith(b"-ERR"):
            self.errors.append(line.decode(errors="replace"))
        return line

    def _line(self):
        while b"\r\n" not in self._buffer:
            self._more()
        line, _, self._buffer = self._buffer.partition(b"\r\n")
        return line

    def _take(self, size):
        while len(self._buffer) < size:
            self._more()
        taken, self._buffer = self._buffer[:size], self._buffer[size:]
        return taken

    def _more(self):
        piece = self._socket.recv(PIECE_BYTES)
        if not piece:
            raise ConnectionError(f"the server has closed the connection: {self.errors}")
        self._buffer += piece
