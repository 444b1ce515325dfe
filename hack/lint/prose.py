# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Measures prose: comments of C++ and Python, and documents."""

import io
import re
import tokenize
from dataclasses import dataclass

import cxx

# Words that make a sentence vague, or that give a machine a mind.
MARKER = re.compile(
    r"\b(?:told|tells?|hears?|heard|anew|likewise|nobody|somebody|whoever|none|what is|that is|"
    r"of it|those that|given up|at once|as far as|whatever|such|so that|becomes? of|wish(?:es|ed)?|"
    r"believe[sd]?|looks? after|stands?|thereof|by itself)\b", re.IGNORECASE)
LONG_SENTENCE_WORDS = 30

_FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`[^`\n]*`")
_WORD = re.compile(r"[A-Za-z][\w'-]*")
_LICENCE = re.compile(r"SPDX-License-Identifier|Copyright The Sightline")


@dataclass(frozen=True)
class Prose:
    """Counts of one file. lines: (line, text) of each line of prose, without code."""
    lines: tuple
    words: int
    markers: tuple  # (line, marker)
    semicolons: int
    long_sentences: tuple  # (line, words)


def _cxx_lines(text):
    for line, comment in cxx.comments(text):
        for offset, part in enumerate(comment.splitlines()):
            yield line + offset, re.sub(r"^\s*(?:///?|/\*+|\*+/?)|\*/\s*$", "", part)


def _is_docstring(tokens, i):
    before = [t for t in tokens[:i] if t.type not in (tokenize.COMMENT, tokenize.NL)]
    return not before or before[-1].type in (tokenize.INDENT, tokenize.DEDENT, tokenize.NEWLINE,
                                             tokenize.ENCODING)


def _python_lines(text):
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    except (tokenize.TokenError, SyntaxError):
        return
    for i, token in enumerate(tokens):
        if token.type == tokenize.COMMENT:
            yield token.start[0], re.sub(r"\bNone\b", "`None`", token.string.lstrip("#"))
        elif token.type == tokenize.STRING and token.string.startswith('"""') \
                and _is_docstring(tokens, i):
            for offset, part in enumerate(token.string.strip('"').splitlines()):
                yield token.start[0] + offset, re.sub(r"\bNone\b", "`None`", part)


def _document_lines(text):
    blanked = _FENCE.sub(lambda m: re.sub(r"[^\n]", " ", m.group(0)), text)
    yield from enumerate(blanked.splitlines(), 1)


def _sentences(lines):
    """Yields (line, words) of each sentence. A cell of a table, an item of a list and a heading end
    a sentence. So does a gap between lines."""
    begin, words, last = 0, 0, 0
    for line, text in lines:
        if line != last + 1 or not text.strip() or re.match(r"\s*(?:[-*#|]|\d+\.)\s?", text):
            if words:
                yield begin, words
            words = 0
        last = line
        for part in re.split(r"((?<=[.!?:])\s+|\|)", text):
            if part == "|" or (words and not part.strip()):
                if words and part:
                    yield begin, words
                    words = 0
                continue
            count = len(part.split())
            begin = begin if words else line
            words += count
        if re.search(r"[.!?:]\s*$", text) and words:
            yield begin, words
            words = 0
    if words:
        yield begin, words


def measure(path, text):
    """Returns the Prose of a file, or None for a kind of file that has no prose."""
    read = (_document_lines if path.endswith(".md") else _cxx_lines if path.endswith((".h", ".cc"))
            else _python_lines if path.endswith(".py") else None)
    if read is None:
        return None
    lines = tuple((line, _CODE.sub("X", part)) for line, part in read(text)
                  if not _LICENCE.search(part))
    return Prose(
        lines=lines,
        words=sum(len(_WORD.findall(part)) for _, part in lines),
        markers=tuple((line, m.group(0)) for line, part in lines for m in MARKER.finditer(part)),
        semicolons=sum(part.count(";") for _, part in lines),
        long_sentences=tuple((line, words) for line, words in _sentences(lines)
                             if words > LONG_SENTENCE_WORDS))
