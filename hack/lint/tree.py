# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""The files that lint reads, and its findings."""

import fnmatch
import functools
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import cxx

PRODUCT_ROOTS = ("common/", "router/", "simulator/", "operator/")
SKIPPED_DIRECTORIES = {".git", "build", "__pycache__"}


@dataclass(frozen=True, order=True)
class Finding:
    path: str
    line: int
    rule: str
    message: str

    def __str__(self):
        return f"{self.path}:{self.line}: [{self.rule}] {self.message}"


class Tree:
    """A source tree: tracked and new files of a git checkout, or all files of another directory.
    With `shown`, only findings below these paths are shown, so slow rules skip other files."""

    def __init__(self, root, shown=()):
        self.root = Path(root).resolve()
        self._shown = tuple(shown)
        self.files = sorted(self._list())
        self._set = set(self.files)

    def _list(self):
        if (self.root / ".git").exists():
            out = subprocess.run(
                ["git", "ls-files", "-coz", "--exclude-standard"],
                cwd=self.root, check=True, capture_output=True,
            ).stdout.decode()
            return {p for p in out.split("\0") if p and (self.root / p).is_file()}
        found = set()
        for directory, names, files in os.walk(self.root):
            names[:] = [n for n in names if n not in SKIPPED_DIRECTORIES]
            found |= {str((Path(directory) / f).relative_to(self.root)) for f in files}
        return found

    def has(self, path):
        return path in self._set

    def is_shown(self, path):
        return not self._shown or path.startswith(self._shown)

    def exists(self, path):
        return (self.root / path).exists()

    def match(self, *patterns):
        return [f for f in self.files if any(fnmatch.fnmatch(f, p) for p in patterns)]

    def sources(self):
        return self.match("*.cc", "*.h")

    def product(self):
        """Returns the C++ sources of the programs, without tests."""
        return [f for f in self.sources() if f.startswith(PRODUCT_ROOTS)]

    @functools.cache
    def text(self, path):
        try:
            return (self.root / path).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            return ""

    @functools.cache
    def lines(self, path):
        return self.text(path).splitlines()

    @functools.cache
    def code(self, path):
        """Returns C++ text with blanks for comments, strings and characters. Lines keep their
        numbers."""
        return cxx.blank(self.text(path))

    @functools.cache
    def functions(self, path):
        return cxx.functions(self.code(path))

    @functools.cache
    def includes(self, path):
        return cxx.includes(self.text(path))


def module_of(path):
    """Returns `router/cache/keys` for `router/cache/keys/block_key.h`. Returns None outside of any
    module."""
    parts = path.split("/")
    inside = path.startswith(PRODUCT_ROOTS) and len(parts) > 2
    return "/".join(parts[:-1]) if inside else None
