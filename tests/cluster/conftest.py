# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Tests on a real Kubernetes. The first build takes minutes of processor time, and the machine must
pass `hack/testbed check`. So these tests run only when they are named (make test-cluster).

A test with real pods uses `pods_bed`, or `namespace` for a namespace of its own there. If the
machine cannot run pods, the test fails. TESTBED_PODS=off excludes all these tests, and the last
line then gives their number."""

import os
import pathlib
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from testbed import checks  # noqa: E402
from testbed.commands import Commands  # noqa: E402
from testbed.namespace import Namespace, describe_all  # noqa: E402

# A running bed with pods and images, for several processes of tests.
SHARED_BED = os.environ.get("SL_PODS_BED")
OFF = os.environ.get("TESTBED_PODS") == "off"
BUILD = pathlib.Path(os.environ.get("SL_BUILD", ROOT / "build/release"))
NOT_RUN = pytest.StashKey()


def pytest_configure(config):
    config.addinivalue_line("markers", "pods: needs real pods; set on all tests that use pods_bed")
    config.addinivalue_line("markers", "ends_pods: kills programs of the bed with pods; comes last")
    config.addinivalue_line("markers", "installs: has a bed of its own, whose cluster it changes")
    config.stash[NOT_RUN] = None


def pytest_ignore_collect(collection_path, config):
    named = [(config.invocation_params.dir / argument.split("::")[0]).resolve()
             for argument in config.args]
    return not any(path == HERE or HERE in path.parents for path in named) or None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Puts tests that end the bed last. hack/run_cluster_tests selects by the mark `pods`, so it is
    added before pytest selects by marks."""
    with_pods = [item for item in items if "pods_bed" in item.fixturenames]
    for item in with_pods:
        item.add_marker(pytest.mark.pods)
    items.sort(key=lambda item: item.get_closest_marker("ends_pods") is not None)
    if OFF and with_pods:
        config.stash[NOT_RUN] = f"{len(with_pods)} of {len(items)} not run: TESTBED_PODS=off"
        config.hook.pytest_deselected(items=with_pods)
        items[:] = [item for item in items if item not in with_pods]


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config):
    if config.stash.get(NOT_RUN, None):
        print(config.stash[NOT_RUN])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Adds what happened in the namespaces to the report of a failure."""
    report = yield
    if report.failed and call.when != "teardown" and "pods_bed" in item.fixturenames:
        report.sections.extend(describe_all())
    return report


@pytest.fixture(scope="session")
def pods_bed():
    """The machine's bed with real pods, for all tests of the run. It has the images of the build
    tree: sightline:testbed, sightline-operator:testbed, nats:testbed, client:testbed."""
    lacking = checks.lacking()
    if lacking:
        pytest.fail("this machine cannot run pods (TESTBED_PODS=off leaves such tests out):\n"
                    + "\n".join(f"  {what}: {fix}" for what, fix in lacking), pytrace=False)
    if SHARED_BED:
        yield Commands(SHARED_BED)
        return
    commands = Commands("test-pods")
    commands.down()
    try:
        commands.up("--pods")
        commands.must("images", "--build", BUILD)
        yield commands
    finally:
        commands.down()


@pytest.fixture
def make_namespace(pods_bed, request):
    """Makes namespaces for the test, with a title and labels, and removes them at its end."""
    made = []

    def make(title=request.node.name, labels=None):
        made.append(Namespace(pods_bed.bed, title, labels))
        return made[-1].__enter__()

    yield make
    for namespace in made:
        namespace.__exit__(None, None, None)


@pytest.fixture
def namespace(make_namespace):
    return make_namespace()
