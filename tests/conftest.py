# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""What all Python tests share: a skipped or expected-to-fail test counts as failed."""


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
