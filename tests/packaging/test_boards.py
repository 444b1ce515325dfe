# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Boards and alerts use only metrics and labels of the programs. The checks find each kind of
fault."""

import copy
import json
import subprocess

import promql_parser as promql
import pytest
import yaml
from boards import BOARDS, contract, linter
from boards.model import board_json
from boards.typed import fields_lost
from helm import CHART, ROOT

BY_NAME = {board.name: board_json(board) for board in BOARDS}


def alerts():
    for path in (CHART / "alerts").glob("*.yaml"):
        for group in yaml.safe_load(path.read_text(encoding="utf-8"))["groups"]:
            yield from group["rules"]


def expressions():
    yield from (rule["expr"] for rule in alerts())
    yield from (target["expr"] for board in BY_NAME.values() for panel in board["panels"]
                for target in panel.get("targets", []))


def test_dashboards_check_finds_nothing():
    run = subprocess.run([ROOT / "hack/dashboards", "check"], text=True, capture_output=True)
    assert run.returncode == 0, run.stdout


def test_alerts_use_only_existing_metrics_and_labels():
    for rule in alerts():
        assert contract.findings(rule["expr"]) == [], rule["alert"]


def test_the_chart_has_a_configmap_for_each_board(helm4):
    made = {}
    for one in helm4.objects():
        if one["kind"] == "ConfigMap":
            made |= {key: json.loads(text) for key, text in one["data"].items()}
            assert one["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert made == {f"sightline-{name}.json": board for name, board in BY_NAME.items()}


def used_metrics():
    return {contract.name_of(selector) for expr in expressions()
            for selector in contract.selectors(promql.parse(contract.plain(expr)))}


def test_contract_finds_a_renamed_metric(monkeypatch):
    names = {name for name in used_metrics() if name.startswith("sightline_")}
    assert len(names) > 60
    for name in names:
        known = dict(contract.metrics())
        known[f"{name}_new"] = known.pop(name)
        monkeypatch.setattr(contract, "metrics", lambda known=known: known)
        assert any(f"no metric {name}" in text for expr in expressions()
                   for text in contract.findings(expr))
        monkeypatch.undo()


def named_labels(tree):
    """Yields the labels that an expression names to match, group or join."""
    for node in contract.nodes(tree):
        modifier = getattr(node, "modifier", None)
        named = getattr(modifier, "labels", None) or getattr(
            getattr(modifier, "matching", None), "labels", None) or []
        yield from named
    for selector in contract.selectors(tree):
        yield from (one.name for one in selector.matchers.matchers)


def test_contract_finds_a_dropped_label(monkeypatch):
    dropped = 0
    for expr in sorted(set(expressions())):
        tree = promql.parse(contract.plain(expr))
        named = set(named_labels(tree))
        for name in {contract.name_of(one) for one in contract.selectors(tree)}:
            for label in named.intersection(contract.metrics()[name][0]):
                known = dict(contract.metrics())
                labels, combine = known[name]
                known[name] = (tuple(one for one in labels if one != label), combine)
                monkeypatch.setattr(contract, "metrics", lambda known=known: known)
                assert contract.findings(expr), (expr, name, label)
                monkeypatch.undo()
                dropped += 1
    assert dropped > 100


def test_contract_finds_sums_of_equal_replica_values():
    told_alike = "sightline_index_blocks"
    for wrong in ("sum({})", "sum by (worker) ({})", "avg({})", "sum(rate({}[5m]))",
                  "max(sum by (worker) ({}))", "1 + sum({}) / 2"):
        assert contract.findings(wrong.format(told_alike)), wrong
    for right in ("max({})", "sum(max by (worker) ({}))", "sum by (instance) ({})",
                  "max by (worker) (rate({}[5m]))"):
        assert contract.findings(right.format(told_alike)) == [], right


def test_contract_finds_wrong_expressions():
    for wrong in ("sum(", "sightline_request_total", 'sightline_requests_total{status="200"}',
                  "sum by (status) (sightline_requests_total)",
                  "sum by (le) (sightline_requests_total)", "sightline_first_token_seconds"):
        assert contract.findings(wrong), wrong


def first_panel(board):
    return next(one for one in board["panels"] if one["type"] != "row")


def variable(board, name):
    return next(one for one in board["templating"]["list"] if one["name"] == name)


def with_expr(expr):
    return lambda board: first_panel(board)["targets"][0].update(expr=expr)


CHOSEN = 'job=~"$job", instance=~"$instance"'
FAULTS = {
    "template-datasource-rule": lambda board: variable(board, "datasource").update(query="loki"),
    "template-job-rule": lambda board: variable(board, "job").update(allValue=".*"),
    "template-instance-rule": lambda board: variable(board, "instance").update(multi=False),
    "template-label-promql-rule": lambda board: variable(board, "job")["query"].update(
        query="label_values(sightline_build_info, route)"),
    "template-on-time-change-reload-rule": lambda board: variable(board, "job").update(refresh=1),
    "panel-datasource-rule": lambda board: first_panel(board)["datasource"].update(type="loki"),
    "panel-title-description-rule": lambda board: first_panel(board).update(description=""),
    "panel-units-rule": lambda board: first_panel(board)["fieldConfig"]["defaults"].update(
        unit="furlongs"),
    "panel-no-targets-rule": lambda board: first_panel(board).update(targets=[]),
    "target-promql-rule": with_expr("sum("),
    "target-rate-interval-rule": with_expr(
        f"sum(rate(sightline_requests_total{{{CHOSEN}}}[5m]))"),
    "target-job-rule": with_expr('sum(sightline_requests_active{instance=~"$instance"})'),
    "target-instance-rule": with_expr('sum(sightline_requests_active{job=~"$job"})'),
    "target-counter-agg-rule": with_expr(f"sum(sightline_requests_total{{{CHOSEN}}})"),
    "uneditable-dashboard": lambda board: board.update(editable=True),
}


def test_every_rule_that_can_be_broken_has_a_fault():
    assert FAULTS.keys() == set(linter.RULES) - {"target-logql-rule", "target-logql-auto-rule"}


@pytest.mark.parametrize("rule", FAULTS)
def test_linter_finds_a_broken_rule(rule):
    board = copy.deepcopy(BY_NAME["cache"])
    FAULTS[rule](board)
    assert {found for found, _, _ in linter.lint("cache", board)} == {rule}


def test_fields_lost_finds_unknown_fields():
    for plant in (lambda board: first_panel(board).update(titel="x"),
                  lambda board: first_panel(board)["targets"][0].update(exprr="x"),
                  lambda board: first_panel(board)["fieldConfig"]["defaults"].update(unitt="s")):
        board = copy.deepcopy(BY_NAME["cache"])
        assert fields_lost(board) == []
        plant(board)
        assert len(fields_lost(board)) == 1
