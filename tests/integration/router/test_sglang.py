# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""A worker of the family SGLang. The router discovers, follows and uses a real server's recorded
session."""

import json

import pytest
from sglang_recording import SglangRecording
from stack import Stack, post

PAGE = 16
SESSION = "qwen2vl-page16"
# The last exchange that is compared. The next one has an extra_key, and the recorded server
# published its blocks as if they had no key.
LAST = 28


@pytest.fixture
def engine(build):
    with SglangRecording("s0", build / "test-data/captures", SESSION) as recording:
        yield recording


def stack_of(build, logs, engine, **options):
    worker = options.pop("worker", engine.worker)
    stack = Stack(build, "tiny-qwen2-vl", workers=[worker], served_model_name="tiny", logs=logs,
                  whole_tokenizer=True, **options)
    stack.engine = engine
    return stack


def send(stack, exchange):
    """Sends the request of an exchange once the router has applied all published events."""
    published = stack.engine.last_sequence
    stack.wait_until(lambda: stack.worker_states()[0]["events"]["seq"] == published)
    return post(stack.port, exchange["request_body"].encode())


def test_router_predicts_the_reuse_of_each_recorded_text(build, logs, engine):
    with stack_of(build, logs, engine) as stack:
        view = stack.worker_states()[0]
        assert (view["family"], view["version"]) == ("sglang", "0.5.23")
        compared = hits = 0
        for exchange in engine.exchanges:
            if exchange["n"] > LAST:
                break
            answer = send(stack, exchange)
            usage = json.loads(answer.body)["usage"]
            cached = usage["prompt_tokens_details"]["cached_tokens"]
            assert answer.overlap == (cached // PAGE, usage["prompt_tokens"] // PAGE), exchange
            compared, hits = compared + 1, hits + (cached > 0)
        assert compared > 12 and hits > 5


def test_an_extra_key_becomes_a_salt_and_claims_nothing(build, logs, engine):
    exchange = next(e for e in engine.exchanges if '"extra_key": "x"' in e["request_body"])
    with stack_of(build, logs, engine) as stack:
        assert send(stack, exchange).overlap[0] == 0
        body = json.loads(engine.requests[-1][3])
        assert body["extra_key"] is None
        assert body["cache_salt"] == '0::"x"'


def test_an_engine_of_another_family_is_routed_without_overlap(build, logs, engine):
    worker = {key: value for key, value in engine.worker.items() if key != "family"}
    with stack_of(build, logs, engine, worker=worker, ready_states=("excluded",)) as stack:
        view = stack.worker_states()[0]
        assert view["state"] == "excluded"
        assert "it reports that it is SGLang" in view["reason"]
        assert "family=sglang" in view["reason"]
        answer = post(stack.port, engine.exchanges[0]["request_body"].encode())
        assert (answer.status, answer.overlap[0]) == (200, 0)
