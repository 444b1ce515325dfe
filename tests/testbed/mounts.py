# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Finds and removes mounts and control groups that a killed bed leaves in the kernel."""

import contextlib
import os
import pathlib
import subprocess
import time

from .bed import BedError

CONTROL_GROUPS = pathlib.Path("/sys/fs/cgroup")
BUSY_S = 10


def are_of(pid, directory):
    """Returns whether any mount of the process is below the directory, or comes from there."""
    with contextlib.suppress(OSError):
        seen = pathlib.Path(f"/proc/{pid}/mountinfo").read_text(encoding="utf-8", errors="replace")
        return f"{directory}/" in seen
    return False


def below(directory):
    """Returns the mount points below the directory, innermost first."""
    rows = pathlib.Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
    # The kernel writes blanks and similar characters as octal numbers.
    points = [row.split()[4].encode().decode("unicode_escape") for row in rows]
    return sorted((p for p in points if p.startswith(f"{directory}/")), reverse=True)


def remove_below(directory):
    for point in below(directory):
        answer = subprocess.run(["umount", "--lazy", point], capture_output=True, text=True,
                                check=False)
        if answer.returncode != 0 and point in below(directory):
            raise BedError(answer.stderr)


def control_group_directories(group):
    """Returns the group's directories in all hierarchies. Version 1 has a hierarchy for each
    controller, version 2 has one for all."""
    places = [CONTROL_GROUPS / group, *CONTROL_GROUPS.glob(f"*/{group}")]
    return [place for place in places if place.is_dir() and not place.parent.is_symlink()]


def names_of_control_groups(parent):
    """Returns the names of the group's children in all hierarchies."""
    return {group.name for place in control_group_directories(parent) for group in place.iterdir()
            if group.is_dir()}


def remove_control_groups(groups, parent):
    """Removes these groups, and then their parent if it is empty. Their processes have ended, but
    the kernel may need a moment to notice."""
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
