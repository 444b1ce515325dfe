# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Checks that a name means one thing: types of equal names, and sources of equal names."""

import os
import re
from collections import defaultdict

from tree import Finding

RULES = {
    "name-reused": "a type name stands for two types at most, a file name for one module's file",
}

SCOPES_MAX = 2  # types of one name

_OPENING = re.compile(
    r"namespace\s+(?P<namespace>[\w:]*)\s*\{|"
    r"(?<!<)(?<!, )\b(?:class|struct|enum class|enum|union)\s+(?P<type>\w+)\s*(?:final\s*)?"
    r"(?::[^;{}()]*)?\{|(?P<open>\{)|(?P<close>\})")


def check(tree):
    yield from _types(tree)
    yield from _files(tree)


def _declared(path, code):
    """Yields (scope, name, line) of each type that a file defines."""
    scopes = []
    for match in _OPENING.finditer(code):
        if match["close"]:
            if scopes:
                scopes.pop()
            continue
        if match["type"]:
            yield ("::".join(filter(None, scopes)), match["type"],
                   code.count("\n", 0, match.start("type")) + 1)
        # An unnamed namespace belongs to its file.
        name = match["type"] or match["namespace"]
        scopes.append(path if match["namespace"] == "" else name)


def _types(tree):
    places = defaultdict(dict)  # by name: the first place in each scope
    for path in tree.product():
        for scope, name, line in _declared(path, tree.code(path)):
            places[name].setdefault(scope, (path, line))
    for name, by_scope in places.items():
        for path, line in list(by_scope.values())[SCOPES_MAX:]:
            first = ", ".join(f"{p}:{n}" for p, n in list(by_scope.values())[:SCOPES_MAX])
            yield Finding(path, line, "name-reused",
                          f"'{name}' also stands for the types of {first}: a search finds all of "
                          "them. Name what this one is")


def _files(tree):
    folders = defaultdict(dict)  # by stem: the first file in each folder
    for path in tree.product():
        folder, name = os.path.split(path)
        folders[os.path.splitext(name)[0]].setdefault(folder, path)
    for stem, by_folder in folders.items():
        paths = list(by_folder.values())
        for path in paths[1:]:
            yield Finding(path, 1, "name-reused",
                          f"'{stem}' is also the name of {paths[0]}: errors and logs show the name "
                          "without its folder. Name what this file has")
