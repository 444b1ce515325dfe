# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Checks that a target builds every source, a file includes every header, and every pure source has
a test. Checks that suppressions of sanitizer reports name third-party libraries only."""

import re

import tables
from rules_includes import is_pure
from tree import Finding, module_of

RULES = {
    "dead-file": "every source belongs to a target and every header is included somewhere",
    "test-missing": "every source of a pure module has tests/unit/<path>_test.cc",
    "unused-edge": "every edge of modules.txt is used by an include",
    "suppression": "a suppression of hack/sanitizers names a third-party library, below its reason",
}

_SUPPRESSION = re.compile(
    r"[a-z_]+:(lib[\w+-]+\.so|nats[A-Z]\w+|"
    r"std::basic_streambuf<char, std::char_traits<char> >::xsputn|std::_Sp_counted_base<|"
    r"(std::_Sp_counted_ptr_inplace<)?(web|pplx|boost|__gnu_cxx)(::~?\w+)+)")
_STATEMENT = re.compile(r"^\s*(\w+)\s*\(([^)]*)\)", re.MULTILINE)
_IN = re.compile(r"^\s*\w+\s+IN\s+(\S+)")
# Its CMakeLists.txt adds a suite for each module that has tests below it.
_UNIT_TESTS = "tests/unit"


def check(tree):
    yield from _dead_sources(tree)
    yield from _dead_headers(tree)
    yield from _tests(tree)
    yield from _edges(tree)
    yield from _suppressions(tree)


def _directories_up(path):
    parts = path.split("/")[:-1]
    return ["/".join(parts[:n]) for n in range(len(parts), 0, -1)]


def _cmake(tree, directory):
    path = f"{directory}/CMakeLists.txt"
    return tree.text(path) if tree.has(path) else ""


def _targets(tree, directory):
    """Yields each target that the CMakeLists.txt of this directory adds: its directory, the words
    of its statement, and whether it takes all tests there."""
    for function, words in _STATEMENT.findall(_cmake(tree, directory)):
        if function == "sl_fuzz_target":
            words = f"{words.split()[0]}.cc {words}"
        place = _IN.match(words) if function == "sl_test" else None
        named = words.split()[0] if function == "sl_unit" else place and place.group(1)
        yield (f"{directory}/{named}" if named else directory, words,
               function in ("sl_test", "sl_unit"))


def _is_built(tree, path):
    directory, name = path.rsplit("/", 1)
    modules = tables.module_edges()
    if directory in modules:
        return True
    for up in _directories_up(path):
        if up.startswith(_UNIT_TESTS) and up[len(_UNIT_TESTS) + 1:] in modules \
                and name.endswith("_test.cc"):
            return True
        for place, words, takes_tests in _targets(tree, up):
            if not path.startswith(f"{place}/"):
                continue
            relative = path[len(place) + 1:]
            if re.search(rf"(?<![\w/]){re.escape(relative)}\b", words) \
                    or (takes_tests and name.endswith("_test.cc")):
                return True
    return False


def _dead_sources(tree):
    for path in tree.match("*.cc"):
        if not _is_built(tree, path):
            yield Finding(path, 1, "dead-file", "no CMake target builds it: add it or delete it")


def _dead_headers(tree):
    included = {include.name for path in tree.sources() for include in tree.includes(path)}
    for path in tree.match("*.h"):
        if path not in included:
            yield Finding(path, 1, "dead-file", "nothing includes it: use it or delete it")


def _tests(tree):
    for path in tree.match("common/*.cc", "router/*.cc"):
        if not is_pure(path):
            continue
        test = f"tests/unit/{path[:-len('.cc')]}_test.cc"
        if not tree.has(test):
            yield Finding(path, 1, "test-missing", f"add {test}")


def _included(tree):
    """Returns {module: modules whose headers it includes}."""
    edges = {}
    for path in tree.product():
        targets = {module_of(include.name) for include in tree.includes(path) if include.quoted}
        edges.setdefault(module_of(path), set()).update(targets - {None, module_of(path)})
    return edges


def _edges(tree):
    if not tree.has("hack/lint/modules.txt"):
        return
    included = _included(tree)
    for module, allowed in tables.module_edges().items():
        if module in included:
            for target in sorted(allowed - included[module]):
                yield Finding("hack/lint/modules.txt", 1, "unused-edge",
                              f"{module} does not use {target}: delete the edge")


def _suppressions(tree):
    for path in tree.match("hack/sanitizers/*.txt"):
        reason = False  # whether a comment gives the reason of the next lines
        for number, line in enumerate(tree.lines(path), 1):
            if line and not line.startswith("#") and not (reason and _SUPPRESSION.fullmatch(line)):
                yield Finding(path, number, "suppression",
                              "write kind:libNAME.so, kind:boost::NAME or kind:natsNAME below a "
                              "comment with the reason; mend the report if it is about own code")
            reason = bool(line) and (reason or line.startswith("#"))
