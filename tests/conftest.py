# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Rules for all Python tests. A skipped or expected-to-fail test counts as failed. So does a test
during which a program left a sanitizer's report. Tests may run in several processes (-n)."""

import contextlib
import fcntl
import os
import pathlib

import pytest

# True in a pytest that a test runs. The outer test already holds the room. Waiting for the door
# could deadlock: another test may hold the door and wait for the outer test.
IS_WITHIN_A_TEST = "PYTEST_CURRENT_TEST" in os.environ


def pytest_configure():
    """Gives each of several processes reports of its own, apart from those of other tests."""
    prefix = os.environ.get("SL_SANITIZER_REPORTS")
    process = os.environ.get("PYTEST_XDIST_WORKER")
    if not prefix or not process:
        return
    own = f"{prefix}-{process}"
    os.environ["SL_SANITIZER_REPORTS"] = own
    for tool in ("ASAN", "UBSAN", "LSAN", "TSAN"):
        name = f"{tool}_OPTIONS"
        os.environ[name] = os.environ[name].replace(f"log_path={prefix}", f"log_path={own}")


def pytest_collection_modifyitems(items):
    # Tests marked `alone` come first. Then few processes wait for the end of long tests.
    items.sort(key=lambda item: item.get_closest_marker("alone") is None)


@contextlib.contextmanager
def locked(path, how):
    with open(path, encoding="utf-8") as file:
        fcntl.flock(file, how)
        yield


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """A test marked `alone` locks the room exclusively, and other tests share it. A test holds the
    door while it waits for the room: no later test can enter first. Both are locks on files that
    are never written."""
    is_alone = item.get_closest_marker("alone") is not None
    door, room = pathlib.Path(__file__), pathlib.Path(__file__).with_name("pytest.ini")
    if IS_WITHIN_A_TEST:
        return (yield)
    with contextlib.ExitStack() as inside:
        with locked(door, fcntl.LOCK_EX):
            inside.enter_context(locked(room, fcntl.LOCK_EX if is_alone else fcntl.LOCK_SH))
        return (yield)


def take_sanitizer_reports():
    """Returns the reports of instrumented programs since the last call, one file per process."""
    prefix = os.environ.get("SL_SANITIZER_REPORTS")
    if not prefix:
        return ""
    prefix = pathlib.Path(prefix)
    texts = []
    for report in sorted(prefix.parent.glob(prefix.name + ".*")):
        texts.append(report.read_text(errors="replace"))
        report.rename(report.with_name("seen-" + report.name))
    return "\n".join(texts)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item):
    # Here the programs of the test have ended, or after a module's last test those of the module.
    try:
        return (yield)
    finally:
        reports = take_sanitizer_reports()
        if reports:
            pytest.fail(f"a program of this test was reported by its sanitizer:\n{reports}")


def pytest_sessionfinish(session, exitstatus):
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None:
        return
    avoided = [
        report
        for outcome in ("skipped", "xfailed", "xpassed")
        for report in reporter.stats.get(outcome, [])
    ]
    if avoided and exitstatus == 0:
        reporter.write_line(f"{len(avoided)} tests were skipped: a skipped test fails the run")
        session.exitstatus = 1
