# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Reads the tables of exceptions and edges beside this file."""

import fnmatch
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent


def _rows(name):
    for number, line in enumerate((HERE / name).read_text().splitlines(), 1):
        line = line.strip()
        if line and not line.startswith("#"):
            yield number, line


def module_edges():
    """Reads `router/cache/keys: common/base | sl::xxhash` as {module: {allowed modules}}."""
    edges = {}
    for number, line in _rows("modules.txt"):
        module, _, allowed = line.partition("|")[0].partition(":")
        if module in edges:
            raise SystemExit(f"hack/lint/modules.txt:{number}: {module} is there twice")
        edges[module.strip()] = set(allowed.split())
    return edges


def third_party():
    """Returns [(header pattern, [allowed path patterns])]. The first match counts."""
    table = []
    for _, line in _rows("third_party.txt"):
        header, _, places = line.partition(":")
        table.append((header.strip(), places.split()))
    return table


def prose_rows():
    """Reads `docs/api.md: 3 0 1` as {path: (markers, semicolons, long sentences)}."""
    rows = {}
    for _, line in _rows("prose.txt"):
        path, _, numbers = line.rpartition(":")
        rows[path] = tuple(map(int, numbers.split()))
    return rows


def write_prose_rows(rows):
    path = HERE / "prose.txt"
    head = [line for line in path.read_text().splitlines() if line.startswith("#")]
    body = [f"{name}: {' '.join(map(str, row))}" for name, row in sorted(rows.items())]
    path.write_text("\n".join(head + body) + "\n")


@dataclass
class Allowance:
    rule: str
    path: str
    text: str
    reason: str
    line: int
    used: bool = False


def allowances():
    """Reads lines `rule | path pattern | text in the message or on the line, or * | reason`."""
    table = []
    for number, line in _rows("allowed.txt"):
        fields = [field.strip() for field in line.split("|")]
        if len(fields) != 4 or not all(fields):
            raise SystemExit(f"allowed.txt:{number}: expected rule | path | text | reason")
        table.append(Allowance(*fields, line=number))
    return table


def find_allowance(table, finding, line_text):
    for entry in table:
        if entry.rule != finding.rule or not fnmatch.fnmatch(finding.path, entry.path):
            continue
        if entry.text == "*" or entry.text in line_text or entry.text in finding.message:
            return entry
    return None
