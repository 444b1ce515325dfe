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


def remove_control_groups(groups):
    """The processes in them have ended, but the kernel may need a moment to notice."""
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
        # The one that holds those of all pods, if it is empty now.
        with contextlib.suppress(OSError):
            top.parent.rmdir()
