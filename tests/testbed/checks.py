# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Checks the needs of a test bed on this machine, and says how to fix missing ones."""

import dataclasses
import os
import pathlib
import platform
import shutil
import subprocess
from typing import Callable

from . import cache, processes, toolchain
from .real_node import CNI_PLUGINS

CONTROL_PLANE, PODS = "control plane", "real pods"
DISK_BYTES = 8 << 30
MEMORY_BYTES = 2 << 30
PLUGINS = ("ptp", "host-local", "loopback")
CONTROLLERS = ("cpu", "memory", "pids")


@dataclasses.dataclass(frozen=True)
class Need:
    what: str
    part: str
    is_met: Callable[[], bool]
    fix: str


def _program(name, package, part):
    path = f"{os.environ.get('PATH', '')}:{processes.PATH}"
    return Need(name, part, lambda: shutil.which(name, path=path) is not None,
                f"apt-get install --no-install-recommends {package}")


def _has_venv():
    """toolchain.py needs venv and ensurepip to install a Go."""
    return subprocess.run(["python3", "-c", "import ensurepip, venv"], capture_output=True,
                          check=False).returncode == 0


def _has_disk():
    place = cache.directory()
    while not place.exists():
        place = place.parent
    return (cache.directory() / "programs").is_dir() or shutil.disk_usage(place).free >= DISK_BYTES


def _has_memory():
    for line in pathlib.Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) << 10 >= MEMORY_BYTES
    return False


def _works(*command):
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def _has_control_groups():
    """Checks for writable control groups. Version 1 has a hierarchy for each controller, version 2
    has one for all."""
    top = pathlib.Path("/sys/fs/cgroup")
    unified = top / "cgroup.controllers"
    if unified.exists():
        there = unified.read_text(encoding="ascii").split()
        return set(CONTROLLERS) <= set(there) and os.access(top, os.W_OK)
    return all(os.access(top / name, os.W_OK) for name in CONTROLLERS)


def _has_bridges():
    return _works("unshare", "--net", "--", "ip", "link", "add", "probe0", "type", "bridge") and \
        _works("unshare", "--net", "--", "ip", "link", "add", "probe0", "type", "veth",
               "peer", "name", "probe1")


def _has_nftables():
    return _works("unshare", "--net", "--", "nft", "add", "table", "ip", "probe")


def needs():
    wanted = ".".join(map(str, toolchain.OLDEST))
    yield Need("x86-64 Linux", CONTROL_PLANE,
               lambda: (platform.system(), platform.machine()) == ("Linux", "x86_64"),
               "use another machine: kubectl and helm come as programs for x86-64 Linux")
    yield Need("pidfd (Linux 5.3)", CONTROL_PLANE, lambda: hasattr(os, "pidfd_open"),
               "use a newer kernel and Python 3.9 or newer")
    yield Need(f"Go {wanted} or newer, or the means to install it", CONTROL_PLANE,
               lambda: toolchain.is_there() or _has_venv(),
               f"apt-get install python3-venv (then {toolchain.WHEEL} is installed when needed)")
    yield _program("npm", "npm", CONTROL_PLANE)
    yield _program("openssl", "openssl", CONTROL_PLANE)
    yield Need(f"{DISK_BYTES >> 30} GiB of disk, for the first build", CONTROL_PLANE, _has_disk,
               "free some, or set SIGHTLINE_CACHE (and GOCACHE, GOMODCACHE) to another disk")
    yield Need(f"{MEMORY_BYTES >> 30} GiB of free memory", CONTROL_PLANE, _has_memory,
               "end something: a build takes 2 GiB, a bed 0.6 GiB")
    yield Need("root", PODS, lambda: os.geteuid() == 0, "run it as root")
    for name, package in (("ip", "iproute2"), ("nft", "nftables"), ("containerd", "containerd"),
                          ("runc", "runc"), ("unshare", "util-linux"), ("nsenter", "util-linux"),
                          ("mount", "mount"), ("cc", "gcc"), ("strip", "binutils"),
                          ("nats-server", "nats-server"), ("busybox", "busybox"),
                          ("curl", "curl")):
        yield _program(name, package, PODS)
    yield Need("a static C library", PODS,
               lambda: _works("sh", "-c", "echo 'int main(void){return 0;}' | "
                              "cc -static -xc - -o /dev/null"), "apt-get install libc6-dev")
    yield Need(f"CNI plugins in {CNI_PLUGINS}", PODS,
               lambda: all(pathlib.Path(CNI_PLUGINS, plugin).exists() for plugin in PLUGINS),
               "apt-get install containernetworking-plugins")
    yield Need(f"control groups that can be written: {', '.join(CONTROLLERS)}", PODS,
               _has_control_groups, "in a container, run it privileged with its own cgroup "
               "namespace; else mount them on /sys/fs/cgroup")
    yield Need("mount namespaces", PODS,
               lambda: _works("unshare", "--mount", "--propagation", "private", "--", "sh", "-c",
                              "mount --make-rshared / && mount -t tmpfs tmpfs /run"),
               "in a container, run it privileged (CAP_SYS_ADMIN)")
    yield Need("network namespaces with bridge and veth", PODS, _has_bridges,
               "modprobe bridge veth; in a container, run it privileged (CAP_NET_ADMIN)")
    yield Need("nftables in the kernel", PODS, _has_nftables, "modprobe nf_tables nft_chain_nat")


def lacking():
    """Returns [(what, fix)] of all needs that are not met."""
    return [(need.what, need.fix) for need in needs() if not need.is_met()]


def check(tell):
    """Calls `tell` with a line for each need. Returns whether all are met."""
    is_all_met, part = True, None
    for need in needs():
        if need.part != part:
            part = need.part
            tell(f"for the {part}:" if part == CONTROL_PLANE else f"for {part}, besides:")
        is_met = need.is_met()
        is_all_met = is_all_met and is_met
        tell(f"  {'ok     ' if is_met else 'MISSING'}  {need.what}"
             + ("" if is_met else f"\n             fix: {need.fix}"))
    return is_all_met
