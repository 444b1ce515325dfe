# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""The network namespace of a bed with real pods. All its programs run in there, because a kubelet
accepts no loopback address. A bridge replaces the machine's network."""

import contextlib
import ctypes
import os
import subprocess

from . import bed as beds
from . import mounts

NEW_NETWORK = 0x40000000  # CLONE_NEWNET
OWN = "/proc/thread-self/ns/net"


def _run(*command):
    answer = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False)
    if answer.returncode != 0:
        raise beds.BedError(f"{' '.join(map(str, command))}: {answer.stderr.strip()}")
    return answer.stdout


def _join(file):
    """Moves this thread into the network of the file. Programs and threads that it starts later
    are in the same network."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(file.fileno(), NEW_NETWORK) != 0:
        raise beds.BedError(f"a network cannot be entered: {os.strerror(ctypes.get_errno())}")


def enter(bed):
    """Moves this thread into the bed's network for good. Makes the network if necessary."""
    network = bed.network_namespace
    if str(network) not in mounts.below(bed.directory):
        network.touch()
        _run("unshare", f"--net={network}", "true")
    with open(network, "rb") as file:
        _join(file)
    _run("ip", "link", "set", "lo", "up")
    if "node0" not in _run("ip", "-brief", "link"):
        _run("ip", "link", "add", "node0", "type", "bridge")
    _run("ip", "address", "replace", f"{beds.NODE_IP}/24", "dev", "node0")
    _run("ip", "link", "set", "node0", "up")
    # Without a route, a connection to a Service fails before its address is translated.
    _run("ip", "route", "replace", beds.SERVICE_CIDR, "dev", "node0")


@contextlib.contextmanager
def inside(bed):
    """Sockets that this thread opens inside reach the bed's pods and Services, even afterwards."""
    if not bed.with_pods:
        yield
        return
    with open(OWN, "rb") as own, open(bed.network_namespace, "rb") as network:
        _join(network)
        try:
            yield
        finally:
            _join(own)
