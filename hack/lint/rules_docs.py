# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Checks the links of documents, and the size and origin of test data."""

import posixpath
import re

from tree import Finding

RULES = {
    "test-data": "tests/data is at most 15 MB, each folder with a README.md on origin and licence",
    "dead-link": "every link of a document to a file or heading leads somewhere",
}

_FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[[^\]\n]*\]\(([^)\s]+)\)")


def check(tree):
    for path in tree.match("*.md"):
        yield from _links(tree, path)
    yield from _test_data(tree)


def _test_data(tree):
    paths = tree.match("tests/data/*/*")
    size = sum((tree.root / path).stat().st_size for path in paths)
    if size > 15 << 20:
        yield Finding("tests/data", 1, "test-data", f"{size >> 20} MB, allowed are 15: compress")
    for folder in sorted({"/".join(path.split("/")[:3]) for path in paths}):
        if not tree.has(f"{folder}/README.md"):
            yield Finding(f"{folder}/README.md", 1, "test-data", "say origin and licence")


def _prose(text):
    return _FENCE.sub(lambda m: re.sub(r"[^\n]", " ", m.group(0)), text)


def _anchors(text):
    anchors = set()
    for heading in re.findall(r"^#+\s+(.*?)\s*#*$", _prose(text), re.MULTILINE):
        plain = re.sub(r"[`*_]|\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        anchors.add(re.sub(r"\s", "-", re.sub(r"[^\w\s-]", "", plain)))
    return anchors


def _links(tree, path):
    text = _prose(tree.text(path))
    for match in _LINK.finditer(text):
        link = match.group(1)
        if re.match(r"[a-z]+:", link):
            continue
        line = text.count("\n", 0, match.start()) + 1
        name, _, anchor = link.partition("#")
        target = posixpath.normpath(posixpath.join(posixpath.dirname(path), name)) if name else path
        if not tree.exists(target):
            yield Finding(path, line, "dead-link", f"'{link}': no such file")
        elif anchor and target.endswith(".md") and anchor not in _anchors(tree.text(target)):
            yield Finding(path, line, "dead-link", f"'{link}': no such heading")
