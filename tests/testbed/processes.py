# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Finds, starts and kills the programs of a bed.

No file has process ids. Each program carries its bed and its name in its environment, and its
children inherit it. So all processes of a bed are found, even if `up` was killed early. A signal
goes through a pidfd, which is opened before the process is checked again. So it never reaches
another process with the same number."""

import contextlib
import os
import pathlib
import select
import signal
import subprocess
import time

from .bed import BedError

MARK = "SIGHTLINE_TESTBED_PROGRAM"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
GONE_S = 20


class Process:
    """A process that lived when it was found. `start` is its start time, in ticks since boot. The
    number and the start time together identify a process for ever."""

    def __init__(self, pid, start, program):
        self.pid, self.start, self.program = pid, start, program

    def __repr__(self):
        return f"{self.program} ({self.pid})"

    def is_alive(self):
        return start_of(self.pid) == self.start

    @property
    def executable(self):
        with contextlib.suppress(OSError):
            return os.path.basename(os.readlink(f"/proc/{self.pid}/exe")).split(" (deleted)")[0]
        return ""

    def resident_bytes(self):
        pages = pathlib.Path(f"/proc/{self.pid}/statm").read_text(encoding="ascii").split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")


def start_of(pid):
    """Returns the start time of a process. Returns None if it does not exist or is a zombie."""
    try:
        # The name is in parentheses and may contain any character.
        fields = pathlib.Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None
    return None if fields[0] in (b"Z", b"X") else int(fields[19])


def _all_pids():
    return [int(entry) for entry in os.listdir("/proc") if entry.isdigit()]


def _program_of(pid, directory):
    try:
        variables = pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return None
    for variable in variables:
        name, _, value = variable.partition(b"=")
        if name == MARK.encode():
            program, _, bed = os.fsdecode(value).partition("@")
            return program if bed == str(directory) else None
    return None


def of_bed(directory):
    """Returns all processes of this bed, with the children of its programs."""
    found = []
    for pid in _all_pids():
        start, program = start_of(pid), _program_of(pid, directory)
        if start is not None and program is not None:
            found.append(Process(pid, start, program))
    return found


def find(directory, program):
    """Returns the process that runs this program itself, not one of its children, or None."""
    for process in of_bed(directory):
        if process.program == program and process.executable == program:
            return process
    return None


def start(bed, program, arguments):
    """Starts a program. Its output goes to the bed's logs. It goes on after the end of this process
    and of the terminal."""
    bed.logs.mkdir(parents=True, exist_ok=True)
    environment = {"PATH": PATH, "HOME": str(bed.directory), MARK: f"{program}@{bed.directory}"}
    with open(bed.logs / f"{program}.log", "ab") as log:
        return subprocess.Popen(
            [str(a) for a in arguments], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            env=environment, cwd=bed.directory, start_new_session=True)


def in_control_groups(groups):
    """Returns the processes in these control groups, with version 1 or 2 of control groups."""
    wanted, found = {f"/{group}" for group in groups}, []
    for pid in _all_pids():
        began = start_of(pid)
        with contextlib.suppress(OSError):
            lines = pathlib.Path(f"/proc/{pid}/cgroup").read_text(encoding="ascii").splitlines()
            theirs = wanted.intersection(line.split(":", 2)[2] for line in lines)
            if began is not None and theirs:
                found.append(Process(pid, began, theirs.pop()))
    return found


def by_control_group(parent):
    """Returns {name of a child of that control group: living processes in or below it}."""
    found = {}
    for pid in filter(start_of, _all_pids()):
        with contextlib.suppress(OSError):
            lines = pathlib.Path(f"/proc/{pid}/cgroup").read_text(encoding="ascii").splitlines()
            for group in {line.split(":", 2)[2] for line in lines}:
                if group.startswith(f"/{parent}/"):
                    found.setdefault(group.split("/")[2], []).append(pid)
    return found


def kill_all(find_them):
    """Kills the processes that find_them() returns, until it returns none. Waits for their end."""
    deadline = time.monotonic() + GONE_S
    while True:
        found = find_them()
        if not found:
            return
        if time.monotonic() > deadline:
            raise BedError(f"these do not end although killed: {found}")
        handles = [handle for handle in map(_kill, found) if handle is not None]
        for handle in handles:
            # The handle becomes readable when the process ends, even before it is reaped.
            select.select([handle], [], [], 1)
            os.close(handle)


def _kill(process):
    try:
        handle = os.pidfd_open(process.pid)
    except OSError:
        return None
    if not process.is_alive():
        os.close(handle)
        return None
    with contextlib.suppress(ProcessLookupError):
        signal.pidfd_send_signal(handle, signal.SIGKILL)
    return handle
