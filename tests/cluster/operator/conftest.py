# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
import fcntl
import pathlib
import sys

import pytest

from testbed import installation
from testbed.namespace import RESTRICTED

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from installed import BUILD, MODEL, ROLLING, router, wait_until_serves  # noqa: E402


@pytest.fixture(scope="session")
def operator(pods_bed):
    """The operator, installed as the documentation describes. Its log is printed below a failure.
    Several processes of tests install it one after the other."""
    with open(pods_bed.directory / "installed", "w", encoding="ascii") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        installation.install(pods_bed.kubectl)
    yield pods_bed
    print(pods_bed.kubectl("-n", installation.SYSTEM, "logs", "deployment/sightline-operator",
                           "--tail=100"))


@pytest.fixture
def home(operator, make_namespace):
    """A namespace with the model's files."""
    namespace = make_namespace(labels=RESTRICTED)
    namespace.mount_directory("models", BUILD / "models" / MODEL)
    return namespace


@pytest.fixture
def demo(home):
    """A namespace with a router that is Ready."""
    home.apply(router(ROLLING))
    wait_until_serves(home)
    return home
