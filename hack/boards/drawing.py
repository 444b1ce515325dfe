# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Draws the panels of a board as one image: each panel's own data, in its place and unit. Colours,
fonts and legends are matplotlib's, not Grafana's."""

import math

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402

from .live import answers  # noqa: E402

COLUMN, ROW, DPI = 0.75, 0.36, 80  # inches of a grid unit
LEGEND_MAX = 8
COLOURS = {"dark-yellow": "goldenrod", "red": "crimson", "orange": "darkorange",
           "blue": "steelblue", "purple": "mediumpurple", "yellow": "gold", "green": "seagreen"}
UNITS = {"s": "seconds", "percentunit": "share", "reqps": "requests/s", "cps": "a second",
         "bytes": "bytes", "short": ""}


def draw_board(arguments, name, board, target):
    data = {}
    for panel, query, series in answers(arguments, board):
        data.setdefault(panel["id"], []).append((query, series))
    # The first row is for the title.
    bottom = 1 + max(panel["gridPos"]["y"] + panel["gridPos"]["h"] for panel in board["panels"])
    figure = plt.figure(figsize=(24 * COLUMN, bottom * ROW), dpi=DPI)
    figure.text(0.005, 1 - 0.6 / bottom, board["title"], fontsize=14, va="center")
    for panel in board["panels"]:
        place = panel["gridPos"]
        top = 1 - (1 + place["y"]) / bottom
        if panel["type"] == "row":
            figure.text(place["x"] / 24 + 0.005, top - 0.5 / bottom, panel["title"],
                        weight="bold", va="center")
            continue
        axes = figure.add_axes((place["x"] / 24 + 0.03, top - (place["h"] - 0.9) / bottom,
                                place["w"] / 24 - 0.045, (place["h"] - 1.9) / bottom))
        axes.set_title(panel["title"], fontsize=9, loc="left")
        axes.tick_params(labelsize=7)
        draw_panel(axes, panel, data.get(panel["id"], []))
    figure.savefig(target, metadata={"Software": None})
    plt.close(figure)
    return name


def draw_panel(axes, panel, queries):
    lines = [(label_of(query, labels), points) for query, series in queries
             for labels, points in series]
    if not lines:
        axes.text(0.5, 0.5, "no data", ha="center", va="center", color="grey")
        return axes.set_axis_off()
    newest = max(points[-1][0] for _, points in lines)
    kind = panel["type"]
    {"stat": draw_stat, "heatmap": draw_heatmap, "state-timeline": draw_states}.get(
        kind, draw_lines)(axes, panel, lines, newest)
    return None


def label_of(query, labels):
    text = query["legendFormat"]
    if text == "__auto":
        return ""
    for key, value in labels.items():
        text = text.replace(f"{{{{{key}}}}}", value)
    return text


def draw_stat(axes, panel, lines, _):
    unit = panel["fieldConfig"]["defaults"]["unit"]
    finite = [(label, [value for _, value in points if math.isfinite(value)][-1])
              for label, points in lines]
    text = "\n".join(f"{label} {shown(value, unit)}".strip() for label, value in finite)
    axes.text(0.5, 0.5, text, ha="center", va="center", fontsize=15, color="seagreen")
    axes.set_axis_off()


def shown(value, unit):
    if unit == "percentunit":
        return f"{100 * value:.1f} %"
    if unit == "s":
        return f"{1000 * value:.3g} ms" if value < 1 else f"{value:.3g} s"
    return f"{value:.4g}"


def draw_lines(axes, panel, lines, newest):
    stacked = panel["fieldConfig"]["defaults"]["custom"]["stacking"]["mode"] == "normal"
    if stacked:
        times = sorted({at for _, points in lines for at, _ in points})
        rows = []
        for _, points in lines:
            values = dict(points)
            rows.append([finite_or(values.get(at, 0.0), 0.0) for at in times])
        axes.stackplot([at - newest for at in times], rows, labels=[one for one, _ in lines],
                       alpha=0.7)
    else:
        for label, points in lines:
            axes.plot([at - newest for at, _ in points], [value for _, value in points],
                      label=label, linewidth=1)
    axes.set_ylabel(UNITS[panel["fieldConfig"]["defaults"]["unit"]], fontsize=7)
    axes.margins(y=0.12)
    axes.set_ylim(bottom=0)
    if any(label for label, _ in lines) and len(lines) <= LEGEND_MAX:
        axes.legend(fontsize=6, loc="upper left", framealpha=0.6)


def finite_or(value, otherwise):
    return value if math.isfinite(value) else otherwise


def draw_heatmap(axes, _, lines, newest):
    """A series counts values up to its bound. The count between two bounds is the difference."""
    bounds = sorted(lines, key=lambda line: float(line[0]))
    times = sorted({at for _, points in bounds for at, _ in points})
    below, rows = [0.0] * len(times), []
    for _, points in bounds:
        values = dict(points)
        row = [finite_or(values.get(at, 0.0), 0.0) for at in times]
        rows.append([max(0.0, one - less) for one, less in zip(row, below, strict=True)])
        below = row
    axes.pcolormesh([at - newest for at in times], range(len(rows)), rows, cmap="Oranges",
                    shading="nearest")
    axes.set_yticks(range(0, len(bounds), 3), [label for label, _ in bounds[::3]])


def draw_states(axes, panel, lines, newest):
    options = panel["fieldConfig"]["defaults"]["mappings"][0]["options"]
    seen = set()
    for row, (_, points) in enumerate(sorted(lines)):
        for (at, value), (until, _) in zip(points, points[1:], strict=False):
            state = options[str(int(value))]
            label = None if state["text"] in seen else state["text"]
            seen.add(state["text"])
            axes.barh(row, until - at, left=at - newest, color=COLOURS[state["color"]],
                      label=label, height=0.8)
    axes.set_yticks(range(len(lines)), [label for label, _ in sorted(lines)])
    axes.legend(fontsize=6, loc="upper left")
