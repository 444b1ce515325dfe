# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""What all Python tests share: a skipped or expected-to-fail test counts as failed, and so does a
test during which any program left a sanitizer's report."""

import os
import pathlib

import pytest


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
