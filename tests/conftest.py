# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""What all Python tests share: a skipped or expected-to-fail test counts as failed, and so does a
test during which any program left a sanitizer's report. Tests may run in several processes (-n)."""

import contextlib
import fcntl
import os
import pathlib

import pytest

# Of a pytest that a test runs, which is in the room as that test is: waiting for the door could be
# waiting for one who waits for that test.
IS_WITHIN_A_TEST = "PYTEST_CURRENT_TEST" in os.environ


def pytest_configure():
    """A process of several has reports of its own: none of another one's test."""
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
    # First, so that few wait for the end of long ones.
    items.sort(key=lambda item: item.get_closest_marker("alone") is None)


@contextlib.contextmanager
def locked(path, how):
    with open(path, encoding="utf-8") as file:
        fcntl.flock(file, how)
        yield


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """A test marked `alone` has the room for itself. Whoever waits for the room holds its door, so
    that those who come later cannot keep him out. Both are locks on files that nobody writes."""
    is_alone = item.get_closest_marker("alone") is not None
    door, room = pathlib.Path(__file__), pathlib.Path(__file__).with_name("pytest.ini")
    if IS_WITHIN_A_TEST:
        return (yield)
    with contextlib.ExitStack() as inside:
        with locked(door, fcntl.LOCK_EX):
            inside.enter_context(locked(room, fcntl.LOCK_EX if is_alone else fcntl.LOCK_SH))
        return (yield)


def take_sanitizer_reports():
    """The reports written since the last call, one file a process, by instrumented programs."""
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
    # After the programs of the test, or of its module with the last test, have ended.
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
