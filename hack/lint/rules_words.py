# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Finds banned words in code and text, and says what to write instead of each."""

import re

import cxx
from rules_includes import is_pure
from tree import PRODUCT_ROOTS, Finding

RULES = {
    "banned-word": "words of the language that this project does without",
    "banned-name": "names that say nothing about what a thing is",
    "pure-word": "a pure module calls no clock, thread, log or output",
    "unfinished": "text describes what is there: nothing left for later",
    "machine-path": "no paths or hosts of a developer's machine",
}

def _compiled(table):
    return [(re.compile(pattern), instead) for pattern, instead in table]


# For product and test code, without comments and strings.
CODE = _compiled([
    (r"\busing\s+namespace\s+(?!std::(?:chrono_)?literals\b)", "name what you use"),
    (r"\bsleep_for\b|\bsleep_until\b|\b(?:u|nano)?sleep\s*\(",
     "wait for a condition, a timer or a stop token"),
    (r"(?<![\w.>])s?rand\s*\(|\brandom_device\b", "take an Rng"),
    (r"\bgetenv\b", "settings are read once, in main"),
    (r"(?<![\w:])new\s+[A-Za-z_(:]|(?<![\w:])delete\s+[A-Za-z_*(]|(?<!\w)(?:m|c|re)alloc\s*\(",
     "use std::make_unique or a container"),
    (r"\bstd::views\b|\bstd::ranges::views\b", "write the loop"),
    (r"\bGTEST_SKIP\b|\bDISABLED_", "a test that cannot run here is registered elsewhere"),
    (r"\bassert\s*\(", "use SL_CHECK"),
])
# For product code only, because tests wait with deadlines, race threads and let libraries throw.
PRODUCT_CODE = _compiled([
    (r"\bthrow\b", "return a Result"),
    (r"\bsystem_clock::now\b|\bsteady_clock::now\b|\btime\s*\(\s*(?:nullptr|NULL|0)\s*\)",
     "take a Clock"),
    (r"\bstd::thread\b(?!::hardware_concurrency)", "use common/runtime/worker_thread.h"),
    (r"\bstd::(?:\w*mutex|(?:unique|shared|scoped)_lock|lock_guard|condition_variable\w*)\b|"
     r"\bpthread_(?:mutex|rwlock|cond|spin)_\w+", "use common/base/mutex.h, which lint knows"),
])
ROUTER_CODE = _compiled([(r"\bstd::jthread\b", "use common/runtime/worker_thread.h")])

# Matches braces of an aggregate with another member before the macro.
LEAKING_TRY = re.compile(
    r"(?:[\w>]\{|[(,{=]\s*\{|\breturn\s*\{)[^{};]*,[^{};]*?\bSL_(?:CO_)?TRY\s*\(")

NAMES = re.compile(
    r"\b(?:class|struct|enum class|using|namespace)\s+(\w*(?:Manager|Helper|Helpers|Util|Utils|"
    r"Utility|Handler|Impl|[Mm]isc|utils?|helpers?|impl))\b(?!\s*::)")

PURE_CODE = re.compile(
    r"\b(?:steady_clock|system_clock|high_resolution_clock)\s*(?:::\s*now|\()|"
    r"\bstd::(?:thread|jthread|mutex|shared_mutex|condition_variable|cout|cerr|clog|ifstream|"
    r"ofstream|fstream|filesystem)\b|\b(?:f?printf|f?puts|fopen|fwrite|fread)\s*\(|"
    r"(?<![\w.:>])log\s*\(\s*LogLevel|\bsocket\s*\(")

UNFINISHED = re.compile(
    r"\b(?:TODO|FIXME|XXX)\b|\bfor now\b|\bfirst version\b|\bnot (?:yet )?implemented\b|"
    r"\bunimplemented\b|\bstub(?:s|bed)?\b|\bsimplified\b|\bdummy\b|\bplaceholder for\b|"
    r"\bin a later (?:version|step|piece)\b", re.IGNORECASE)
MACHINE = re.compile(
    r"(?<![\w.}])/(?:work|home/\w+|root|tmp/briefs|Users/\w+)(?:/|\b)|"
    r"\b(?:[\w-]+\.)*(?:pypi|npmjs|crates|docker|ghcr|quay|gcr)\.(?:org|com|io)\b|"
    r"\bdeb\.debian\.org\b|\bfiles\.pythonhosted\.org\b")

TEXT = ("*.md", "*.py", "*.sh", "*.txt", "*.cmake", "*.yaml", "*.yml", "*.json", "Makefile",
        ".ci/*", "hack/*", "*.cc", "*.h", "NOTICE")
# Recorded data, and the lists of these words.
NOT_OURS = ("tests/data/", "hack/lint/", "tests/lint/", "LICENSE")


def check(tree):
    for path in tree.sources():
        yield from _code(tree, path)
    for path in tree.match(*TEXT):
        if not path.startswith(NOT_OURS):
            yield from _text(tree, path)


def _code(tree, path):
    pure = is_pure(path)
    product = path.startswith(PRODUCT_ROOTS)
    above_common = path.startswith(("router/", "simulator/", "operator/"))
    table = CODE + (PRODUCT_CODE if product else []) + (ROUTER_CODE if above_common else [])
    code = tree.code(path)
    for number, line in enumerate(code.splitlines(), 1):
        for pattern, instead in table:
            match = pattern.search(line)
            if match:
                yield Finding(path, number, "banned-word", f"'{match.group(0).strip()}': {instead}")
        match = NAMES.search(line)
        if match:
            yield Finding(path, number, "banned-name",
                          f"'{match.group(1)}': say what it is, not that it does something")
        match = PURE_CODE.search(line) if pure else None
        if match:
            yield Finding(path, number, "pure-word",
                          f"'{match.group(0).strip()}' in a pure module: take and return values")
    for match in LEAKING_TRY.finditer(code):
        line = code.count("\n", 0, match.end()) + 1
        yield Finding(path, line, "banned-word",
                      "SL_TRY behind another member of an aggregate leaks: name its value first")


def _text(tree, path):
    if path.endswith((".cc", ".h")):
        rows = [(first + offset, row) for first, text in cxx.comments(tree.text(path))
                for offset, row in enumerate(text.split("\n"))]
    else:
        rows = list(enumerate(tree.lines(path), 1))
    for number, row in rows:
        match = UNFINISHED.search(row)
        if match:
            yield Finding(path, number, "unfinished",
                          f"'{match.group(0)}': finish it, or describe what is there")
    for number, row in enumerate(tree.lines(path), 1):
        match = MACHINE.search(row)
        if match:
            yield Finding(path, number, "machine-path", f"'{match.group(0)}' names one machine")
