# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Tests of the chart on a real Kubernetes of its own, with real pods and the kinds of the
Prometheus operator. An installation belongs to the whole cluster, so each test removes its own."""

import os
import pathlib
import subprocess
import sys

import pytest

from testbed import binaries
from testbed.commands import Commands

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
for place in (HERE.parent / "operator", ROOT / "tests/packaging", ROOT / "tests/support",
              ROOT / "hack", HERE):
    sys.path.insert(0, str(place))

BUILD = pathlib.Path(os.environ.get("SL_BUILD", ROOT / "build/release")).resolve()
BED = "test-chart"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.installs)


@pytest.fixture(scope="session")
def pods_bed():
    commands = Commands(BED)
    commands.down()
    try:
        commands.up("--pods")
        commands.must("images", "--build", BUILD)
        commands.kubectl("apply", "--server-side", "-f", binaries.kinds("monitoring"))
        # kubectl validates with it and waits 32 s for it. That is too short on a busy machine.
        commands.kubectl("get", "--raw", "/openapi/v2")
        yield commands
    finally:
        commands.down()


@pytest.fixture(scope="session")
def helm(pods_bed):
    """The bed's helm: a function of helm's arguments that returns the output."""
    program = binaries.clients()["helm"]

    def run(*arguments, check=True):
        answer = subprocess.run(pods_bed.bed.command([program, *map(str, arguments)]), text=True,
                                env=pods_bed.bed.environment(), capture_output=True, check=False)
        assert not check or answer.returncode == 0, answer.stderr + answer.stdout
        return answer.stdout if check else answer
    return run


@pytest.fixture
def installation(helm, pods_bed):
    """The chart. What a test installs is removed at its end."""
    from chart import Installation
    made = Installation(helm, pods_bed)
    yield made
    made.remove()
