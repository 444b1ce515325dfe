# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Runs clang's thread-safety analysis without a build: members that threads share need their mutex.

In a tree with fuzz targets, clang must build the programs. There it reads every source of them.

$SIGHTLINE_CACHE (default: below the user's cache directory) keeps the verdicts for all checkouts.
The name of a verdict is a hash of all its inputs. If many verdicts are missing, clang precompiles
the headers of the standard library that many sources include.
"""

import collections
import contextlib
import functools
import glob
import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tree import Finding

RULES = {
    "thread-safety": "clang++-14 reads every source, and finds what SL_GUARDED_BY names read and "
                     "written under its mutex",
}

COMPILER = "clang++-14"
BLAKE3 = "/usr/share/cargo/registry/blake3-*/c"  # as cmake/dependencies.cmake finds it
FLAGS = ["-std=c++20", "-I.", "-Wno-everything", "-Wthread-safety",
         "-Werror=thread-safety", "-fno-caret-diagnostics", "-ferror-limit=0",
         # Copies of cmake/dependencies.cmake: Asio does not detect these features with clang.
         "-DASIO_STANDALONE", "-DASIO_NO_DEPRECATED", "-DASIO_HAS_CO_AWAIT",
         "-DASIO_HAS_STD_COROUTINE", '-DSL_VERSION=""', '-DSL_SOURCE_DIR=""',
         '-DSL_BINARY_DIR=""', *("-isystem" + path for path in glob.glob(BLAKE3))]
KEPT_MAX = 4000  # verdicts in the cache; the oldest are removed first
PRECOMPILED_FROM = 20  # missing verdicts
COMMON = 8  # a header is common if one of this many sources includes it

HEADER = "common/base/mutex.h"
FUZZ_TARGETS = "tests/fuzz/CMakeLists.txt"
_MUTEX = re.compile(r"\b(?:WriterFirst)?Mutex(?:Lock)?\b|\bSL_(?:GUARDED_BY|REQUIRES)\b")
_FINDING = re.compile(r"^(?:\./)?(.*?):(\d+):\d+: (?:fatal )?error: (.*?)(?: \[-W[^\]]*\])?$")


def check(tree):
    sources = [path for path in tree.sources() if path.endswith(".cc") and _is_analysed(tree, path)]
    sources = _shown(tree, sources)
    if not sources:
        return
    program = shutil.which(COMPILER)
    if program is None:
        yield Finding("hack/packages.txt", 1, "thread-safety", f"no {COMPILER}: run hack/setup")
        return
    version = _versions(program)
    _drop_old()
    # Starts with the largest source. A large source at the end would leave the other cores idle.
    sources.sort(key=lambda path: -len(_closure(tree, path)))
    kept = {path: _kept(tree, version, path) for path in sources}
    missing = [path for path in sources if not kept[path].exists()]
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool, \
            _common_headers(tree, program, missing) as common:
        results = pool.map(
            lambda path: _verdict(tree, [program, *FLAGS, *common], path, kept[path]), sources)
        for path, line, message in sorted({tuple(row) for rows in results for row in rows}):
            yield Finding(path, line, "thread-safety", message)


def _shown(tree, sources):
    """Returns the sources that can have a finding to show: the shown ones, and for each shown
    header that these do not read, the smallest one that reads it."""
    chosen = [path for path in sources if tree.is_shown(path)]
    read = {name for path in chosen for name in _closure(tree, path)}
    for header in tree.match("*.h"):
        if tree.is_shown(header) and header not in read:
            readers = [path for path in sources if header in _closure(tree, path)]
            chosen += sorted(readers, key=lambda path: len(_closure(tree, path)))[:1]
            read.update(_closure(tree, chosen[-1]) if readers else ())
    return sorted(set(chosen))


def _versions(program):
    """Returns the versions of the compiler and of all packages whose headers it may read."""
    return "".join(subprocess.run(command, capture_output=True, text=True, check=True).stdout
                   for command in ([program, "--version"], ["dpkg-query", "-W", "*-dev"]))


def _is_analysed(tree, path):
    """Returns whether clang analyses a source: in a tree with fuzz targets, their sources and all
    sources of the programs. In other trees, sources of the programs that use a mutex, or include
    a file that does."""
    if tree.has(FUZZ_TARGETS) and path.startswith(os.path.dirname(FUZZ_TARGETS)):
        return True
    return path in tree.product() and (
        tree.has(FUZZ_TARGETS) or any(_names_mutex(tree, name) for name in _closure(tree, path)))


@functools.cache
def _names_mutex(tree, path):
    return path != HEADER and bool(_MUTEX.search(tree.code(path)))


@functools.cache
def _closure(tree, path):
    """Returns the file and all project files that it includes, directly or not, sorted."""
    seen, todo = {path}, [path]
    while todo:
        for include in tree.includes(todo.pop()):
            if include.quoted and include.name not in seen and tree.has(include.name):
                seen.add(include.name)
                todo.append(include.name)
    return sorted(seen)


@contextlib.contextmanager
def _common_headers(tree, program, sources):
    """Precompiles the headers of the standard library that many of these sources include. Yields
    the flags that make clang use them."""
    if len(sources) < PRECOMPILED_FROM:
        yield []
        return
    counts = collections.Counter(
        name for path in sources for name in {
            include.name for part in _closure(tree, path) for include in tree.includes(part)
            if not include.quoted and "." not in include.name})
    often = sorted(name for name, count in counts.items() if count * COMMON >= len(sources))
    with tempfile.TemporaryDirectory() as directory:
        header, made = os.path.join(directory, "common.h"), os.path.join(directory, "common.pch")
        with open(header, "w", encoding="ascii") as file:
            file.writelines(f"#include <{name}>\n" for name in often)
        run = subprocess.run([program, *FLAGS, "-x", "c++-header", header, "-o", made],
                             cwd=tree.root, capture_output=True, check=False)
        yield ["-include-pch", made] if run.returncode == 0 else []


def _kept(tree, version, path):
    """Returns the path of a source's verdict in the cache."""
    digest = hashlib.sha256("\0".join([version, *FLAGS, _FINDING.pattern, path]).encode())
    for name in _closure(tree, path):
        digest.update(f"\0{name}\0{tree.text(name)}".encode())
    return _directory() / digest.hexdigest()


def _directory():
    chosen = os.environ.get("SIGHTLINE_CACHE")
    if chosen:
        return Path(chosen) / "thread-safety"
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "sightline-lint/thread-safety"


def _verdict(tree, command, path, kept):
    """Returns [(path, line, message)] from the cache, or runs the compiler."""
    try:
        return json.loads(kept.read_text())
    except (OSError, ValueError):
        rows = _analyse(tree, command, path)
    kept.parent.mkdir(parents=True, exist_ok=True)
    part = kept.with_suffix(f".{os.getpid()}")
    part.write_text(json.dumps(rows))
    part.replace(kept)
    return rows


def _analyse(tree, command, path):
    run = subprocess.run([*command, "-fsyntax-only", path], cwd=tree.root, capture_output=True,
                         text=True, check=False)
    matches = (_FINDING.match(line) for line in run.stderr.splitlines())
    rows = [(m.group(1), int(m.group(2)), m.group(3)) for m in matches if m]
    return rows if rows or run.returncode == 0 else [(path, 1, run.stderr.strip()[:200])]


def _drop_old():
    with contextlib.suppress(FileNotFoundError):  # no cache yet, or another lint removes files too
        kept = sorted(_directory().iterdir(), key=lambda file: -file.stat().st_mtime)
        for file in kept[KEPT_MAX:]:
            file.unlink()
