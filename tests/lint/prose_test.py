# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Tests how lint measures comments and documents."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "hack/lint"))
import prose  # noqa: E402
import rules_prose  # noqa: E402
import tables  # noqa: E402
from tree import Tree  # noqa: E402

LONG = "word " * 31
COUNTED = {
    "comments of C++": ("a.cc", "// told; such\nint a = 1;  // none\nchar b[] = \"told; none\";\n",
                        (3, 1, 0)),
    "block comments": ("a.h", "/* It is\n * told. */\nint a;\n", (1, 0, 0)),
    "comments of Python": ("a.py", "# told; here\na = 'told;'  # None is a value\n", (1, 1, 0)),
    "docstrings": ("a.py", 'def f():\n    """Is told."""\n    return """told"""\n', (1, 0, 0)),
    "documents": ("a.md", "Is `told` here; is told.\n\n```\ntold; none\n```\n", (1, 1, 0)),
    "a long sentence": ("a.md", LONG + "\n", (0, 0, 1)),
    "one over two comment lines": ("a.cc", f"// {LONG[:80]}\n// {LONG[80:]}\n", (0, 0, 1)),
    "two comments": ("a.cc", f"// {LONG[:80]}\nint a;\n// {LONG[80:]}\n", (0, 0, 0)),
    "cells of a table": ("a.md", f"| {LONG[:80]} | {LONG[80:]} |\n", (0, 0, 0)),
    "items of a list": ("a.md", f"- {LONG[:80]}\n- {LONG[80:]}\n", (0, 0, 0)),
    "licence lines": ("a.h", f"// SPDX-License-Identifier: {LONG}\n", (0, 0, 0)),
}


@pytest.mark.parametrize("case", COUNTED)
def test_measure_counts_prose_only(case):
    path, text, counts = COUNTED[case]
    assert rules_prose.counts(prose.measure(path, text)) == counts


def test_other_files_have_no_prose():
    assert prose.measure("a.yaml", "# told\n") is None


def test_findings_name_their_line():
    measured = prose.measure("a.cc", f"int a;\n// A name.\n// It is told.\nint b;\n// {LONG}\n")
    assert measured.markers == ((3, "told"),)
    assert measured.long_sentences == ((5, 31),)


def test_lower_never_raises_a_count(tmp_path, monkeypatch):
    (tmp_path / "more.md").write_text("Told told told told.\n")
    (tmp_path / "fewer.md").write_text("Told told. A; b; c; d.\n")
    (tmp_path / "plain.md").write_text("A page.\n")
    rows = {"more.md": (3, 0, 0), "fewer.md": (5, 2, 4), "plain.md": (9, 9, 9),
            "gone.md": (1, 1, 1)}
    monkeypatch.setattr(tables, "prose_rows", lambda: dict(rows))
    assert rules_prose.lower(Tree(tmp_path)) == {"more.md": (3, 0, 0), "fewer.md": (2, 2, 0)}
