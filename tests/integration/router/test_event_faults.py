# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Events that are lost, repeated, late or broken. Afterwards the index equals what the engine
holds, block by block, or the router reports that it does not know. It never claims blocks whose
removal was published."""

import contextlib
import http.client
import json
import random
import socket

import pytest
from stack import SLOWDOWN, Stack, post
from truth import Judge, Watch

BLOCK = 16
CACHE_BLOCKS = 64


class Traffic:
    """Sends prompts with shared beginnings to an engine, past the router: only events reveal them.
    The caches are small, so nearly every prompt evicts blocks."""

    def __init__(self, stack, seed=1):
        self.stack = stack
        self.rng = random.Random(seed)
        self.heads = [self.tokens(3 * BLOCK) for _ in range(5)]

    def tokens(self, count):
        return [self.rng.randrange(1000, 9000) for _ in range(count)]

    def send(self, engine, prompts=1):
        for _ in range(prompts):
            body = completion(self.rng.choice(self.heads) + self.tokens(2 * BLOCK + 3))
            answer = post(self.stack.engine_port(engine), body, path="/v1/completions")
            assert answer.status == 200, answer.body


def completion(tokens):
    return {"model": "demo", "max_tokens": 1, "prompt": tokens}


def ask(stack, engine, method, path, body=None):
    connection = http.client.HTTPConnection("127.0.0.1", stack.engine_port(engine),
                                            timeout=30 * SLOWDOWN)
    connection.request(method, path, None if body is None else json.dumps(body))
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    assert answer.status == 200, content
    return json.loads(content) if content else None


def order(stack, engine, kind, **fields):
    ask(stack, engine, "POST", "/fault", {"kind": kind, **fields})


def end_faults(stack, engine):
    """Ends all faults. Returns the number of strikes so far."""
    return ask(stack, engine, "DELETE", "/fault")["strikes_total"]


def state_of(stack, engine):
    return stack.worker_states()[engine]["state"]


def settle(stack, judge, traffic):
    """Waits until the router receives the engine's events. Resets clear what it missed before."""
    looks = 0

    def heard():
        nonlocal looks
        if looks % 20 == 0:
            ask(stack, 0, "POST", "/reset_prefix_cache")
            traffic.send(0)
        looks += 1
        return judge.equal(0)

    stack.wait_until(heard)


@contextlib.contextmanager
def running(build, logs, engines=1, joins_late=False, flags=()):
    """Yields a stack and its judge. joins_late: the caller starts the router."""
    flags = ["--blocks", CACHE_BLOCKS, "--block-size", BLOCK, *flags]
    stack = Stack(build, engines=engines, engine_flags=flags, logs=logs,
                  router_flags=["--fleet-probe-interval", "200ms"])
    judge = Judge(stack)
    try:
        stack.start_engines()
        if not joins_late:
            stack.start_router()
        yield stack, judge
    finally:
        stack.stop()
        judge.close()


def predicted_and_found(stack, tokens):
    answer = post(stack.port, completion(tokens), path="/v1/completions")
    assert answer.status == 200, answer.body
    return BLOCK * answer.overlap[0], answer.usage["prompt_tokens_details"]["cached_tokens"]


def wait_for_equality(stack, judge, engine=0):
    stack.wait_until(lambda: judge.equal(engine), seconds=15)


@pytest.mark.parametrize("kind,fields", [("drop", {"p": 0.3}), ("duplicate", {"p": 0.5}),
                                         ("reorder", {"p": 0.3}), ("delay", {"p": 0.3, "ms": 30})])
def test_index_equals_the_engine_after_message_faults(build, logs, kind, fields):
    with running(build, logs) as (stack, judge):
        traffic = Traffic(stack)
        with Watch(judge, [0]) as watch:
            traffic.send(0, prompts=20)
            order(stack, 0, kind, **fields)
            for _ in range(12):
                traffic.send(0, prompts=5)
                watch.wait_for_looks()
            assert end_faults(stack, 0) >= 5
            # The next message reveals the loss of the last one.
            traffic.send(0)
            wait_for_equality(stack, judge)
        tokens = traffic.heads[0] + traffic.tokens(2 * BLOCK)
        assert predicted_and_found(stack, tokens)[1] > 0
        stack.wait_until(lambda: judge.equal(0))
        predicted, found = predicted_and_found(stack, tokens)
        assert predicted == found == 4 * BLOCK


