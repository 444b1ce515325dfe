# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""The audit resets the blocks of no healthy engine, even if the router does not read its events."""

import json
import time

import pytest
from held_thread import held
from predictions import misses
from stack import Stack, post

BLOCK = 16
CACHE_BLOCKS = 64
# The audit judges 250 ms after an answer. The thread is held for much longer.
HELD_S = 1.0


@pytest.fixture
def stack(build, logs):
    flags = ["--block-size", str(BLOCK), "--blocks", str(CACHE_BLOCKS)]
    with Stack(build, engines=1, engine_flags=flags, logs=logs) as running:
        yield running


def prompt(first, blocks):
    return list(range(first, first + BLOCK * blocks + 1))


def complete(port, tokens):
    body = {"model": "demo", "prompt": tokens, "max_tokens": 1}
    answer = post(port, body, path="/v1/completions")
    assert answer.status == 200, answer.body
    return answer


def reused(answer):
    return answer.usage["prompt_tokens_details"]["cached_tokens"]


def audit(stack):
    return stack.worker_states()[0]["ranks"][0]["audit"]


def evict_all(stack):
    """Makes the engine evict blocks, past the router: only events reveal it."""
    complete(stack.engine_port(0), prompt(20_000, CACHE_BLOCKS - 2))


def test_unread_removals_do_not_reset_an_engine(stack):
    question = prompt(1000, 20)
    complete(stack.port, question)
    stack.wait_until_heard()
    with held(stack.router.process.pid, "kv-events"):
        for _ in range(3):
            evict_all(stack)
            answer = complete(stack.port, question)
            assert (answer.overlap[0], reused(answer)) == (20, 0)
        time.sleep(HELD_S)
        told = audit(stack)
        assert (told["over"], told["unexplained"], told["relearned"]) == (3, 0, 0)
    stack.wait_until(lambda: misses(stack) == {("over", "removed"): 3})
    stack.wait_until_heard()
    assert audit(stack)["relearned"] == 0
    answer = complete(stack.port, question)
    assert BLOCK * answer.overlap[0] == reused(answer)


def test_removals_explain_an_engine_that_evicts_all_the_time(stack):
    questions = [prompt(1000 * n, 10) for n in range(1, 11)]
    for turn in range(60):
        complete(stack.port, questions[turn * 7 % len(questions)])
    stack.wait_until(lambda: sum(misses(stack).values()) ==
                     audit(stack)["over"] + audit(stack)["under"])
    told = audit(stack)
    assert (told["unexplained"], told["relearned"]) == (0, 0)


def test_evictions_of_uncounted_groups_do_not_reset_an_engine(build, logs):
    flags = ["--block-size", str(BLOCK), "--blocks", "2000", "--window-blocks", "4"]
    with Stack(build, engines=1, engine_flags=flags, logs=logs) as stack:
        questions = [prompt(1000 * n, 15) for n in range(1, 11)]
        for turn in range(60):
            complete(stack.port, questions[turn % len(questions)])
            stack.wait_until_heard()
        # The audit judges an answer after the router has sent its last byte.
        stack.wait_until(lambda: misses(stack) == {("over", "upper_bound"): audit(stack)["over"]})
        told = audit(stack)
        assert told["over"] >= 50
        assert (told["upper_bound"], told["unexplained"]) == (told["over"], 0)
        assert (told["relearned"], told["postponed"]) == (0, 0)
        assert stack.worker_states()[0]["events"]["upper_bound"]


def test_audit_resets_an_index_larger_than_the_engine(stack):
    # Reports of blocks that the engine already holds look like copies. The router keeps these
    # requests from engines, so the test sends them directly.
    report = {"vllm_xargs": {"kv_cache_report_mode": "full"}}
    for n in range(2 * CACHE_BLOCKS):
        for extra in ({}, report):
            body = {"model": "demo", "prompt": prompt(100 * n + 1000, 1), "max_tokens": 1, **extra}
            assert post(stack.engine_port(0), body, path="/v1/completions").status == 200
    stack.wait_until_heard()
    rank = stack.worker_states()[0]["ranks"][0]
    assert rank["blocks"] > rank["gpu_blocks"] == CACHE_BLOCKS
    stack.wait_until(lambda: audit(stack)["relearned"] == 1)
    told = audit(stack)
    assert (told["overfull"], told["relearned_because"]) == (1, "overfull")
    metrics = stack.router_metrics()
    assert 'sightline_overfull_total{worker="w0"} 1' in metrics
    assert 'sightline_relearns_total{worker="w0"} 1' in metrics


def test_audit_detects_a_lying_engine_within_two_answers(stack):
    question = prompt(1000, 10)
    complete(stack.port, question)
    # The engine publishes without a pause, past the router.
    noise = iter(range(30_000, 60_000, 100))

    def lie():
        for _ in range(2):
            order = json.dumps({"kind": "forget", "count": 1})
            assert stack.call("POST", stack.engine_port(0), "/fault", order)[0] == 200
            answer = complete(stack.port, question)
            assert answer.overlap[0] == 10 and reused(answer) == 0
            stack.wait_until_heard()

    stack.wait_until_heard()
    lie()

    def caught():
        complete(stack.engine_port(0), prompt(next(noise), 2))
        return audit(stack)["relearned"] == 1

    stack.wait_until(caught)
    told = audit(stack)
    assert (told["unexplained"], told["not_judged"]) == (2, 0)
    assert told["relearned_because"] == "unexplained"
