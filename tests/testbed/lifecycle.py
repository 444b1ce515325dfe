# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Starts (up) and ends (down) a bed. Both can run repeatedly, and after a crash of either."""

import contextlib
import os
import pathlib
import shutil
import time

from . import binaries, cache, certificates, control_plane, mounts, network, processes, real_node
from .bed import Bed, BedError

LINKED = ("kubectl", "helm")


def up(bed, with_pods=False):
    """Starts the programs of a bed that do not run, and returns their names."""
    programs = binaries.binaries(binaries.CONTROL_PLANE + (binaries.PODS if with_pods else ()))
    binaries.stages()
    with bed.lock():
        is_new = not bed.read()
        if is_new:
            bed.with_pods = with_pods
            bed.directory.mkdir(parents=True, exist_ok=True)
            bed.choose_ports()
        if with_pods and not bed.with_pods:
            raise BedError(f"the test bed '{bed.name}' was made without real pods: take another "
                           f"name, or first: hack/testbed down --name {bed.name}")
        if bed.with_pods:
            programs |= binaries.binaries(binaries.PODS)
            _claim(bed, is_new)
            network.enter(bed)
        certificates.make(bed)
        _link(bed, programs)
        started = control_plane.start(bed, programs)
        if bed.with_pods:
            started += real_node.start(bed, programs)
    return started


def _claim(bed, is_new):
    owner = real_node.owner()
    if owner not in (None, bed.directory) and not (owner / "bed.json").exists():
        # The owner's clone was removed by hand, so no other process can take its bed down.
        down(Bed(owner.name, owner.parent))
    try:
        real_node.claim(bed)
    except BedError:
        if is_new:
            cache.remove(bed.directory)
            bed.lock_file.unlink()
        raise


def _link(bed, programs):
    bed.bin.mkdir(exist_ok=True)
    for name in LINKED:
        part = bed.bin / f"{name}.part"
        part.unlink(missing_ok=True)
        part.symlink_to(programs[name])
        os.replace(part, bed.bin / name)


def down(bed, keep_logs=None):
    """Ends all programs and pods of the bed and removes its files. Copies its logs to the directory
    `keep_logs` first, if it is set. Returns whether the bed existed."""
    with bed.lock():
        # Kills all programs together and without notice, because no data is kept.
        found = _remains(bed)
        processes.kill_all(lambda: _remains(bed))
        mounts.remove_below(bed.directory)
        mounts.remove_control_groups(real_node.control_groups(bed), real_node.CONTAINERS)
        real_node.release(bed)
        was_there = bool(found) or bed.directory.exists()
        if keep_logs is not None and bed.logs.exists():
            shutil.copytree(bed.logs, keep_logs, dirs_exist_ok=True)
        _remove(bed.directory)
        bed.ports = {}
        bed.lock_file.unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        bed.directory.parent.rmdir()
    return was_there


def _remains(bed):
    return (processes.of_bed(bed.directory)
            + processes.in_control_groups(real_node.control_groups(bed)))


def _remove(directory):
    """Retries, because the kernel may still write files of a killed program for a moment."""
    for _ in range(50):
        try:
            cache.remove(directory)
            return
        except OSError:
            time.sleep(0.1)
    cache.remove(directory)


def running(bed):
    """Returns {name: resident bytes} of the bed's programs and their children."""
    sizes = {}
    for process in processes.of_bed(bed.directory):
        with contextlib.suppress(OSError):
            name = process.executable or process.program
            sizes[name] = sizes.get(name, 0) + process.resident_bytes()
    return sizes


def shell(bed, arguments):
    """Replaces this process with the command or the user's shell. It gets the bed's kubeconfig and
    programs."""
    if not bed.read() or not bed.kubeconfig.exists():
        raise BedError(f"there is no test bed '{bed.name}': "
                       f"hack/testbed up{'' if bed.name == 'default' else f' --name {bed.name}'}")
    environment = bed.environment()
    command = bed.command(arguments or [environment.get("SHELL") or "/bin/sh"])
    program = shutil.which(command[0], path=environment["PATH"])
    if program is None:
        raise BedError(f"{command[0]}: no such program")
    os.execve(pathlib.Path(program), command, environment)