@pytest.mark.parametrize("flags", [(), ("--no-replay",)])
def test_after_a_permanent_loss_only_later_blocks_are_claimed(build, logs, flags):
    with running(build, logs, flags=flags) as (stack, judge):
        traffic = Traffic(stack)
        settle(stack, judge, traffic)
        with Watch(judge, [0]):
            traffic.send(0, prompts=20)
            order(stack, 0, "drop", lost=True, count=3)
            traffic.send(0, prompts=5)
            assert end_faults(stack, 0) == 3
            known_before = judge.truth(0).blocks
            # New beginnings, which do not depend on lost blocks.
            learning = Traffic(stack, seed=2)
            learning.send(0, prompts=30)
            stack.wait_until(lambda: judge.claim(0).counts and learnt(judge, known_before))
        ask(stack, 0, "POST", "/reset_prefix_cache")
        learning.send(0, prompts=20)
        wait_for_equality(stack, judge)


def learnt(judge, known_before):
    """True if all claimed blocks are held, and all blocks published since are claimed."""
    above, below = judge.differences(0)
    return not above and below <= known_before


@pytest.mark.parametrize("flags", [(), ("--no-replay",)])
def test_index_drops_old_blocks_after_a_hidden_restart(build, logs, flags):
    with running(build, logs, flags=flags) as (stack, judge):
        settle(stack, judge, Traffic(stack, seed=9))
        with Watch(judge, [0]):
            Traffic(stack, seed=1).send(0, prompts=30)
            wait_for_equality(stack, judge)
            assert len(judge.claim(0).blocks) > 30
            order(stack, 0, "restart", ms=0)
            stack.wait_until(lambda: restarted(stack, judge, 0))
            # The same prompts give the same sequence numbers and hashes. They include blocks of the
            # former life that the engine has not computed again.
            again = Traffic(stack, seed=1)
            again.send(0, prompts=12)
            if flags:
                # The router lost the events from before its new connection.
                settle(stack, judge, again)
            wait_for_equality(stack, judge)
            again.send(0, prompts=40)
            wait_for_equality(stack, judge)
        assert state_of(stack, 0) == "ready"


def restarted(stack, judge, engine):
    try:
        return judge.truth(engine).life == 1
    except (OSError, http.client.HTTPException):
        return False


@pytest.mark.parametrize("flags", [(), ("--no-replay",)])
def test_index_is_empty_after_an_idle_engine_restarts(build, logs, flags):
    with running(build, logs, flags=flags) as (stack, judge):
        traffic = Traffic(stack)
        settle(stack, judge, traffic)
        with Watch(judge, [0]):
            traffic.send(0, prompts=10)
            wait_for_equality(stack, judge)
            order(stack, 0, "restart", ms=300)
            stack.wait_until(lambda: restarted(stack, judge, 0))
            wait_for_equality(stack, judge)
        assert judge.claim(0).blocks == set()
        tokens = traffic.heads[0] + traffic.tokens(BLOCK + 1)
        assert predicted_and_found(stack, tokens) == (0, 0)


def test_index_drops_older_blocks_after_an_undecodable_message(build, logs):
    with running(build, logs) as (stack, judge):
        traffic = Traffic(stack)
        with Watch(judge, [0]):
            traffic.send(0, prompts=20)
            wait_for_equality(stack, judge)
            order(stack, 0, "garbage", count=1)
            traffic.send(0)
            assert end_faults(stack, 0) == 1
            known_before = judge.truth(0).blocks
            stack.wait_until(lambda: 'kind="undecodable_message"' in stack.router_metrics())
            learning = Traffic(stack, seed=2)
            learning.send(0, prompts=30)
            stack.wait_until(lambda: judge.claim(0).counts and learnt(judge, known_before))
        ask(stack, 0, "POST", "/reset_prefix_cache")
        learning.send(0, prompts=20)
        wait_for_equality(stack, judge)


@pytest.mark.parametrize("engines", [1, 2])
def test_block_size_of_events_overrides_that_of_metrics(build, logs, engines):
    with running(build, logs, engines=engines) as (stack, _):
        for engine in range(engines):
            order(stack, engine, "wrong-block-size", count=1)
        traffic = Traffic(stack)
        for engine in range(engines):
            traffic.send(engine, prompts=10)
            stack.wait_until_heard()
            for told in stack.worker_states():
                assert (told["state"], told["reason"]) == ("ready", None)
                assert (told["block_size"], told["block_size_configured"]) == (8, BLOCK)
            assert stack.worker_states()[engine]["blocks"] > 0
        for _ in range(3):
            tokens = traffic.tokens(6 * BLOCK + 3)
            for expected in (0, 6 * BLOCK):
                answer = post(stack.port, completion(tokens), path="/v1/completions")
                found = answer.usage["prompt_tokens_details"]["cached_tokens"]
                assert 8 * answer.overlap[0] == found == expected
                stack.wait_until_heard()


