# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Tests on a real Kubernetes take minutes of processor time for the first build and want a machine
that `hack/testbed check` is content with: they run only when they are named (make test-cluster).

A test that wants real pods takes `pods_bed`, or `namespace` for one of its own there. Where the
machine cannot run pods it fails, unless TESTBED_PODS=off leaves all such tests out; the last line
then counts them."""

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

# A bed with pods that is up and has the images already, for several processes of tests.
SHARED_BED = os.environ.get("SL_PODS_BED")
OFF = os.environ.get("TESTBED_PODS") == "off"
BUILD = pathlib.Path(os.environ.get("SL_BUILD", ROOT / "build/release"))
NOT_RUN = pytest.StashKey()


def pytest_configure(config):
    config.addinivalue_line("markers", "pods: wants real pods; set on all that take pods_bed")
    config.addinivalue_line("markers", "ends_pods: kills programs of the bed with pods; comes last")
    config.addinivalue_line("markers", "installs: has a bed of its own, whose cluster it changes")
    config.stash[NOT_RUN] = None


def pytest_ignore_collect(collection_path, config):
    named = [(config.invocation_params.dir / argument.split("::")[0]).resolve()
             for argument in config.args]
    return not any(path == HERE or HERE in path.parents for path in named) or None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Those that end the bed come last. hack/run_cluster_tests tells by the mark `pods`, which must
    be there before a choice by marks is made."""
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
    """What happened in the namespaces stands below a failure."""
    report = yield
    if report.failed and call.when != "teardown" and "pods_bed" in item.fixturenames:
        report.sections.extend(describe_all())
    return report


@pytest.fixture(scope="session")
def pods_bed():
    """The machine's bed with real pods, for all tests of the run; it has the images of the build
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
    """Makes namespaces of the test, by words and labels, and removes them at its end."""
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
