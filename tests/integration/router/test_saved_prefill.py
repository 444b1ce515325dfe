# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""The prefill time that the router says was saved is the time that the engines would have taken."""

import concurrent.futures
import re

import pytest
from stack import SLOWDOWN, Stack, post

# So slow that what else an answer takes is little beside it.
TOKENS_PER_S = 1000 / SLOWDOWN
PROMPT_TOKENS = 1200
PROMPTS = 4
# Of the engines' own time.
TOLERANCE = 0.15


@pytest.fixture
def stack(build, logs):
    flags = ["--prefill-tokens-per-s", TOKENS_PER_S]
    with Stack(build, engines=2, engine_flags=flags, logs=logs) as running:
        yield running


def ask(stack, number):
    """An answer whose prompt is like no other number's."""
    start = 1000 * number
    answer = post(stack.port, {"model": "demo", "prompt": list(range(start, start + PROMPT_TOKENS)),
                               "max_tokens": 2, "stream": True,
                               "stream_options": {"include_usage": True}}, path="/v1/completions")
    assert answer.status == 200, answer.body
    return answer.usage["prompt_tokens_details"]["cached_tokens"]


@pytest.mark.parametrize("parallel", [1, 8], ids=["idle", "loaded"])
def test_the_saved_seconds_are_those_of_the_engines(stack, parallel):
    numbers = range(parallel * PROMPTS)
    # An engine's pace is learnt while nothing else runs there.
    computed = [ask(stack, number) for number in numbers[:PROMPTS]]
    with concurrent.futures.ThreadPoolExecutor(parallel) as pool:
        computed += pool.map(lambda number: ask(stack, number), numbers[PROMPTS:])
        stack.wait_until_heard()
        reused = list(pool.map(lambda number: ask(stack, number), numbers))
    assert sum(computed) == 0
    assert sum(reused) > 0.9 * PROMPT_TOKENS * len(reused)
    # An answer is counted after its client has all of it.
    stack.wait_until(lambda: stack.router_count("sightline_reused_tokens_total") == sum(reused))
    counts = re.findall(r"^sightline_saved_prefill_seconds_total{.*} (\S+)$",
                        stack.router_metrics(), re.M)
    assert sum(map(float, counts)) == pytest.approx(sum(reused) / TOKENS_PER_S, rel=TOLERANCE)
