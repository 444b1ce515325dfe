# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Tests of the installed parts. The chart's tests use the oldest supported helm and helm 4.

They need no cluster. They run only if the command line names them (make test-packaging). With
--cleared, tests also wait until slow alerts end after their own windows, up to a quarter of an hour
(make test-packaging-full)."""

import pathlib
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
for place in (ROOT / "hack", ROOT / "tests", ROOT / "tests/support", HERE):
    sys.path.insert(0, str(place))

from helm import Helm  # noqa: E402
from testbed import binaries  # noqa: E402


def pytest_ignore_collect(collection_path, config):
    named = [(config.invocation_params.dir / argument.split("::")[0]).resolve()
             for argument in config.args]
    return not any(path == HERE or HERE in path.parents for path in named) or None


def pytest_addoption(parser):
    parser.addoption("--cleared", action="store_true", help="wait until slow alerts are cleared")


@pytest.fixture(scope="session", params=["helm3", "helm"])
def helm(request):
    return Helm(binaries.clients()[request.param])


@pytest.fixture(scope="session")
def helm4():
    return Helm(binaries.clients()["helm"])


@pytest.fixture(scope="session")
def kubectl():
    return binaries.clients()["kubectl"]
