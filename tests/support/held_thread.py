# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Stops one thread of a program that we started, as if the machine had no free core."""

import contextlib
import ctypes
import os
import pathlib

PTRACE_SEIZE, PTRACE_INTERRUPT, PTRACE_DETACH = 0x4206, 0x4207, 17
WAIT_FOR_THREADS = 0x40000000  # __WALL

_libc = ctypes.CDLL(None, use_errno=True)
_libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
_libc.ptrace.restype = ctypes.c_long


def thread_of(process, name):
    """Returns the id of the process's thread with this name."""
    for task in pathlib.Path(f"/proc/{process}/task").iterdir():
        if (task / "comm").read_text().strip() == name:
            return int(task.name)
    raise LookupError(f"process {process} has no thread {name}")


def _ptrace(request, thread):
    if _libc.ptrace(request, thread, None, None) != 0:
        raise OSError(ctypes.get_errno(), f"ptrace request {request:#x} of thread {thread}")


@contextlib.contextmanager
def held(process, name):
    """Stops the thread during the context. Enter and leave the context on the same thread."""
    thread = thread_of(process, name)
    _ptrace(PTRACE_SEIZE, thread)
    _ptrace(PTRACE_INTERRUPT, thread)
    os.waitpid(thread, WAIT_FOR_THREADS)
    try:
        yield
    finally:
        _ptrace(PTRACE_DETACH, thread)
