# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Copies a model directory with only the first merges of its tokenizer: `shorten_model.py FROM TO`.
This is for programs that start often and slowly. Special tokens get the ids after the pieces, also
in the configuration. Other pieces keep their ids."""

import json
import pathlib
import shutil
import sys

BYTES = 256  # ids below are single bytes, the following ids are the merges' results in order
MERGES = 32_000
FIRST_SPECIAL = BYTES + MERGES


def shorten(tokenizer):
    """Changes the tokenizer in place. Returns the new ids of special tokens by their old ids."""
    model = tokenizer["model"]
    model["merges"] = model["merges"][:MERGES]
    model["vocab"] = {piece: number for piece, number in model["vocab"].items()
                      if number < FIRST_SPECIAL}
    added = tokenizer["added_tokens"]
    moved = {token["id"]: FIRST_SPECIAL + i for i, token in enumerate(added)}
    for token in added:
        token["id"] = moved[token["id"]]
    return moved


def renumber(value, moved):
    if isinstance(value, dict):
        return {key: renumber(inner, moved) for key, inner in value.items()}
    return moved.get(value, value) if isinstance(value, int) else value


def main():
    source, target = sys.argv[1:]
    shutil.copytree(source, target, dirs_exist_ok=True)
    target = pathlib.Path(target)
    tokenizer = json.loads((target / "tokenizer.json").read_text(encoding="utf-8"))
    moved = shorten(tokenizer)
    config = renumber(json.loads((target / "config.json").read_text(encoding="utf-8")), moved)
    (target / "config.json").write_text(json.dumps(config), encoding="utf-8")
    (target / "tokenizer.json").write_text(json.dumps(tokenizer, ensure_ascii=False),
                                           encoding="utf-8")


main()
