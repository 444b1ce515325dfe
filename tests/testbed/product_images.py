# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Makes the images for pods of tests: the product's programs from a build tree, with the same files
as released images, NATS, and a client with curl and busybox. The cache has one archive for each
content."""

import dataclasses
import hashlib
import os
import pathlib
import shutil
import subprocess
import tempfile
import time

from . import cache, images

import oci
import product_files
from product_files import PROGRAMS, USER

from .bed import BedError
from .progress import step

DAEMONS = "/usr/sbin"  # Not in every user's PATH.
UNUSED_S = 24 * 3600
# Ends immediately on SIGTERM. The first process of a container gets only signals that it handles,
# so the shell needs the trap.
WAITING = ["sh", "-c", "trap exit TERM; sleep 1000000 & wait"]


@dataclasses.dataclass(frozen=True)
class Image:
    name: str
    programs: list
    run: list
    links: tuple = ()


def of_build(build):
    """Yields the images for this build tree. It skips product images without their program."""
    for name in ("sightline", "sightline-operator"):
        program = pathlib.Path(build, "bin", name)
        if program.exists():
            yield Image(f"{name}:testbed", [program], [name])
    yield Image("nats:testbed", [_found("nats-server")], ["nats-server"])
    busybox = _found("busybox")
    yield Image("client:testbed", [busybox, _found("curl")], WAITING, _applets(busybox))


def _found(program):
    path = shutil.which(program, path=f"{os.environ.get('PATH', '')}:{DAEMONS}")
    if path is None:
        raise BedError(f"{program} is missing: hack/setup installs it")
    return pathlib.Path(path)


def _applets(busybox):
    answer = subprocess.run([busybox, "--list"], capture_output=True, text=True, check=True)
    return tuple(name for name in answer.stdout.split() if name != "busybox")


def archive(image):
    """Returns the path of the image's archive."""
    name = image.name.partition(":")[0]
    made = cache.once(f"images/{name}-{_key(image)}.tar", lambda part: make(part, image))
    os.utime(made)
    for other in made.parent.glob(f"{name}-[0-9a-f]*.tar"):
        if time.time() - other.stat().st_mtime > UNUSED_S:
            other.unlink(missing_ok=True)
    return made


def _key(image):
    digest = hashlib.sha256(repr((image.name, image.run, image.links)).encode())
    for module in (__file__, product_files.__file__, oci.__file__):
        digest.update(pathlib.Path(module).read_bytes())
    for target, source in sorted(product_files.files(image.programs).items()):
        digest.update(str(target).encode())
        digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


def make(target, image):
    with step(f"making the image {image.name}"), tempfile.TemporaryDirectory() as directory:
        root = pathlib.Path(directory)
        product_files.make_tree(root, image.programs, image.name.rpartition(":")[2])
        for link in image.links:
            (root / PROGRAMS / link).symlink_to(image.programs[0].name)
        if "sh" in image.links:
            (root / "bin").mkdir(exist_ok=True)
            (root / "bin/sh").symlink_to(f"/{PROGRAMS}/sh")
        images.of_directory(target, image.name, root, {
            "User": f"{USER}:{USER}", "Entrypoint": image.run, "WorkingDir": "/"})
    return target
