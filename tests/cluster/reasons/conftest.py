# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
import os
import pathlib
import sys

import pytest

from testbed import local_operator
from testbed.commands import Commands
from testbed.fault_proxy import FaultProxy
from testbed.namespace import Namespace, describe_all

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

ROOT = pathlib.Path(__file__).resolve().parents[3]
BUILD = pathlib.Path(os.environ.get("SL_BUILD", ROOT / "build/release")).resolve()
PROGRAM = BUILD / "bin/sightline-operator"
LOG_BYTES = 8000


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Adds the events of the namespaces and the end of the operator's log to a failed report."""
    report = yield
    if report.failed and call.when == "call":
        report.sections.extend(describe_all())
        log = item.funcargs.get("operator")
        if log is not None:
            report.sections.append(("operator", log.log.read_text()[-LOG_BYTES:]))
    return report


@pytest.fixture(scope="session")
def bed():
    """A bed with fake nodes, which only report that pods run, and all that the operator needs."""
    commands = Commands("test-reasons")
    commands.down()
    try:
        commands.up()
        local_operator.install(commands)
        yield commands
    finally:
        commands.down()


@pytest.fixture(scope="session")
def proxy(bed):
    with FaultProxy(bed.bed) as made:
        yield made


@pytest.fixture(scope="session")
def make_operator(bed, proxy):
    """Makes an operator that is not started, with these flags beside those of an installation."""
    kubeconfig = local_operator.write_kubeconfig(bed, proxy.server)

    def make(*flags):
        return local_operator.LocalOperator(PROGRAM, kubeconfig, bed.bed.logs / "operator.log",
                                            *flags)

    return make


@pytest.fixture(scope="module")
def operator(make_operator):
    with make_operator() as running:
        yield running


@pytest.fixture
def home(operator, bed, request):
    with Namespace(bed.bed, request.node.name) as made:
        yield made
