# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Sends the queries of boards to a Prometheus, in the same way as Grafana."""

import json
import math
import time
import urllib.parse
import urllib.request

STEP_S = 5


def ask(url, path, **parameters):
    with urllib.request.urlopen(f"{url}{path}?{urllib.parse.urlencode(parameters)}",
                                timeout=30) as answer:
        return json.load(answer)["data"]["result"]


def filled(expr, window):
    """Replaces each variable with the pattern of "All", and the interval with the window."""
    for name in ("job", "instance"):
        expr = expr.replace(f'"${name}"', '".+"')
    for name in ("namespace", "router"):
        expr = expr.replace(f'"${name}"', '".*"')
    return expr.replace("$__rate_interval", window)


def range_of(arguments, expr):
    """Returns the series with a finite value in the time: [(labels, [(time, value), …])]."""
    end = time.time()
    found = ask(arguments.url, "/api/v1/query_range", query=filled(expr, arguments.window),
                start=end - arguments.since, end=end, step=STEP_S)
    series = []
    for one in found:
        points = [(float(at), float(value)) for at, value in one["values"]]
        if any(math.isfinite(value) for _, value in points):
            series.append((one["metric"], points))
    return series


def answers(arguments, board):
    for panel in board["panels"]:
        for target in panel.get("targets", []):
            yield panel, target, range_of(arguments, target["expr"])


def panels_without_data(arguments, boards):
    """Returns {(board's uid, panel's title)} of the panels with a query without data."""
    return {(board["uid"], panel["title"]) for board in boards
            for panel, _, series in answers(arguments, board) if not series}
