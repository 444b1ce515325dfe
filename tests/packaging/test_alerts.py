# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Tests each alert on made-up series with promtool. It must fire in time and report the value. It
must not fire early, just below its threshold, without data or over a restart."""

import pathlib
import subprocess

import pytest
import yaml
from alert_cases import CASES, HEALTHY, RESTARTED, ROLL_OUT
from helm import CHART

RULES = sorted((CHART / "alerts").glob("*.yaml"))
ROOT = CHART.parents[1]


def all_rules():
    return {rule["alert"]: rule for path in RULES
            for group in yaml.safe_load(path.read_text(encoding="utf-8"))["groups"]
            for rule in group["rules"]}


ALERTS = all_rules()


def minutes(duration):
    """Converts 90s, 5m or 1h to minutes."""
    return int(duration[:-1]) * {"s": 1 / 60, "m": 1, "h": 60}[duration[-1]]


def series_of(series):
    return [{"series": name, "values": values} for name, values in series.items()]


def promtool(folder, tests):
    """Runs tests with promtool, and fails with its output."""
    file = pathlib.Path(folder) / "tests.yaml"
    file.write_text(yaml.safe_dump({
        "rule_files": [str(path) for path in RULES], "evaluation_interval": "1m",
        "tests": tests}), encoding="utf-8")
    run = subprocess.run(["promtool", "test", "rules", file], text=True, capture_output=True)
    assert run.returncode == 0, run.stdout + run.stderr


def silent(series, alerts, at):
    return [{"interval": "1m", "input_series": series_of(series), "alert_rule_test": [
        {"eval_time": f"{minute:g}m", "alertname": alert, "exp_alerts": []}
        for alert in alerts for minute in at]}]


def fired(name, case):
    rule = ALERTS[name]
    return {"exp_labels": {**rule["labels"], **case["labels"]}, "exp_annotations": {
        "summary": rule["annotations"]["summary"], "description": case["says"],
        "runbook_url": rule["annotations"]["runbook_url"]}}


def test_every_alert_has_a_case():
    assert ALERTS.keys() == CASES.keys()


@pytest.mark.parametrize("name", sorted(CASES))
def test_an_alert_fires_and_says_the_value(tmp_path, name):
    case = CASES[name]
    promtool(tmp_path, [{"interval": "1m", "input_series": series_of(case["fires"]),
                         "alert_rule_test": [{"eval_time": f"{case['at']}m", "alertname": name,
                                              "exp_alerts": [fired(name, case)]}]}])


@pytest.mark.parametrize("name", sorted(CASES))
def test_an_alert_waits_for_its_time(tmp_path, name):
    """case["at"] is the first minute at which the alert fires. One minute before, it is silent."""
    case = CASES[name]
    promtool(tmp_path, silent(case["fires"], [name], [case["at"] - 1]))
    assert case["at"] - 1 >= minutes(ALERTS[name]["for"]) - 1


@pytest.mark.parametrize("name", sorted(CASES))
def test_an_alert_is_silent_just_below_its_threshold(tmp_path, name):
    for series in CASES[name]["below"]:
        promtool(tmp_path, silent(series, [name], range(0, 150, 5)))


def test_all_alerts_are_silent_without_data(tmp_path):
    promtool(tmp_path, silent({}, ALERTS, (0, 60, 120)))


@pytest.mark.parametrize("world", [HEALTHY, RESTARTED, ROLL_OUT],
                         ids=["healthy", "restarted", "rolled-out"])
def test_all_alerts_are_silent_in_a_healthy_deployment(tmp_path, world):
    promtool(tmp_path, silent(world, ALERTS, range(0, 180, 2)))


def test_every_alert_has_a_complete_runbook():
    for name, rule in ALERTS.items():
        assert name.startswith("Sightline")
        assert rule["labels"]["severity"] in ("critical", "warning")
        assert "$value" in rule["annotations"]["description"], name
        page = ROOT / rule["annotations"]["runbook_url"]
        text = page.read_text(encoding="utf-8")
        assert text.startswith(f"# {name}\n"), page
        heads = [line[3:] for line in text.splitlines() if line.startswith("## ")]
        assert heads == ["Meaning", "Impact", "Diagnosis", "Mitigation"], page
    pages = {page.stem for page in (ROOT / "docs/runbooks").glob("Sightline*.md")}
    assert pages == ALERTS.keys()


def test_alert_expressions_end_with_their_thresholds():
    names = yaml.safe_load((CHART / "alert-thresholds.yaml").read_text(encoding="utf-8"))
    for name, threshold in names.items():
        end = ALERTS[threshold["alert"]]["expr"].split()[-2:]
        assert end[0] in "<>" and float(end[1]) == threshold["value"], name


def test_a_threshold_in_values_replaces_the_alerts_own(helm4):
    names = yaml.safe_load((CHART / "alert-thresholds.yaml").read_text(encoding="utf-8"))
    for name, threshold in names.items():
        rules = rules_of(helm4, {"thresholds": {name: 0.375}})
        ours = ALERTS[threshold["alert"]]["expr"].split()
        assert rules[threshold["alert"]]["expr"].split() == [*ours[:-1], "0.375"], name
        others = {one: rule["expr"] for one, rule in rules.items() if one != threshold["alert"]}
        assert others == {one: rule["expr"] for one, rule in ALERTS.items() if one in others}


def rules_of(helm, alerts):
    objects = helm.objects(values={"alerts": {"enabled": True, **alerts}})
    return {rule["alert"]: rule for one in objects if one["kind"] == "PrometheusRule"
            for group in one["spec"]["groups"] for rule in group["rules"]}


def test_chart_renders_all_rules_except_disabled_ones(helm4):
    base = "https://example.com/books/"
    rules = rules_of(helm4, {"runbookBase": base, "disabled": ["SightlineLoadImbalance"]})
    assert rules.keys() == ALERTS.keys() - {"SightlineLoadImbalance"}
    for name, rule in rules.items():
        assert rule["expr"] == ALERTS[name]["expr"] and rule["for"] == ALERTS[name]["for"]
        assert rule["annotations"].pop("runbook_url") == f"{base}{name}.md"
        ours = dict(ALERTS[name]["annotations"])
        ours.pop("runbook_url")
        assert rule["annotations"] == ours


def test_prometheus_loads_the_alert_rules(tmp_path):
    file = tmp_path / "prometheus.yaml"
    file.write_text(yaml.safe_dump({"rule_files": [str(path) for path in RULES]}),
                    encoding="utf-8")
    subprocess.run(["promtool", "check", "config", file], check=True, capture_output=True)
