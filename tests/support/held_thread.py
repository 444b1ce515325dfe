# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Holds one thread of a program that we started, as a machine without a free core would."""

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
    """The id of a process's thread of this name."""
    for task in pathlib.Path(f"/proc/{process}/task").iterdir():
        if (task / "comm").read_text().strip() == name:
            return int(task.name)
    raise LookupError(f"process {process} has no thread {name}")


def _ptrace(request, thread):
    if _libc.ptrace(request, thread, None, None) != 0:
        raise OSError(ctypes.get_errno(), f"ptrace request {request:#x} of thread {thread}")


@contextlib.contextmanager
def held(process, name):
    """The thread does nothing while inside. Enter and leave on one thread of ours."""
    thread = thread_of(process, name)
    _ptrace(PTRACE_SEIZE, thread)
    _ptrace(PTRACE_INTERRUPT, thread)
    os.waitpid(thread, WAIT_FOR_THREADS)
    try:
        yield
    finally:
        _ptrace(PTRACE_DETACH, thread)
