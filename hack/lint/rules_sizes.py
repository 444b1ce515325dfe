# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Checks the sizes of functions, files and modules, and the first lines of every file."""

from collections import Counter

from tree import Finding, module_of

RULES = {
    "function-length": "a function has at most 60 lines, in tests 80",
    "file-length": "a file has at most 400 lines, in tests 600",
    "header-length": "a header has at most 200 lines",
    "line-length": "a line has at most 100 columns",
    "parameters": "a function takes at most 4 parameters, then an options struct",
    "nesting": "control statements nest at most 3 deep",
    "module-size": "a module has at most 14 sources and headers",
    "spdx": "a source or script begins with the two SPDX lines",
    "pragma-once": "a header has #pragma once",
}

SPDX = ("SPDX-License-Identifier: Apache-2.0", "Copyright The Sightline Authors")


def check(tree):
    for path in tree.sources():
        yield from _file(tree, path)
        yield from _functions(tree, path)
    for path in tree.match("hack/*", "tests/*.py", ".ci/*", "tests/*.sh", "tests/bench/run",
                          "tests/conformance/*"):
        if _is_script(tree, path):
            yield from _script(tree, path)
    yield from _modules(tree)


def _is_script(tree, path):
    return path.endswith((".py", ".sh")) or tree.text(path).startswith("#!")


def _limit(path, product, tests):
    return tests if path.startswith("tests/") else product


def _file(tree, path):
    lines = tree.lines(path)
    limit = _limit(path, 400, 600)
    if len(lines) > limit:
        yield Finding(path, limit + 1, "file-length",
                      f"{len(lines)} lines, allowed are {limit}: split by meaning")
    elif path.endswith(".h") and not path.startswith("tests/") and len(lines) > 200:
        yield Finding(path, 201, "header-length",
                      f"{len(lines)} lines, allowed are 200: split, or move code to the source")
    for number, line in enumerate(lines, 1):
        # Raw literals of tests contain recorded text, which may have long lines.
        if len(line) > 100 and not (path.startswith("tests/") and 'R"' in line):
            yield Finding(path, number, "line-length", f"{len(line)} columns, allowed are 100")
    if not all(words in line for words, line in zip(SPDX, lines[:2])) or len(lines) < 2:
        yield Finding(path, 1, "spdx", f"begin with '// {SPDX[0]}' and '// {SPDX[1]}'")
    if path.endswith(".h") and "#pragma once" not in lines:
        yield Finding(path, 1, "pragma-once", "add #pragma once")


def _script(tree, path):
    head = "\n".join(tree.lines(path)[:4])
    if not all(words in head for words in SPDX):
        yield Finding(path, 1, "spdx", f"begin with '# {SPDX[0]}' and '# {SPDX[1]}'")
    limit = _limit(path, 400, 600)
    if len(tree.lines(path)) > limit:
        yield Finding(path, limit + 1, "file-length",
                      f"{len(tree.lines(path))} lines, allowed are {limit}: split by meaning")
    for number, line in enumerate(tree.lines(path), 1):
        if len(line) > 100:
            yield Finding(path, number, "line-length", f"{len(line)} columns, allowed are 100")


def _functions(tree, path):
    limit = _limit(path, 60, 80)
    for function in tree.functions(path):
        if function.lines > limit:
            yield Finding(path, function.line, "function-length",
                          f"{function.name} has {function.lines} lines, allowed are {limit}")
        if function.parameters > 4:
            yield Finding(path, function.line, "parameters",
                          f"{function.name} takes {function.parameters} parameters, allowed are 4: "
                          "use an options struct")
        if function.nesting > 3:
            yield Finding(path, function.line, "nesting",
                          f"{function.name} nests {function.nesting} deep, allowed are 3: return "
                          "early or name a step")


def _modules(tree):
    counts = Counter(module_of(path) for path in tree.product())
    counts.pop(None, None)
    for module, count in counts.items():
        if count > 14:
            yield Finding(f"{module}/", 1, "module-size",
                          f"{count} sources and headers, allowed are 14: split or merge")
