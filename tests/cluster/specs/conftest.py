# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
import pathlib
import sys

import pytest

from testbed.commands import Commands

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from server import CRDS, Server  # noqa: E402


@pytest.fixture(scope="session")
def server():
    """An API server with Sightline's kinds. No controller acts on the objects."""
    commands = Commands("test-specs")
    commands.down()
    try:
        commands.up()
        commands.kubectl("apply", "--server-side", "-k", CRDS)
        commands.kubectl("wait", "--for=condition=Established", "--timeout=60s", "crd", "--all")
        yield Server(commands.bed)
    finally:
        commands.down()
