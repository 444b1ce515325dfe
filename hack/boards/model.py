# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Describes Grafana boards as code: rows of panels, each with its queries.

In a query, `@name` means the metric sightline_name, and `@@name` means the metric `name`. Both get
the board's selectors (`chosen`). [W] means the window that fits the panel's resolution."""

import dataclasses
import re

# Selectors with the board's variables. On Kubernetes the PodMonitors add the label of the
# MultimodalRouter. Elsewhere namespace and router are absent, and .* matches an absent label.
SERVING = ('job=~"$job", instance=~"$instance", namespace=~"$namespace", '
           'sightline_dev_router=~"$router"')
OPERATOR = 'job=~"$job", instance=~"$instance", namespace=~"$namespace"'
DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
COLUMNS = 24


@dataclasses.dataclass(frozen=True)
class Query:
    expr: str
    legend: str = ""


@dataclasses.dataclass(frozen=True)
class Panel:
    title: str
    text: str  # explains the panel to its reader
    queries: tuple
    unit: str = "short"
    kind: str = "timeseries"  # also stat, heatmap, state-timeline
    width: int = 8
    stacked: bool = False
    maximum: float | None = None
    # For a state timeline: the names of its values, and their colours.
    states: tuple = ()
    colours: tuple = ()


@dataclasses.dataclass(frozen=True)
class Row:
    title: str
    panels: tuple


@dataclasses.dataclass(frozen=True)
class Board:
    name: str
    title: str
    text: str
    rows: tuple
    chosen: str = SERVING
    # The metric and label that give the values of the variable "router".
    router: tuple = ("sightline_build_info", "sightline_dev_router")


def with_choice(expr, chosen):
    """Returns the query in PromQL, still with Grafana's variables."""
    def metric(found):
        prefix, name, more = found.groups()
        name = name if prefix == "@@" else f"sightline_{name}"
        return f"{name}{{{chosen}{', ' + more if more else ''}}}"
    expr = re.sub(r"(@@?)([a-z_]+)(?:\{([^}]*)\})?", metric, " ".join(expr.split()))
    return expr.replace("[W]", "[$__rate_interval]")


def target(query, number, kind, chosen):
    made = {"datasource": DATASOURCE, "expr": with_choice(query.expr, chosen),
            "refId": chr(ord("A") + number), "legendFormat": query.legend or "__auto",
            "range": True, "instant": False}
    if kind == "heatmap":
        made["format"] = "heatmap"
        made["legendFormat"] = "{{le}}"
    return made


TOOLTIP = {"mode": "multi", "sort": "desc"}
LEGEND = {"displayMode": "list", "placement": "bottom", "showLegend": True, "calcs": []}


def options(panel):
    if panel.kind == "stat":
        return {"reduceOptions": {"values": False, "calcs": ["lastNotNull"], "fields": ""},
                "graphMode": "area", "colorMode": "value", "justifyMode": "auto",
                "textMode": "auto", "orientation": "auto", "wideLayout": True,
                "showPercentChange": False, "percentChangeColorMode": "standard"}
    if panel.kind == "heatmap":
        return {"calculate": False, "cellGap": 1,
                "color": {"mode": "scheme", "scheme": "Oranges", "steps": 64, "fill": "dark-orange",
                          "exponent": 0.5, "reverse": False},
                "exemplars": {"color": "rgba(255,0,255,0.7)"},
                "filterValues": {"le": 1e-9}, "legend": {"show": True},
                "rowsFrame": {"layout": "auto"}, "showValue": "never",
                "tooltip": {"mode": "single", "yHistogram": False, "showColorScale": False},
                "yAxis": {"axisPlacement": "left", "reverse": False, "unit": panel.unit}}
    if panel.kind == "state-timeline":
        return {"showValue": "auto", "rowHeight": 0.9, "mergeValues": True, "alignValue": "left",
                "legend": LEGEND, "tooltip": {"mode": "single", "sort": "none"}, "perPage": 20}
    return {"legend": LEGEND, "tooltip": TOOLTIP}


