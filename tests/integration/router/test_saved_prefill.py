# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""The prefill time that the router reports as saved equals the time that the engines would need."""

import concurrent.futures
import re

import pytest
from stack import SLOWDOWN, Stack, post

# Prefill is so slow that all else of an answer takes little time in comparison.
TOKENS_PER_S = 1000 / SLOWDOWN
PROMPT_TOKENS = 1200
PROMPTS = 4
# Relative to the engines' own time.
TOLERANCE = 0.15


@pytest.fixture
def stack(build, logs):
    flags = ["--prefill-tokens-per-s", TOKENS_PER_S]
    with Stack(build, engines=2, engine_flags=flags, logs=logs) as running:
        yield running


def ask(stack, number):
    """Sends a prompt that differs from every other number's. Returns its cached tokens."""
    start = 1000 * number
    answer = post(stack.port, {"model": "demo", "prompt": list(range(start, start + PROMPT_TOKENS)),
                               "max_tokens": 2, "stream": True,
                               "stream_options": {"include_usage": True}}, path="/v1/completions")
    assert answer.status == 200, answer.body
    return answer.usage["prompt_tokens_details"]["cached_tokens"]


@pytest.mark.parametrize("parallel", [1, 8], ids=["idle", "loaded"])
def test_saved_seconds_equal_the_engines_prefill_time(stack, parallel):
    numbers = range(parallel * PROMPTS)
    # The router measures an engine's pace while nothing else runs there.
    computed = [ask(stack, number) for number in numbers[:PROMPTS]]
    with concurrent.futures.ThreadPoolExecutor(parallel) as pool:
        computed += pool.map(lambda number: ask(stack, number), numbers[PROMPTS:])
        stack.wait_until_heard()
        reused = list(pool.map(lambda number: ask(stack, number), numbers))
    assert sum(computed) == 0
    assert sum(reused) > 0.9 * PROMPT_TOKENS * len(reused)
    # The router counts an answer after its client has received all of it.
    stack.wait_until(lambda: stack.router_count("sightline_reused_tokens_total") == sum(reused))
    counts = re.findall(r"^sightline_saved_prefill_seconds_total{.*} (\S+)$",
                        stack.router_metrics(), re.M)
    assert sum(map(float, counts)) == pytest.approx(sum(reused) / TOKENS_PER_S, rel=TOLERANCE)
