# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""A directory outside the clone for files that take long to make. It never has a partial file."""

import contextlib
import fcntl
import os
import pathlib
import shutil
import time

from .progress import say

WAIT_S = 0.2
TELL_S = 2


def directory():
    """Returns $SIGHTLINE_CACHE, or a directory below the user's cache directory."""
    chosen = os.environ.get("SIGHTLINE_CACHE")
    if chosen:
        return pathlib.Path(chosen).resolve()
    base = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(base).resolve() / "sightline-testbed"


@contextlib.contextmanager
def file_lock(path, waits_for):
    """Holds a lock on this file, and creates the file if necessary. The kernel releases the lock at
    the end of the process, even after a crash. Prints why it waits if another process holds it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    began, has_told = time.monotonic(), False
    while True:
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # The previous holder may have removed the file. Then this lock excludes no process.
            if path.exists() and os.path.samestat(os.fstat(file), path.stat()):
                break
        except (BlockingIOError, FileNotFoundError):
            pass
        os.close(file)
        if not has_told and time.monotonic() - began > TELL_S:
            say(f"waiting for another process that {waits_for}")
            has_told = True
        time.sleep(WAIT_S)
    try:
        yield
    finally:
        os.close(file)


def once(name, make):
    """Returns the path of cache/NAME. If it does not exist, make(path) writes a file or a directory
    to another path, which then gets the name. Only one process does this at a time."""
    target = directory() / name
    if target.exists():
        return target
    lock = target.with_name(f"{target.name}.lock")
    with file_lock(lock, f"makes {target.name}"):
        if target.exists():
            lock.unlink(missing_ok=True)
            return target
        part = target.with_name(target.name + ".part")
        remove(part)
        part.parent.mkdir(parents=True, exist_ok=True)
        try:
            make(part)
            os.rename(part, target)
        finally:
            remove(part)
            lock.unlink(missing_ok=True)
    return target


def remove(path):
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
