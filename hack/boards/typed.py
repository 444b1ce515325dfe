# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Finds misspelt fields of a board: Grafana's own types drop fields that they do not know."""

import json

from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard


def lost(given, back, path=""):
    if isinstance(given, dict) and isinstance(back, dict):
        for key, value in given.items():
            if key in back:
                yield from lost(value, back[key], f"{path}.{key}")
            else:
                yield f"{path}.{key}"
    elif isinstance(given, list) and isinstance(back, list) and len(given) == len(back):
        for number, (one, other) in enumerate(zip(given, back, strict=True)):
            yield from lost(one, other, f"{path}[{number}]")
    elif given != back:
        yield path


def fields_lost(board):
    """Returns the places that Grafana's types change or drop."""
    register_default_plugins()
    back = json.loads(JSONEncoder(sort_keys=True).encode(Dashboard.from_json(board)))
    return list(lost(board, back))
