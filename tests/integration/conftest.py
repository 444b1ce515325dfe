# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
import os
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "hack"))
sys.path.insert(0, str(ROOT / "tests/support"))


@pytest.fixture(scope="session")
def build():
    return pathlib.Path(os.environ.get("SL_BUILD", ROOT / "build/release"))


@pytest.fixture
def logs(build, request):
    return build / "test-output" / request.node.name.replace("/", "_")


@pytest.fixture(scope="session")
def shared_logs(build, worker_id):
    """The logs of programs that tests share. Each process of the test runner has its own."""
    return build / "test-output" / f"shared-{worker_id}"
