# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Predictions and the engines' counts: each difference has a cause, and a wrong index recovers."""

import json

import pytest
from pictures import image_part, png, text_part
from predictions import misses
from stack import Stack, post

BLOCK = 16


@pytest.fixture
def stack(build, logs):
    flags = ["--block-size", str(BLOCK)]
    with Stack(build, engines=1, engine_flags=flags, logs=logs) as running:
        yield running


def ask(stack, seed=1):
    """Asks about an image after all events have arrived. Returns (predicted, reported) tokens."""
    stack.wait_until_heard()
    parts = [image_part(png(448, 448, seed=seed)), text_part("What is shown?")]
    answer = post(stack.port, {"model": "demo", "messages": [{"role": "user", "content": parts}]})
    assert answer.status == 200, answer.body
    return BLOCK * answer.overlap[0], answer.usage["prompt_tokens_details"]["cached_tokens"]


def audit(stack):
    return stack.worker_states()[0]["ranks"][0]["audit"]


def judged(stack):
    return audit(stack)["unexplained"] + audit(stack)["not_reused"]


def is_learned_anew(stack):
    """True after one reset by the audit, once the engine's blocks are complete and count again."""
    worker = stack.worker_states()[0]
    events = worker["events"]
    return events["relearned"] == 1 and not events["replaying"] and worker["state"] == "ready"


def test_right_predictions_are_counted_and_reset_nothing(stack):
    assert ask(stack) == (0, 0)
    predicted, reported = ask(stack)
    assert predicted == reported > 0
    stack.wait_until(lambda: audit(stack)["equal"] == 2)
    assert misses(stack) == {}
    assert stack.worker_states()[0]["version"] == "0.32.0"
    assert audit(stack) == {"equal": 2, "over": 0, "under": 0, "untold": 0, "not_reused": 0,
                            "upper_bound": 0, "not_judged": 0, "unexplained": 0, "overfull": 0,
                            "relearned": 0, "postponed": 0, "relearned_because": None}


def test_a_cleared_cache_explains_one_wrong_prediction(stack):
    ask(stack)
    predicted, reported = ask(stack)
    assert predicted == reported > 0
    status, _ = stack.call("POST", stack.engine_port(0), "/reset_prefix_cache")
    assert status == 200
    # The engine publishes the loss only with its next step.
    assert ask(stack) == (predicted, 0)
    stack.wait_until(lambda: misses(stack) == {("over", "removed"): 1})
    assert ask(stack) == (predicted, predicted)
    assert audit(stack)["unexplained"] == 0


def test_audit_resets_an_engine_after_two_silent_losses(stack):
    ask(stack)
    predicted, reported = ask(stack)
    assert predicted == reported > 0
    forget = json.dumps({"kind": "forget", "count": 2})
    status, _ = stack.call("POST", stack.engine_port(0), "/fault", forget)
    assert status == 200
    # Each time the engine has lost the blocks that it stored and published the time before.
    assert ask(stack) == (predicted, 0)
    assert ask(stack) == (predicted, 0)
    stack.wait_until(lambda: misses(stack) == {("over", "unexplained"): 2})
    stack.wait_until(lambda: audit(stack)["relearned"] == 1 and is_learned_anew(stack))
    assert 'sightline_relearns_total{worker="w0"} 1' in stack.router_metrics()
    assert ask(stack) == (predicted, predicted)


def test_a_client_cannot_make_blocks_count_twice(build, logs):
    flags = ["--block-size", str(BLOCK), "--blocks", "40"]

    def complete(stack, prompt):
        body = {"model": "demo", "prompt": prompt, "max_tokens": 1,
                "vllm_xargs": {"kv_cache_report_mode": "full"}}
        answer = post(stack.port, body, path="/v1/completions")
        assert answer.status == 200, answer.body
        stack.wait_until_heard()
        return BLOCK * answer.overlap[0], answer.usage["prompt_tokens_details"]["cached_tokens"]

    with Stack(build, engines=1, engine_flags=flags, logs=logs) as stack:
        short = [list(range(n, n + BLOCK + 1)) for n in (1000, 2000)]
        for prompt in short:
            assert complete(stack, prompt) == (0, 0)
            assert complete(stack, prompt) == (BLOCK, BLOCK)
            assert complete(stack, prompt) == (BLOCK, BLOCK)
        assert complete(stack, list(range(5000, 5000 + 38 * BLOCK))) == (0, 0)
        assert [complete(stack, prompt) for prompt in short] == [(0, 0), (0, 0)]


def test_an_engine_that_recomputes_last_blocks_keeps_its_index(build, logs):
    flags = ["--block-size", str(BLOCK), "--drop-last-hit"]
    with Stack(build, engines=1, engine_flags=flags, logs=logs) as stack:
        prompt = list(range(1000, 1000 + 10 * BLOCK))
        for turn in range(8):
            stack.wait_until_heard()
            body = {"model": "demo", "prompt": prompt, "max_tokens": 1}
            answer = post(stack.port, body, path="/v1/completions")
            assert answer.status == 200, answer.body
            cached = answer.usage["prompt_tokens_details"]["cached_tokens"]
            known = len(prompt) // BLOCK - (2 if turn else 0)
            assert cached == (BLOCK * (known - 1) if turn else 0)
            stack.wait_until(lambda: judged(stack) == turn)
            # The second wrong claim makes the audit reset the blocks. The next turn needs them.
            stack.wait_until(lambda: audit(stack)["relearned"] == (turn >= 2))
            stack.wait_until(lambda: is_learned_anew(stack) == (turn >= 2))
            prompt = prompt + list(range(5000 * turn, 5000 * turn + 2 * BLOCK))
        told = audit(stack)
        assert (told["unexplained"], told["relearned"], told["not_reused"]) == (3, 1, 4)
        assert answer.overlap[0] == known
        assert 'sightline_relearns_total{worker="w0"} 1' in stack.router_metrics()
