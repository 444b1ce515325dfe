# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Tests the verdicts of the table: it must report every kind of problem."""

import dataclasses
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from table import ROWS_MIN, Row, line_of, markdown_of, problems_of  # noqa: E402

RIGHT = Row(kind="text", what="a text", worker="a", predicted=64, actual=64, tokens_ours=70,
            tokens_engine=70, ids_equal=True, not_counted="", first_after="", audit="equal")


def row(**changes):
    return dataclasses.replace(RIGHT, **changes)


def after(why):
    lost = row(predicted=64, actual=0, audit="over", first_after=why)
    return [lost, row(predicted=32, actual=32)]


@pytest.fixture
def good():
    return [row() for _ in range(ROWS_MIN)] + after("reset") + after("restart")


def test_a_run_without_errors_has_no_problems(good):
    assert not list(problems_of(good))


@pytest.mark.parametrize("changes, says", [
    ({"actual": 96, "audit": "under"}, "predicted 64 cached tokens, found 96"),
    ({"actual": 32, "audit": "over"}, "predicted 64 cached tokens, found 32"),
    ({"tokens_engine": 71}, "the engine's prompt is not the one"),
    ({"ids_equal": False}, "the engine's prompt is not the one"),
    ({"not_counted": "unknown_media"}, "not counted because of unknown_media"),
    ({"audit": "over"}, "the router's own audit says 'over'"),
])
def test_problems_name_a_wrong_row(good, changes, says):
    good[7] = row(**changes)
    problems = list(problems_of(good))
    assert len(problems) == 1
    assert problems[0].startswith("row 8: ") and says in problems[0]


def test_the_first_row_after_a_loss_must_have_the_right_prompt(good):
    assert line_of(1, after("reset")[0]).endswith("no, first after reset")
    good[ROWS_MIN] = row(predicted=64, actual=0, audit="over", first_after="reset", ids_equal=False)
    assert len(list(problems_of(good))) == 1


def test_the_second_row_after_a_loss_counts(good):
    good[ROWS_MIN + 1] = row(predicted=64, actual=0, audit="over")
    assert any("predicted 64 cached tokens, found 0" in p for p in problems_of(good))


def test_an_audit_that_misses_an_error_is_a_problem(good):
    good[ROWS_MIN] = row(predicted=64, actual=0, audit="", first_after="reset")
    assert list(problems_of(good)) == [f"row {ROWS_MIN + 1}: the router's own audit says ''"]


def test_a_run_that_shows_too_little_is_a_problem(good):
    few = good[ROWS_MIN - 10:]
    assert any("judged, wanted are" in p for p in problems_of(few))
    idle = [row(predicted=0, actual=0) for _ in range(3 * ROWS_MIN)] + good[ROWS_MIN:]
    assert any("too little is shown" in p for p in problems_of(idle))
    unaudited = [row(audit="") for _ in good[:ROWS_MIN]] + good[ROWS_MIN:]
    assert any("passed over" in p for p in problems_of(unaudited))


def test_a_loss_without_requests_or_recovery_is_a_problem(good):
    unmet = good[:ROWS_MIN + 2]
    assert list(problems_of(unmet)) == ["no request reached the worker after its restart"]
    good[-1] = row(worker="b")
    assert list(problems_of(good)) == [
        "nothing was reused on the worker after its restart: healing is not shown"]


def test_the_report_counts_by_kind_without_exempt_rows(good):
    good[3] = row(kind="picture", actual=0, audit="over")
    lines = markdown_of(good).splitlines()
    texts, judged = len(good) - 1, len(good) - 3
    assert f"| text | {texts} | {texts} | {judged} of {judged} | 2 |" in lines
    assert "| picture | 1 | 1 | 0 of 1 | 0 |" in lines
    assert "| 4 | picture | a text | w0 | 70 | 64 | 0 | WRONG |" in lines
