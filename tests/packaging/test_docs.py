# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""What is written of the chart is what it is."""

import re

import documented
from helm import ROOT, default_values
from test_chart import leaves


def rows():
    """Values that the page's table names, with what is said of their defaults."""
    text = (ROOT / "docs/chart.md").read_text(encoding="utf-8")
    table = text[text.index("| value |"):text.index("A chart around")]
    for line in table.splitlines()[2:]:
        if line.startswith("|"):
            names, defaults, _ = (cell.strip() for cell in line.strip("|").split("|", 2))
            yield re.findall(r"`([^`]+)`", names), defaults


def test_the_page_of_the_chart_has_every_value_and_no_other():
    written = [name for names, _ in rows() for name in names]
    ours = {".".join(path) for path, _ in leaves(default_values())}
    assert len(written) == len(set(written))
    assert set(written) == ours


def test_defaults_that_are_one_word_are_those_of_the_chart():
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


def test_what_other_routers_flags_become_is_there():
    ours = set(re.findall(r"`(--[a-z-]+)", (ROOT / "docs/configuration.md").read_text()))
    rows = [line.strip("|").split("|") for line in
            (ROOT / "docs/migration.md").read_text(encoding="utf-8").splitlines()
            if line.startswith("| ") and "---" not in line]
    assert len(rows) > 40
    for theirs, here in rows:
        for flag in re.findall(r"`(--[a-z-]+)", here):
            assert flag in ours, f"{theirs}: {flag}"


def test_every_fenced_command_is_run_or_listed_with_the_reason():
    listed = [(row.file, row.command) for row in documented.rows()]
    assert len(listed) == len(set(listed))
    assert set(listed) == set(documented.everything())


def test_what_is_said_to_run_a_command_does():
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
