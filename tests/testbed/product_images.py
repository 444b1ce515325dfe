# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""The images that pods of tests run: the product's programs from a build tree, NATS, and a client
with curl and busybox. Each has its programs in /usr/local/bin with the libraries that they are
linked to, and runs as a user that is not root. An archive is made once for each content."""

import dataclasses
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import time

from . import cache, images
from .bed import BedError
from .progress import step

USER = 65532
PROGRAMS = pathlib.Path("usr/local/bin")
CERTIFICATES = pathlib.Path("/etc/ssl/certs/ca-certificates.crt")
TEXTS = {
    "etc/passwd": f"root:x:0:0::/:\nsightline:x:{USER}:{USER}::/tmp:\n",
    "etc/group": f"root:x:0:\nsightline:x:{USER}:\n",
    "etc/nsswitch.conf": "hosts: files dns\n",
}
DAEMONS = "/usr/sbin"  # Not on everybody's PATH.
UNUSED_S = 24 * 3600
# Ends at once when told to: a program that is the first of its pod gets no signal that it has not
# asked for.
WAITING = ["sh", "-c", "trap exit TERM; sleep 1000000 & wait"]


@dataclasses.dataclass(frozen=True)
class Image:
    name: str
    programs: list
    run: list
    links: tuple = ()


def of_build(build):
    """The images for this build tree; of the product, those whose program is there."""
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
    """The path of the image's archive."""
    name = image.name.partition(":")[0]
    made = cache.once(f"images/{name}-{_key(image)}.tar", lambda part: make(part, image))
    os.utime(made)
    for other in made.parent.glob(f"{name}-[0-9a-f]*.tar"):
        if time.time() - other.stat().st_mtime > UNUSED_S:
            other.unlink(missing_ok=True)
    return made


def _key(image):
    digest = hashlib.sha256(repr((image.name, image.run, image.links)).encode())
    for module in (__file__, images.__file__):
        digest.update(pathlib.Path(module).read_bytes())
    for target, source in sorted(_files(image).items()):
        digest.update(str(target).encode())
        digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


def _files(image):
    """{path in the image: file here}"""
    files = {}
    for program in image.programs:
        files[PROGRAMS / program.name] = program
        for library in _libraries(program):
            files[library.relative_to("/")] = library
    if CERTIFICATES.exists():
        files[CERTIFICATES.relative_to("/")] = CERTIFICATES
    return files


def _libraries(program):
    """Those that the loader takes, and the loader; none for a static program."""
    answer = subprocess.run(["ldd", program], capture_output=True, text=True, check=False)
    found = re.findall(r"(?:=> )?(/\S+) \(0x", answer.stdout)
    return [pathlib.Path(path) for path in found] if answer.returncode == 0 else []


def make(target, image):
    with step(f"making the image {image.name}"), tempfile.TemporaryDirectory() as directory:
        root = pathlib.Path(directory)
        root.chmod(0o755)
        for made in (PROGRAMS, "etc", "tmp", "bin"):
            (root / made).mkdir(parents=True)
        (root / "tmp").chmod(0o1777)
        for path, text in TEXTS.items():
            (root / path).write_text(text, encoding="ascii")
        for path, source in _files(image).items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, root / path)
        for program in image.programs:
            _strip(root / PROGRAMS / program.name)
        for link in image.links:
            (root / PROGRAMS / link).symlink_to(image.programs[0].name)
        if "sh" in image.links:
            (root / "bin/sh").symlink_to(f"/{PROGRAMS}/sh")
        images.of_directory(target, image.name, root, {
            "User": f"{USER}:{USER}", "Entrypoint": image.run, "WorkingDir": "/"})
    return target


def _strip(program):
    """What only a debugger reads is most of a program of ours."""
    subprocess.run(["strip", "--strip-debug", program], capture_output=True, check=False)
