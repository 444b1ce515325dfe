# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Checks PromQL expressions: each metric and label must be in docs/metrics.md or in FOREIGN. A test
compares docs/metrics.md with the programs. Also checks that an expression combines the series of
replicas (sum or max) as docs/metrics.md says for each metric."""

import functools
import pathlib
import re

import promql_parser as promql

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Labels that Prometheus and the PodMonitors add to a target.
OF_TARGETS = {"job", "instance", "namespace", "pod", "container", "endpoint",
              "sightline_dev_router", "sightline_dev_revision", "sightline_dev_pool",
              "app_kubernetes_io_component"}
# Metrics of other programs: labels, and how to combine the values of replicas.
FOREIGN = {
    "up": ((), "sum"),
    "ALERTS": (("alertname", "alertstate", "severity"), "sum"),
    # vLLM 0.22 and later.
    "vllm:prefix_cache_hits_total": (("engine", "model_name"), "sum"),
    "vllm:prefix_cache_queries_total": (("engine", "model_name"), "sum"),
}
ADDS = {"sum", "avg"}


@functools.cache
def metrics():
    """Returns {name: (labels, sum or max)}. A histogram has the names of its series."""
    found = dict(FOREIGN)
    text = (ROOT / "docs/metrics.md").read_text(encoding="utf-8")
    for line in text.splitlines():
        row = re.match(r"\| `(\w+)` \| (counter|gauge|histogram) \| (.*?) \| (sum|max) \|", line)
        if not row:
            continue
        name, kind, labels, combine = row.groups()
        labels = tuple(re.findall(r"`([a-z_]+)`", labels))
        if kind == "histogram":
            found[f"{name}_bucket"] = ((*labels, "le"), combine)
            found[f"{name}_sum"] = found[f"{name}_count"] = (labels, combine)
        else:
            found[name] = (labels, combine)
    return found


def plain(expr):
    """Replaces Grafana's time variables with durations, because the parser needs them."""
    return (expr.replace("$__rate_interval", "5m").replace("$__range", "1h")
            .replace("$__interval", "1m"))


def parts_of(node):
    """Returns the direct child nodes."""
    if isinstance(node, promql.BinaryExpr):
        return [node.lhs, node.rhs]
    if isinstance(node, promql.Call):
        return list(node.args)
    if isinstance(node, promql.MatrixSelector):
        return [node.vector_selector]
    if isinstance(node, promql.AggregateExpr):
        return [node.expr, *([node.param] if node.param is not None else [])]
    return [node.expr] if hasattr(node, "expr") else []


def selectors(node):
    if isinstance(node, promql.VectorSelector):
        yield node
    for part in parts_of(node):
        yield from selectors(part)


def nodes(node):
    yield node
    for part in parts_of(node):
        yield from nodes(part)


def name_of(selector):
    return selector.name or next(
        (one.value for one in selector.matchers.matchers if one.name == "__name__"), "")


# The labels of a node whose value is a number, not series.
NUMBER = None


def labels_of(node):
    """Returns the labels that the node's series may have, or NUMBER for a number."""
    if isinstance(node, promql.VectorSelector):
        return {*OF_TARGETS, *metrics().get(name_of(node), ((), ""))[0]}
    if isinstance(node, promql.AggregateExpr):
        if node.modifier is None:
            return set()
        below = labels_of(node.expr) or set()
        named = set(node.modifier.labels)
        return named if str(node.modifier.type).endswith("By") else below - named
    if isinstance(node, promql.BinaryExpr):
        return labels_of_both(node)
    if isinstance(node, promql.Call):
        given = [labels_of(part) for part in node.args]
        given = [one for one in given if one is not NUMBER]
        if not given:
            return set() if node.func.name == "vector" else NUMBER
        return set() if node.func.name == "absent" else given[-1] - (
            {"le"} if node.func.name == "histogram_quantile" else set())
    below = parts_of(node)
    return labels_of(below[0]) if below else NUMBER


def labels_of_both(node):
    one, other = labels_of(node.lhs), labels_of(node.rhs)
    if one is NUMBER or other is NUMBER:
        return other if one is NUMBER else one
    if str(node.op) in ("and", "unless"):
        return one
    if str(node.op) == "or" or node.modifier is None or node.modifier.matching is None:
        return one & other
    on = set(node.modifier.matching.labels)
    return one if "group_left" in str(node.modifier) else on


def matched_on(node):
    """Yields labels that the node matches on and that one of its sides does not have."""
    if node.modifier is None or node.modifier.matching is None:
        return
    for side in (node.lhs, node.rhs):
        known = labels_of(side)
        if known is not NUMBER:
            yield from (label for label in node.modifier.matching.labels if label not in known)


def keeps_replicas(node):
    return node.modifier is not None and str(node.modifier.type).endswith("By") and \
        "instance" in node.modifier.labels


def added_up(node, is_added=False):
    """Yields the selectors whose series of several replicas the expression adds up."""
    if isinstance(node, promql.VectorSelector):
        if is_added:
            yield node
        return
    if isinstance(node, promql.AggregateExpr):
        # "by (instance)" keeps one series for each replica, so it adds up no replicas.
        is_added = str(node.op) in ADDS and not keeps_replicas(node)
    # The result of a set operation has no values of its right side.
    is_set = isinstance(node, promql.BinaryExpr) and str(node.op) in ("and", "unless")
    for part in [node.lhs] if is_set else parts_of(node):
        yield from added_up(part, is_added)


def findings(expr):
    """Returns the errors of an expression, one line each."""
    try:
        tree = promql.parse(plain(expr))
    except ValueError as error:
        return [f"does not parse: {error}"]
    found = []
    for selector in selectors(tree):
        name = name_of(selector)
        if name not in metrics():
            found.append(f"no metric {name or '(none)'} is documented")
            continue
        known = {*metrics()[name][0], *OF_TARGETS, "__name__"}
        found += [f"{name} has no label {one.name}" for one in selector.matchers.matchers
                  if one.name not in known]
    for node in nodes(tree):
        if isinstance(node, promql.AggregateExpr) and node.modifier is not None:
            below = labels_of(node.expr) or set()
            found += [f"nothing below '{node.op} by' has a label {label}"
                      for label in node.modifier.labels if label not in below]
        if isinstance(node, promql.BinaryExpr):
            found += [f"one side of 'on' has no label {label}" for label in matched_on(node)]
        if isinstance(node, promql.Call) and node.func.name == "histogram_quantile" and \
                "le" not in (labels_of(node.args[-1]) or ()):
            found.append("histogram_quantile() gets no label le")
    for selector in added_up(tree):
        name = name_of(selector)
        if metrics().get(name, ((), "sum"))[1] == "max":
            found.append(f"{name} is told alike by all replicas, and added up")
    return found
