# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
import os
import pathlib
import time

import pytest

from testbed.commands import Commands
from testbed.mounts import CONTROL_GROUPS
from testbed.real_node import CLAIM

READY_S = 60
STARTED = time.time()
# Where containerd, the kubelet and their helpers would leave files on a machine of their own.
PLACES = ("/var/lib/cni", "/var/lib/kubelet", "/var/lib/containerd", "/var/log/containers",
          "/var/log/pods", "/run/containerd", "/run/netns", "/etc/cni", "/opt/containerd",
          "/usr/libexec/kubernetes")


def until(condition, seconds=READY_S):
    """Waits until the condition is true. Returns its value."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < deadline, f"not so after {seconds} s"
        time.sleep(0.05)


def _read(path):
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _new_below(top):
    paths = [top, *top.rglob("*")] if top.exists() else []
    return [path for path in paths if path.lstat().st_mtime > STARTED]


def traces(bed):
    """Returns all traces of a bed on this machine, found by other means than its removal uses."""
    place = os.fsencode(bed.directory)
    processes = [
        pid for pid in os.listdir("/proc") if pid.isdigit() and int(pid) != os.getpid()
        and place + b"/" in _read(pathlib.Path("/proc", pid, "cmdline")) + b"/"
        + _read(pathlib.Path("/proc", pid, "environ")).replace(b"\0", b"/")]
    files = list(bed.directory.parent.glob(f"{bed.name}*"))
    groups = []
    if bed.name == "test-pods":
        groups = [*CONTROL_GROUPS.glob("k8s.io"), *CONTROL_GROUPS.glob("*/k8s.io")]
        files += [path for place in PLACES for path in _new_below(pathlib.Path(place))]
    if CLAIM.is_symlink() and os.readlink(CLAIM) == str(bed.directory):
        files.append(CLAIM)
    mounts = [line for line in _read(pathlib.Path("/proc/self/mountinfo")).splitlines()
              if place in line]
    return processes + groups + files + mounts


def in_network(number):
    """Returns the processes in this network namespace."""
    link = f"net:[{number}]"
    return [entry.parent.parent.name for entry in pathlib.Path("/proc").glob("[0-9]*/ns/net")
            if os.path.lexists(entry) and os.readlink(entry) == link]


@pytest.fixture
def make_bed():
    """Makes beds by name, and takes them down at the end."""
    made = []

    def make(name):
        made.append(Commands(name))
        made[-1].down()
        return made[-1]

    yield make
    for commands in made:
        commands.down()


@pytest.fixture(scope="module")
def bed():
    """A running bed, for the tests of a module that leave it running."""
    commands = Commands("test-shared")
    commands.down()
    commands.up()
    yield commands
    commands.down()


@pytest.fixture(scope="session")
def wait_for():
    return until


@pytest.fixture(scope="session")
def traces_of():
    return lambda commands: traces(commands.bed)


@pytest.fixture(scope="session")
def processes_in_network():
    return in_network
