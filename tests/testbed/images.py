# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Makes container images without a registry, as a tar of an OCI layout from a directory. Loads them
into a node."""

import contextlib
import hashlib
import json
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "hack"))

import oci  # noqa: E402

from . import cache  # noqa: E402
from .bed import BedError  # noqa: E402
from .progress import step  # noqa: E402
from .services import wait_until  # noqa: E402

PAUSE = "testbed/pause:1"
SOCKET = "/run/containerd/containerd.sock"
# The pause program keeps a pod's namespaces. It ends on a signal, and reaps the dead processes of a
# shared process namespace.
PAUSE_SOURCE = """\
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static void end(int number) { (void)number; _exit(0); }
static void bury(int number) { (void)number; while (waitpid(-1, NULL, WNOHANG) > 0) {} }
int main(void) {
  signal(SIGINT, end);
  signal(SIGTERM, end);
  signal(SIGCHLD, bury);
  for (;;) pause();
}
"""
# containerd reads an image's name from this annotation, and marks the images that the kubelet may
# run with this label.
NAME, MANAGED = "io.containerd.image.name", "io.cri-containerd.image=managed"


def qualified(name):
    """Returns the name that the kubelet requests. A name without a registry means docker's."""
    name = name if ":" in name.rpartition("/")[2] else f"{name}:latest"
    first, slash, _ = name.partition("/")
    if slash and ("." in first or ":" in first or first == "localhost"):
        return name
    return f"docker.io/{name if slash else 'library/' + name}"


def of_directory(archive, name, directory, run=None):
    """Writes an image with that name. See oci.of_directory()."""
    oci.of_directory(archive, directory, {NAME: qualified(name)}, run)
    return archive


def pause():
    """Returns the archive of the image that every pod needs."""
    key = hashlib.sha256(PAUSE_SOURCE.encode()).hexdigest()[:16]
    return cache.once(f"images/pause-{key}.tar", _make_pause)


def _make_pause(part):
    with tempfile.TemporaryDirectory() as directory:
        program = pathlib.Path(directory) / "pause"
        answer = subprocess.run(
            ["cc", "-Os", "-static", "-s", "-xc", "-", "-o", program], input=PAUSE_SOURCE,
            capture_output=True, text=True, check=False)
        if answer.returncode != 0:
            raise BedError(f"the pause program cannot be compiled:\n{answer.stderr}")
        of_directory(part, PAUSE, directory, {"Entrypoint": ["/pause"]})


def load(bed, archive, inside):
    """Loads the image into the bed's containerd, unless it has it. `inside` is the beginning of a
    command that runs in containerd's mount namespace."""
    with tarfile.open(archive) as outer:
        images = json.load(outer.extractfile("index.json"))["manifests"]
    if not all(NAME in image.get("annotations", {}) for image in images):
        raise BedError(f"{archive} names no image: its index.json lacks the annotation {NAME}")
    if all(_has(inside, image) for image in images):
        return
    with step(f"loading the image {archive}"), open(archive, "rb") as file:
        answer = _ctr(inside, "import", "-", stdin=file)
    if answer.returncode != 0:
        raise BedError(f"{archive} cannot be loaded into '{bed.name}':\n{answer.stderr}")
    # containerd passes a new image to its CRI plugin, which takes a moment.
    wait_until(lambda: all(_has(inside, image) for image in images), f"{archive} can be run")


def name_too(name, other, inside):
    """Gives a loaded image a second name."""
    answer = _ctr(inside, "tag", "--force", qualified(name), qualified(other))
    if answer.returncode != 0:
        raise BedError(f"{name} cannot be named {other}:\n{answer.stderr}")
    wait_until(lambda: MANAGED in _ctr(inside, "ls", f"name=={qualified(other)}").stdout,
               f"{other} can be run")


def _has(inside, image):
    answer = _ctr(inside, "ls", f"name=={image['annotations'][NAME]}")
    return image["digest"] in answer.stdout and MANAGED in answer.stdout


def _ctr(inside, *arguments, **options):
    return subprocess.run(
        [*inside, "ctr", "--address", SOCKET, "--namespace", "k8s.io", "images", *arguments],
        capture_output=True, text=True, check=False, **options)


def snapshotter(bed):
    """Returns overlayfs, or native if the bed's file system cannot carry an overlay. Another
    overlay, for example, cannot."""
    place = bed.directory / "overlay-probe"
    parts = {name: place / name for name in ("lower", "upper", "work", "merged")}
    for part in parts.values():
        part.mkdir(parents=True, exist_ok=True)
    options = f"lowerdir={parts['lower']},upperdir={parts['upper']},workdir={parts['work']}"
    script = 'exec mount -t overlay overlay -o "$1" "$2"'
    answer = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script, "sh", options, parts["merged"]],
        capture_output=True, check=False)
    with contextlib.suppress(OSError):
        shutil.rmtree(place)
    return "overlayfs" if answer.returncode == 0 else "native"
