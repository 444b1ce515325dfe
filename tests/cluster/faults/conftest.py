# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""A bed with fake nodes and simulated routers, and the operator as a process behind a proxy. All
random choices follow from SEED. SL_CLUSTER_FULL=1 makes many more of them."""

import os
import pathlib
import sys

import pytest

from testbed import local_operator
from testbed.commands import Commands
from testbed.fault_proxy import FaultProxy
from testbed.namespace import Namespace

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import answering  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[3]
BUILD = pathlib.Path(os.environ.get("SL_BUILD", ROOT / "build/release")).resolve()
SEED = os.environ.get("SEED") or "1"
LOG_BYTES = 8000
# The operator's, unless a module has another one. What depends only on polls then comes soon.
POLL_INTERVAL = "500ms"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if report.failed and "seed" in item.fixturenames:
        report.sections.append(("seed", f"repeat with SEED={SEED}"))
    log = item.funcargs.get("operator") if hasattr(item, "funcargs") else None
    if report.failed and log is not None:
        report.sections.append(("operator", log.log.read_text()[-LOG_BYTES:]))
    return report


@pytest.fixture(scope="session")
def seed():
    return SEED


@pytest.fixture(scope="session")
def is_full():
    return bool(os.environ.get("SL_CLUSTER_FULL"))


@pytest.fixture(scope="session")
def bed():
    commands = Commands("test-faults")
    commands.down()
    try:
        commands.up()
        answering.give_addresses(commands.bed)
        local_operator.install(commands)
        with answering.Answering(commands.bed):
            yield commands
    finally:
        commands.down()


@pytest.fixture(scope="session")
def proxy(bed):
    with FaultProxy(bed.bed) as made:
        yield made


@pytest.fixture(scope="module")
def operator(request, bed, proxy):
    """Without leader election: after a kill, it must not wait until a Lease expires."""
    poll_interval = getattr(request.module, "POLL_INTERVAL", POLL_INTERVAL)
    kubeconfig = local_operator.write_kubeconfig(bed, proxy.server)
    with local_operator.LocalOperator(
            BUILD / "bin/sightline-operator", kubeconfig, bed.bed.logs / "operator.log",
            "--leader-elect=false", "--poll-interval", poll_interval) as running:
        yield running


@pytest.fixture
def make_home(operator, bed):
    made = []

    def make(title):
        made.append(Namespace(bed.bed, title))
        return made[-1].__enter__()

    yield make
    for one in made:
        one.__exit__(None, None, None)
