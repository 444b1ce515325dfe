# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Limits vague words, semicolons and long sentences in comments and documents.

Each file may have a share of them. A file that has more is in prose.txt, which gives its counts.
These counts only go down: `python3 hack/lint --lower-prose` writes lower ones.
"""

import prose
import tables
from tree import Finding

RULES = {
    "plain-words": "comments and documents have few vague words, semicolons and long sentences",
}

# Per 1,000 words: markers, semicolons. Pages of projects that are known for plain English have 0.3
# to 1.3 of each.
DOCUMENT_SHARES = (2, 3)
COMMENT_SHARES = (4, 3)
ROWS = "hack/lint/prose.txt"

_REASONS = (
    "is vague: name who does what. Machines send, receive, reply, expire, drop, retry",
    "semicolons: one fact a sentence, with a full stop",
    f"words in a sentence: at most {prose.LONG_SENTENCE_WORDS}",
)


def counts(measured):
    return len(measured.markers), measured.semicolons, len(measured.long_sentences)


def shares(path, measured):
    """Returns what a file without a row may have: one of each, or its share."""
    per_1000 = DOCUMENT_SHARES if path.endswith(".md") else COMMENT_SHARES
    return (*(max(1, measured.words * share // 1000) for share in per_1000), 0)


def _measured(tree):
    for path in tree.files:
        if path.endswith((".md", ".h", ".cc", ".py")):
            yield path, prose.measure(path, tree.text(path))


def check(tree):
    rows = tables.prose_rows()
    for path, measured in _measured(tree):
        have, may = counts(measured), rows.get(path) or shares(path, measured)
        yield from _above(path, measured, have, may)
        if path in rows and tree.has(ROWS) and any(h < m for h, m in zip(have, may)):
            yield Finding(path, 1, "plain-words", f"{ROWS} allows {may}, the file has {have}: run "
                                                  "python3 hack/lint --lower-prose")
    for path in rows:
        if tree.has(ROWS) and not tree.has(path):
            yield Finding(ROWS, 1, "plain-words", f"{path} does not exist: delete its row")


def _above(path, measured, have, may):
    if have[0] > may[0]:
        line, word = measured.markers[-1]
        yield Finding(path, line, "plain-words",
                      f"{have[0]} markers, {may[0]} allowed: '{word}' {_REASONS[0]}")
    if have[1] > may[1]:
        line = next(line for line, text in measured.lines if ";" in text)
        yield Finding(path, line, "plain-words", f"{have[1]} of {may[1]} {_REASONS[1]}")
    if have[2] > may[2]:
        line, words = measured.long_sentences[-1]
        yield Finding(path, line, "plain-words", f"{words} {_REASONS[2]}")


def lower(tree):
    """Returns the rows with the counts that files have now. No count rises. A file within its
    shares needs no row."""
    rows = tables.prose_rows()
    for path, measured in _measured(tree):
        if path in rows:
            least = tuple(map(min, rows[path], counts(measured)))
            fits = all(h <= s for h, s in zip(least, shares(path, measured)))
            rows[path] = None if fits else least
    return {path: row for path, row in rows.items() if row and tree.has(path)}


def totals(tree):
    """Yields (kind, files, words, markers, semicolons per 1,000 words, long sentences)."""
    kinds = {}
    for path, measured in _measured(tree):
        kind = path.rsplit(".", 1)[1]
        total = kinds.setdefault(kind, [0, 0, 0, 0, 0])
        for i, value in enumerate((1, measured.words, *counts(measured))):
            total[i] += value
    for kind, (files, words, markers, semicolons, sentences) in sorted(kinds.items()):
        scale = 1000 / max(words, 1)
        yield kind, files, words, markers * scale, semicolons * scale, sentences
