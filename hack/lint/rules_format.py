# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Checks the format of C++ with clang-format, and the syntax of scripts with their interpreters."""

import os
import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor

from tree import Finding

RULES = {
    "clang-format": "C++ is formatted by clang-format-14 (make format)",
    "bash-syntax": "every shell script passes bash -n and says set -euo pipefail",
    "python-syntax": "every Python file compiles",
}

_WARNING = re.compile(r"^(.*?):(\d+):\d+: (?:error|warning): ")


def check(tree):
    yield from _clang_format(tree)
    for path in tree.files:
        first = (tree.lines(path) or [""])[0]
        if path.endswith(".sh") or (first.startswith("#!") and "bash" in first):
            yield from _bash(tree, path)
        elif path.endswith(".py") or (first.startswith("#!") and "python" in first):
            yield from _python(tree, path)


def _clang_format(tree):
    sources = tree.sources()
    if not sources:
        return
    program = shutil.which("clang-format-14")
    if program is None:
        yield Finding(".clang-format", 1, "clang-format", "no clang-format-14: run hack/setup")
        return
    jobs = os.cpu_count() or 1
    with ThreadPoolExecutor(jobs) as pool:
        count = min(jobs * 2, 1 + len(sources) // 16)
        chunks = [sources[i::count] for i in range(count)]
        outputs = pool.map(lambda chunk: _format_errors(tree, program, chunk), chunks)
    seen = set()
    for path, line in (pair for output in outputs for pair in output):
        if path not in seen:
            seen.add(path)
            yield Finding(path, line, "clang-format", "run make format")


def _format_errors(tree, program, sources):
    style = tree.root / ".clang-format"
    run = subprocess.run([program, f"--style=file:{style}", "--dry-run", "-Werror", *sources],
                         cwd=tree.root, capture_output=True, text=True, check=False)
    matches = (_WARNING.match(line) for line in run.stderr.splitlines())
    pairs = sorted((m.group(1), int(m.group(2))) for m in matches if m)
    return pairs if pairs or run.returncode == 0 else [(sources[0], 1)]


def _bash(tree, path):
    run = subprocess.run(["bash", "-n", path], cwd=tree.root, capture_output=True, text=True,
                         check=False)
    if run.returncode != 0:
        line = re.search(r"line (\d+)", run.stderr)
        yield Finding(path, int(line.group(1)) if line else 1, "bash-syntax",
                      run.stderr.strip()[:120])
    elif "set -euo pipefail" not in tree.text(path):
        yield Finding(path, 1, "bash-syntax", "say set -euo pipefail")


def _python(tree, path):
    try:
        compile(tree.text(path), path, "exec", dont_inherit=True)
    except SyntaxError as error:
        yield Finding(path, error.lineno or 1, "python-syntax", error.msg)
