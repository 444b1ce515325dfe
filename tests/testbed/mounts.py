# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Mounts, control groups and empty directories that a killed bed leaves in the kernel's hands."""

import contextlib
import os
import pathlib
import subprocess
import time

from .bed import BedError

CONTROL_GROUPS = pathlib.Path("/sys/fs/cgroup")
BUSY_S = 10


def are_of(pid, directory):
    """Whether any mount that the process sees has to do with the directory."""
    with contextlib.suppress(OSError):
        seen = pathlib.Path(f"/proc/{pid}/mountinfo").read_text(encoding="utf-8", errors="replace")
        return f"{directory}/" in seen
    return False


def below(directory):
    """Mount points there, innermost first."""
    rows = pathlib.Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
    # The kernel writes blanks and their like as octal numbers.
    points = [row.split()[4].encode().decode("unicode_escape") for row in rows]
    return sorted((p for p in points if p.startswith(f"{directory}/")), reverse=True)


def remove_below(directory):
    for point in below(directory):
        answer = subprocess.run(["umount", "--lazy", point], capture_output=True, text=True,
                                check=False)
        if answer.returncode != 0 and point in below(directory):
            raise BedError(answer.stderr)


def control_group_directories(group):
    """Of all hierarchies: one for each controller in version 1, one in all in version 2."""
    places = [CONTROL_GROUPS / group, *CONTROL_GROUPS.glob(f"*/{group}")]
    return [place for place in places if place.is_dir() and not place.parent.is_symlink()]


def names_of_control_groups(parent):
    """Of its children in any hierarchy."""
    return {group.name for place in control_group_directories(parent) for group in place.iterdir()
            if group.is_dir()}


def remove_control_groups(groups, parent):
    """The processes in them have ended, but the kernel may need a moment to notice. Then also the
    one that holds them all, if it is empty."""
    for top in (directory for group in groups for directory in control_group_directories(group)):
        deadline = time.monotonic() + BUSY_S
        while top.is_dir():
            for path, _, _ in os.walk(top, topdown=False):
                with contextlib.suppress(OSError):
                    os.rmdir(path)
            if time.monotonic() > deadline:
                raise BedError(f"the control group {top} cannot be removed")
            if top.is_dir():
                time.sleep(0.02)
    for place in control_group_directories(parent):
        with contextlib.suppress(OSError):
            place.rmdir()
