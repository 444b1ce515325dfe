# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Compares pages with the chart's values, the router's flags and the list of commands."""

import re

import documented
from helm import ROOT, default_values
from test_chart import leaves


def rows():
    """Yields (names of values, text of their defaults) of each row of the page's table."""
    text = (ROOT / "docs/chart.md").read_text(encoding="utf-8")
    table = text[text.index("| value |"):text.index("A chart around")]
    for line in table.splitlines()[2:]:
        if line.startswith("|"):
            names, defaults, _ = (cell.strip() for cell in line.strip("|").split("|", 2))
            yield re.findall(r"`([^`]+)`", names), defaults


def test_chart_page_lists_exactly_the_charts_values():
    written = [name for names, _ in rows() for name in names]
    ours = {".".join(path) for path, _ in leaves(default_values())}
    assert len(written) == len(set(written))
    assert set(written) == ours


def test_chart_page_has_the_charts_defaults():
    values = {".".join(path): value for path, value in leaves(default_values())}
    for names, defaults in rows():
        said = [one.strip() for one in re.split(r", (?![^\[]*\])", defaults)]
        if len(said) != len(names):
            assert len(said) == 1, names
            continue
        for name, one in zip(names, said, strict=True):
            value = values[name]
            known = {str(value), str(value).lower(), f'"{value}"', ""}
            assert one in known or one == "nodes with Linux", f"{name}: {one}, not {value}"


def test_migration_page_names_only_existing_flags():
    ours = set(re.findall(r"`(--[a-z-]+)", (ROOT / "docs/configuration.md").read_text()))
    rows = [line.strip("|").split("|") for line in
            (ROOT / "docs/migration.md").read_text(encoding="utf-8").splitlines()
            if line.startswith("| ") and "---" not in line]
    assert len(rows) > 40
    for theirs, here in rows:
        for flag in re.findall(r"`(--[a-z-]+)", here):
            assert flag in ours, f"{theirs}: {flag}"


def test_command_list_has_every_fenced_command():
    listed = [(row.file, row.command) for row in documented.rows()]
    assert len(listed) == len(set(listed))
    assert set(listed) == set(documented.everything())


def test_listed_runners_run_their_commands():
    ci = (ROOT / ".ci/run").read_text().replace(" --no-print-directory", "")
    full = re.search(r"(?m)^test-packaging-full:(.*\n(\t.*\n)+)",
                     (ROOT / "Makefile").read_text())[1]
    for row in documented.rows():
        if row.kind == "ci":
            assert re.search(rf'(?m)^step "[^"]*" {re.escape(row.what)}( |$)', ci), row
        elif row.kind == "test":
            assert "documented.Runs(" in (ROOT / row.what).read_text(encoding="utf-8"), row
        elif row.kind == "by":
            file, _, name = row.what.partition("::")
            assert f"def {name}(" in (ROOT / file).read_text(encoding="utf-8"), row
        elif row.kind == "full":
            assert row.what in full, row
        else:
            assert row.kind in ("not", "no command") and row.what, row
