# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Makes texts for comparing tokenizers: texts of several kinds, and odd texts."""

import itertools
import json
import pathlib
import random
import sysconfig

# The text after a word, and the weight of each.
PAUSES = {"English": ([" ", ", ", ". ", ".\n\n"], [85, 8, 6, 1]),
          "CJK": (["", "，", "。", "。\n"], [85, 8, 6, 1])}


def vocabulary_words(tokenizer_json, kind):
    """Returns the vocabulary's words of a language, frequent ones first, and pairs of words."""
    vocabulary = json.loads(tokenizer_json.read_text(encoding="utf-8"))["model"]["vocab"]
    to_byte = {symbol: byte for byte, symbol in byte_symbols().items()}
    words = []
    for token in sorted(vocabulary, key=vocabulary.get):
        try:
            word = bytes(to_byte[symbol] for symbol in token).decode()
        except (UnicodeDecodeError, KeyError):
            continue
        if kind == "English" and word[0] == " " and word[1:].isascii() and word[1:].islower():
            words.append(word[1:])
        if kind == "CJK" and all("\u4000" <= c <= "\u9fff" for c in word):
            words.append(word)
    rng = random.Random(5)
    for i in range(1, len(words), 2):
        words.append(rng.choice(words[:i + 1]) + rng.choice(words[:i + 1]))
    return words


def byte_symbols():
    """Returns {byte: its character in a byte-level vocabulary (GPT-2)}."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in plain]
    return {**{byte: chr(byte) for byte in plain},
            **{byte: chr(256 + i) for i, byte in enumerate(others)}}


def zipf_text(tokenizer_json, kind, size):
    """Returns words drawn by Zipf's law, with punctuation."""
    rng = random.Random(7)
    words = vocabulary_words(tokenizer_json, kind)
    weights = list(itertools.accumulate(1 / (rank + 3) for rank in range(len(words))))
    marks, mark_weights = PAUSES[kind]
    text, length = [], 0
    while length < size:
        drawn = rng.choices(words, cum_weights=weights, k=10_000)
        ends = rng.choices(marks, weights=mark_weights, k=10_000)
        text.append("".join(itertools.chain(*zip(drawn, ends))))
        length += len(text[-1].encode())
    return "".join(text)


def code_text(size):
    """Returns text of Python's own library, which every machine with this script has."""
    text, length = [], 0
    library = pathlib.Path(sysconfig.get_path("stdlib"))
    for path in sorted(library.rglob("*.py")):
        if "site-packages" in path.parts or "dist-packages" in path.parts or length >= size:
            continue
        text.append(path.read_text(encoding="utf-8", errors="ignore"))
        length += len(text[-1].encode())
    return "".join(text)


def json_text(tokenizer_json, size):
    """Returns records with names, numbers and sentences."""
    rng = random.Random(11)
    words = zipf_text(tokenizer_json, "English", size // 2).split()
    text, length = [], 0
    while length < size:
        at = rng.randrange(len(words) - 20)
        record = {"id": rng.randrange(10**9), "name": words[at], "score": round(rng.random(), 4),
                  "active": rng.random() < 0.5, "note": " ".join(words[at + 1:at + 12]),
                  "tags": words[at + 12:at + 15]}
        text.append(json.dumps(record, indent=rng.choice((None, 2))))
        length += len(text[-1])
    return "\n".join(text)


def of_kinds(tokenizer_json, size):
    """Returns {kind: about `size` bytes of text}."""
    return {"English": zipf_text(tokenizer_json, "English", size), "code": code_text(size),
            "CJK": zipf_text(tokenizer_json, "CJK", size), "JSON": json_text(tokenizer_json, size)}


def stretches(text, size):
    """Yields the text in stretches of `size` bytes of UTF-8, cut between characters."""
    data = text.encode()
    at = 0
    while at < len(data):
        end = min(at + size, len(data))
        while end < len(data) and data[end] & 0xC0 == 0x80:
            end += 1
        yield data[at:end]
        at = end


def odd_text(rng, kinds):
    """Returns a text that no author would write: stretches of real text between difficult ones.

    The difficult ones are any character of Unicode, runs of blanks and line ends, digits,
    contractions in odd cases, combining marks, added tokens and parts of them.
    """
    makers = [
        lambda: "".join(chr(c) for c in rng.choices(range(1, 0x250), k=rng.randrange(1, 20))),
        lambda: "".join(any_character(rng) for _ in range(rng.randrange(1, 20))),
        lambda: rng.choice(" \t\n\r\u00a0\u2003\u3000\u0085\u200b") * rng.randrange(1, 12),
        lambda: "".join(rng.choices(" \t\n\r", k=rng.randrange(1, 12))),
        lambda: str(rng.randrange(10 ** rng.randrange(1, 18))),
        lambda: rng.choice("'’") + rng.choice(("s", "T", "re", "VE", "m", "Ll", "d", "ſ", "x")),
        lambda: rng.choice("aeouAEOU") + rng.choice("\u0300\u0301\u0308\u0323\u0345") * 2,
        lambda: rng.choice(("<|im_start|>", "<|im_end|>", "<|image_pad|>", "<|vision_start|>",
                            "<|endoftext|>", "<think>", "<|im_", "|>", "<tool_call>")),
        lambda: rng.choice("!?.,;:-_=+*/#$%&()[]{}<>@^~`|\\\"") * rng.randrange(1, 9),
        lambda: rng.choice("abcdefghXYZßıİǅﬁΣς") * rng.randrange(1, 40),
    ]
    parts = []
    for _ in range(rng.randrange(1, 60)):
        if rng.random() < 0.3:
            text = rng.choice(kinds)
            at = rng.randrange(len(text))
            parts.append(text[at:at + rng.randrange(1, 200)])
        else:
            parts.append(rng.choice(makers)())
    return "".join(parts)


def any_character(rng):
    while True:
        code = rng.choice((rng.randrange(1, 0x3000), rng.randrange(0x3000, 0x30000),
                           rng.randrange(1, 0x110000)))
        if not 0xD800 <= code < 0xE000:
            return chr(code)
