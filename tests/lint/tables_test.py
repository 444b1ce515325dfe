# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Tests properties of lint's table of modules."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "hack/lint"))
import tables  # noqa: E402


def reachable(edges, module):
    seen, waiting = set(), [module]
    while waiting:
        for target in edges[waiting.pop()] - seen:
            seen.add(target)
            waiting.append(target)
    return seen


def test_simulated_engines_share_only_modules_with_goldens():
    edges = tables.module_edges()
    shared = {"router/prompt/tokenizer", "router/prompt/chat", "router/prompt/template/jinja",
              "router/prompt/template/filters", "router/prompt/template/python"}
    engines = [module for module in edges if module.startswith("simulator/")]
    assert "simulator/processor" in engines
    for module in engines:
        reached = reachable(edges, module)
        assert {target for target in reached if target.startswith("router/")} <= shared, module


def test_simulator_and_router_count_and_expand_separately():
    edges = tables.module_edges()
    assert edges["simulator/processor"] == {"common/base"}
    assert not any(target.startswith("simulator/") for module in edges
                   if module.startswith("router/prompt/") for target in edges[module])


def test_edges_point_only_to_earlier_modules():
    edges, seen = tables.module_edges(), set()
    for module, allowed in edges.items():
        assert allowed <= seen, f"{module}: {allowed - seen} come later or do not exist"
        seen.add(module)


def test_common_includes_neither_router_nor_operator():
    for module, allowed in tables.module_edges().items():
        if module.startswith("common/"):
            assert all(target.startswith("common/") for target in allowed)
