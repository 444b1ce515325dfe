# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Reads the fenced commands of the documentation, and commands.txt. That file names the test of
each command, or the reason why no test runs it."""

import dataclasses
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIST = pathlib.Path(__file__).with_name("commands.txt")
PROGRAMS = ("build/", "buildah", "cmake", "curl", "hack/", "helm", "hf ", "kubectl", "make",
            "nats-server", "podman", "sightline", "skopeo", "tests/", "vllm")

# The first character of an answer to a command, and the allowed languages of blocks.
ANSWER = "{"
LANGUAGES = ("", "yaml")


@dataclasses.dataclass(frozen=True)
class Row:
    file: str
    command: str
    kind: str
    what: str


def rows():
    found = []
    for line in LIST.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            file, _, rest = line.partition(" | ")
            command, _, how = rest.rpartition(" | ")
            kind, _, what = how.partition(": ")
            found.append(Row(file, command, kind, what))
    return found


def pages():
    return [path for name in ("README.md", "CONTRIBUTING.md", "docs/*.md", "docs/runbooks/*.md")
            for path in sorted(ROOT.glob(name))]


def blocks(path):
    """Yields (language, lines) of each fenced block."""
    text = path.read_text(encoding="utf-8")
    for found in re.finditer(r"(?ms)^ *```(\w*)\n(.*?)^ *```$", text):
        yield found[1], found[2].splitlines()


def commands_of(lines):
    """Returns each command as one line, without remarks. Joins continued lines. Returns None if the
    block is a drawing or an output."""
    found, open_quote = [], False
    for line in lines:
        goes_on = open_quote or (found and found[-1].endswith("\\"))
        line = re.sub(r"\s+# .*$", "", line).rstrip()
        open_quote ^= line.count("'") % 2 == 1
        if goes_on:
            found[-1] = f"{found[-1].removesuffix(chr(92)).rstrip()} {line.strip()}"
        elif line.startswith(PROGRAMS) and not line.startswith("sightline top:"):
            found.append(line)
        elif not found:
            return None
        elif line:
            assert line.startswith(ANSWER), f"neither a command nor an answer: {line}"
    return found


def commands(path):
    """Returns the commands of a page in order, each once."""
    found = []
    for language, lines in blocks(path):
        assert language in LANGUAGES, f"{path.name}: a block of {language} would go unseen"
        if not language:
            found += commands_of(lines) or [f"({lines[0].strip()})"]
    return list(dict.fromkeys(found))


def everything():
    """Returns (page, command) of all pages. A block without commands counts as its first line, in
    parentheses."""
    return [(str(path.relative_to(ROOT)), command) for path in pages()
            for command in commands(path)]


class Runs:
    """Gives a test file its commands, and records which ones it has taken."""

    def __init__(self, file):
        self._open = {(row.file, row.command) for row in rows()
                      if row.kind == "test" and row.what == str(file.relative_to(ROOT))}
        assert self._open

    def take(self, page, begins, replaced=()):
        """Returns the first command of the page with this beginning that is not taken yet. Replaces
        these texts, which must all be in it."""
        command = next(one for one in commands(ROOT / page)
                       if one.startswith(begins) and (page, one) in self._open)
        self._open.remove((page, command))
        for old, new in dict(replaced).items():
            assert old in command, f"{command} has no {old}"
            command = command.replace(old, str(new))
        return command

    def check(self):
        assert not self._open, f"never run: {sorted(self._open)}"