def test_the_only_engine_with_two_block_sizes_is_excluded(build, logs):
    with running(build, logs) as (stack, judge):
        traffic = Traffic(stack)
        with Watch(judge, [0]):
            traffic.send(0, prompts=10)
            wait_for_equality(stack, judge)
            order(stack, 0, "wrong-block-size", count=1)
            traffic.send(0, prompts=10)
            stack.wait_until(lambda: state_of(stack, 0) == "excluded", seconds=5)
            told = stack.worker_states()[0]
            assert "blocks of 8 tokens, earlier events" in told["reason"] and told["blocks"] == 0
            assert predicted_and_found(stack, traffic.tokens(4 * BLOCK)) == (0, 0)
        order(stack, 0, "restart")
        stack.wait_until(lambda: restarted(stack, judge, 0))
        settle(stack, judge, traffic)
        assert state_of(stack, 0) == "ready"


def test_an_engine_with_two_block_sizes_is_excluded_beside_another(build, logs):
    with running(build, logs, engines=2) as (stack, judge):
        traffic = Traffic(stack)
        with Watch(judge, [0, 1]):
            for engine in (0, 1):
                traffic.send(engine, prompts=10)
                wait_for_equality(stack, judge, engine)
            order(stack, 1, "wrong-block-size", count=1)
            for engine in (0, 1):
                traffic.send(engine, prompts=10)
            stack.wait_until(lambda: state_of(stack, 1) == "excluded", seconds=5)
            told = stack.worker_states()[1]
            assert "blocks of 8 tokens, earlier events" in told["reason"] and told["blocks"] == 0
            assert not judge.claim(1).counts and state_of(stack, 0) == "ready"
            wait_for_equality(stack, judge, 0)
        stack.wait_until(lambda: 'sightline_block_size_mismatch_total{worker="w1"} 1'
                         in stack.router_metrics(), seconds=5)
        assert end_faults(stack, 1) == 1
        order(stack, 1, "restart")
        stack.wait_until(lambda: restarted(stack, judge, 1))
        traffic.send(1, prompts=10)
        wait_for_equality(stack, judge, 1)
        assert state_of(stack, 1) == "ready"


def test_late_router_learns_all_blocks_by_replay(build, logs):
    with running(build, logs, joins_late=True) as (stack, judge):
        traffic = Traffic(stack)
        traffic.send(0, prompts=60)
        stack.start_router()
        with Watch(judge, [0]):
            wait_for_equality(stack, judge)
            assert len(judge.claim(0).blocks) > 30
            traffic.send(0, prompts=20)
            wait_for_equality(stack, judge)


def test_late_router_without_replay_claims_only_new_blocks(build, logs):
    with running(build, logs, joins_late=True, flags=("--no-replay",)) as (stack, judge):
        traffic = Traffic(stack)
        traffic.send(0, prompts=60)
        stack.start_router()
        with Watch(judge, [0]):
            stack.wait_until(lambda: state_of(stack, 0) == "ready")
            assert judge.claim(0).blocks == set()
            learning = Traffic(stack, seed=2)

            # Connected is not yet subscribed. Events published in between are missed too.
            def heard():
                learning.send(0)
                return judge.claim(0).blocks

            stack.wait_until(heard)
            known_before = judge.truth(0).blocks
            learning.send(0, prompts=30)
            stack.wait_until(lambda: learnt(judge, known_before))
            worker = stack.worker_states()[0]
            reason = ("no replay endpoint: blocks from before the router connected, or from lost "
                      "events, are unknown")
            assert (worker["state"], worker["reason"]) == ("ready", reason)
            assert worker["ranks"][0]["reason"] == reason
        ask(stack, 0, "POST", "/reset_prefix_cache")
        learning.send(0, prompts=20)
        wait_for_equality(stack, judge)
        stack.wait_until(lambda: stack.worker_states()[0]["reason"] is None)


def test_worker_with_a_dead_replay_endpoint_counts_and_reports_it(build, logs):
    with socket.socket() as nobody, running(build, logs, joins_late=True) as (stack, judge):
        # Bound and not listening: each connection is refused, and no other process gets the port.
        nobody.bind(("127.0.0.1", 0))
        stack.workers[0]["replay"] = f"tcp://127.0.0.1:{nobody.getsockname()[1]}"
        Traffic(stack).send(0, prompts=20)
        stack.start_router()
        reason = "its replay endpoint does not answer: earlier blocks are unknown"
        stack.wait_until(lambda: stack.worker_states()[0]["reason"] == reason)
        assert stack.worker_states()[0]["state"] == "ready"
        known_before = judge.truth(0).blocks
        learning = Traffic(stack, seed=2)
        learning.send(0, prompts=30)
        stack.wait_until(lambda: learnt(judge, known_before))
