# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Runs a program as if the kernel had no IPv6 (ipv6.disable=1): IPv6 sockets fail with
EAFNOSUPPORT. Usage: python3 without_six.py PROGRAM [ARGUMENT...]"""

import ctypes
import errno
import os
import platform
import socket
import struct
import sys

SET_NO_NEW_PRIVILEGES, SET_SECCOMP, FILTER = 38, 22, 2
SOCKET = {"x86_64": 41, "aarch64": 198}
LOAD, EQUALS, RETURN = 0x20, 0x15, 0x06
NUMBER, FIRST_ARGUMENT = 0, 16
ERROR, ALLOW = 0x00050000, 0x7FFF0000


def forbid():
    """Forbids IPv6 sockets in this process and in the program that replaces it."""
    steps = [(LOAD, 0, 0, NUMBER), (EQUALS, 0, 3, SOCKET[platform.machine()]),
             (LOAD, 0, 0, FIRST_ARGUMENT), (EQUALS, 0, 1, socket.AF_INET6),
             (RETURN, 0, 0, ERROR | errno.EAFNOSUPPORT), (RETURN, 0, 0, ALLOW)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
    program = struct.pack("HxxxxxxP", len(steps), ctypes.addressof(code))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(SET_NO_NEW_PRIVILEGES, 1, 0, 0, 0) != 0 or libc.prctl(
            SET_SECCOMP, FILTER, program, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


if __name__ == "__main__":
    forbid()
    os.execv(sys.argv[1], sys.argv[1:])
