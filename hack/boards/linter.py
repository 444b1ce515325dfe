# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""The 17 rules of Grafana's dashboard-linter (4d0844b), with its names. The two rules about LogQL
check nothing: no board uses Loki, and panel-datasource-rule makes sure of this."""

import re

import promql_parser as promql

from . import contract

RULES = (
    "template-datasource-rule", "template-job-rule", "template-instance-rule",
    "template-label-promql-rule", "template-on-time-change-reload-rule", "panel-datasource-rule",
    "panel-title-description-rule", "panel-units-rule", "panel-no-targets-rule",
    "target-logql-rule", "target-logql-auto-rule", "target-promql-rule",
    "target-rate-interval-rule", "target-job-rule", "target-instance-rule",
    "target-counter-agg-rule", "uneditable-dashboard",
)
UNITS = {"short", "s", "bytes", "percentunit", "reqps", "cps"}
COUNTERS = ("_total", "_sum", "_count", "_bucket")
# (rule, board, panel): the reason for the exception.
EXCEPTIONS = {
    **{(f"target-{label}-rule", "overview", "Firing alerts"):
       "alerts are of whole deployments; they have no such label" for label in ("job", "instance")},
    **{(f"target-{label}-rule", "engines", "Reused, by the engines and by us"):
       "engines are targets of another job" for label in ("job", "instance")},
    **{(f"target-{label}-rule", "operator", "Certificates of NATS"):
       "frontends, routers and agents are targets of other jobs than the operator"
       for label in ("job", "instance")},
    ("target-counter-agg-rule", "engines", "Mismatches"):
        "one contradiction hours ago still matters, and a rate would not show it",
}


def lint(name, board):
    """Returns findings as (rule, panel, text)."""
    found = list(of_variables(board))
    if board.get("editable"):
        found.append(("uneditable-dashboard", "", "may be edited"))
    for panel in board["panels"]:
        if panel["type"] != "row":
            found += [(rule, panel["title"], text) for rule, text in of_panel(panel)]
    kept = [(rule, panel, text) for rule, panel, text in found
            if (rule, name, panel) not in EXCEPTIONS]
    hit = {(rule, name, panel) for rule, panel, _ in found}
    for rule, board_name, panel in EXCEPTIONS:
        if board_name == name and (rule, name, panel) not in hit:
            kept.append((rule, panel, "an exception that nothing needs"))
    return kept


def of_variables(board):
    variables = {one["name"]: one for one in board["templating"]["list"]}
    sources = [one for one in variables.values() if one["type"] == "datasource"]
    if len(sources) != 1 or sources[0]["name"] != "datasource" or \
            sources[0]["query"] != "prometheus" or sources[0]["label"] != "Data source":
        yield "template-datasource-rule", "", "needs one, of Prometheus"
    for name in ("job", "instance"):
        one = variables.get(name, {})
        wanted = {"type": "query", "label": name.capitalize(), "multi": True, "allValue": ".+"}
        if any(one.get(key) != value for key, value in wanted.items()) or \
                one["datasource"]["uid"] != "${datasource}":
            yield f"template-{name}-rule", "", f"is no proper variable {name}"
    for one in variables.values():
        if one["type"] != "query":
            continue
        if one["refresh"] != 2:
            yield "template-on-time-change-reload-rule", "", one["name"]
        asked = re.fullmatch(r"label_values\((.*), (\w+)\)", one["query"]["query"])
        texts = contract.findings(asked[1]) if asked else ["is no label_values(metric, label)"]
        known = contract.labels_of(promql.parse(asked[1])) if asked and not texts else set()
        if texts or asked[2] not in known:
            yield "template-label-promql-rule", "", f"{one['name']}: {texts or asked[2]}"


def of_panel(panel):
    if panel["datasource"]["uid"] != "${datasource}" or panel["datasource"]["type"] != "prometheus":
        yield "panel-datasource-rule", "does not ask what the variable chose"
    if not panel["title"] or not panel["description"]:
        yield "panel-title-description-rule", "says not what it shows"
    if panel["fieldConfig"]["defaults"].get("unit") not in UNITS:
        yield "panel-units-rule", str(panel["fieldConfig"]["defaults"].get("unit"))
    if not panel["targets"]:
        yield "panel-no-targets-rule", "asks nothing"
    for target in panel["targets"]:
        yield from of_target(target)


def of_target(target):
    texts = contract.findings(target["expr"])
    if texts:
        yield "target-promql-rule", f"{target['refId']}: {'; '.join(texts)}"
        return
    tree = promql.parse(contract.plain(target["expr"]))
    for found in re.findall(r"\[([^\]]+)\]", target["expr"]):
        if found != "$__rate_interval":
            yield "target-rate-interval-rule", f"[{found}]"
    for selector in contract.selectors(tree):
        matchers = {one.name: one.value for one in selector.matchers.matchers}
        for label in ("job", "instance"):
            if matchers.get(label) != f"${label}":
                yield f"target-{label}-rule", contract.name_of(selector)
    for selector in bare_counters(tree):
        yield "target-counter-agg-rule", contract.name_of(selector)


def bare_counters(node, is_rated=False):
    """Yields counters outside of rate(), irate() and increase()."""
    if isinstance(node, promql.VectorSelector):
        if not is_rated and contract.name_of(node).endswith(COUNTERS):
            yield node
        return
    if isinstance(node, promql.Call):
        is_rated = is_rated or node.func.name in ("rate", "irate", "increase")
    for part in contract.parts_of(node):
        yield from bare_counters(part, is_rated)