def defaults(panel):
    made = {"unit": panel.unit, "mappings": [], "color": {"mode": "palette-classic"},
            "thresholds": {"mode": "absolute", "steps": [{"color": "green", "value": None}]}}
    if panel.maximum is not None:
        made |= {"min": 0, "max": panel.maximum}
    if panel.kind == "timeseries":
        made["custom"] = {
            "drawStyle": "line", "lineInterpolation": "linear", "lineWidth": 1,
            "fillOpacity": 30 if panel.stacked else 0, "showPoints": "never", "spanNulls": False,
            "stacking": {"mode": "normal" if panel.stacked else "none", "group": "A"},
            "axisPlacement": "auto"}
        if panel.maximum is None:
            made["min"] = 0
    if panel.kind == "state-timeline":
        made["custom"] = {"fillOpacity": 80, "lineWidth": 0}
        made["mappings"] = [{"type": "value", "options": {
            str(i): {"text": word, "color": colour, "index": i}
            for i, (word, colour) in enumerate(zip(panel.states, panel.colours, strict=True))}}]
    return made


def panel_json(panel, number, place, chosen):
    return {"id": number, "type": panel.kind, "title": panel.title, "description": panel.text,
            "datasource": DATASOURCE, "gridPos": place,
            "targets": [target(query, i, panel.kind, chosen)
                        for i, query in enumerate(panel.queries)],
            "fieldConfig": {"defaults": defaults(panel), "overrides": []},
            "options": options(panel), "transparent": False}


def variable(name, label, query, every):
    return {"name": name, "label": label, "type": "query", "datasource": DATASOURCE,
            "query": {"query": query, "refId": name}, "refresh": 2,
            "sort": 1, "includeAll": True, "multi": True, "allValue": every,
            "current": {"text": ["All"], "value": ["$__all"]}, "options": [], "regex": "",
            "hide": 0, "skipUrlSync": False}


def variables(board):
    metric, label = board.router
    in_namespace = 'namespace=~"$namespace"'
    jobs = f"{in_namespace}, sightline_dev_router=~\"$router\"" if board.chosen == SERVING \
        else in_namespace
    return [
        {"name": "datasource", "label": "Data source", "type": "datasource",
         "query": "prometheus", "current": {"text": "default", "value": "default"},
         "options": [], "refresh": 1, "regex": "", "hide": 0, "includeAll": False, "multi": False,
         "skipUrlSync": False},
        variable("namespace", "Namespace", "label_values(sightline_build_info, namespace)", ".*"),
        variable("router", "Router", f"label_values({metric}{{{in_namespace}}}, {label})", ".*"),
        variable("job", "Job", f"label_values(sightline_build_info{{{jobs}}}, job)", ".+"),
        variable("instance", "Instance",
                 f"label_values(sightline_build_info{{{jobs}, job=~\"$job\"}}, instance)", ".+"),
    ]


def panels_json(board):
    made, top, number = [], 0, 1
    for row in board.rows:
        made.append({"id": number, "type": "row", "title": row.title, "collapsed": False,
                     "gridPos": {"x": 0, "y": top, "w": COLUMNS, "h": 1}, "panels": []})
        number, top, left = number + 1, top + 1, 0
        for panel in row.panels:
            if left + panel.width > COLUMNS:
                left, top = 0, top + 8
            place = {"x": left, "y": top, "w": panel.width, "h": 8}
            made.append(panel_json(panel, number, place, board.chosen))
            number, left = number + 1, left + panel.width
        top += 8
    return made


def board_json(board):
    return {"uid": f"sightline-{board.name}", "title": f"Sightline / {board.title}",
            "description": board.text, "tags": ["sightline"], "editable": False,
            "schemaVersion": 39, "version": 1, "graphTooltip": 1, "refresh": "30s",
            "time": {"from": "now-1h", "to": "now"}, "timepicker": {}, "timezone": "browser",
            "fiscalYearStartMonth": 0, "links": [], "annotations": {"list": []},
            "templating": {"list": variables(board)}, "panels": panels_json(board)}
