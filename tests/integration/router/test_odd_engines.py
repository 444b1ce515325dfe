# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""One engine that tells something odd, or gives nothing, beside engines that are well."""

import json

from fake_engine import FakeEngine, answer_ok, router
from stack import post


def chat(text):
    return {"model": "demo", "messages": [{"role": "user", "content": text}], "max_tokens": 4}


class Odd(FakeEngine):
    """Answers some of the router's own questions otherwise."""

    def __init__(self, name, answers, behave=answer_ok):
        super().__init__(name, behave)
        self._answers = answers

    def quiet_answers(self):
        return {**super().quiet_answers(), **self._answers}


def models(**entry):
    return (200, json.dumps({"object": "list", "data": [{"id": "demo", **entry}]}))


def test_an_engine_of_a_short_context_gets_no_longer_prompt_and_shrinks_no_other(build, logs):
    short = Odd("short", {"/v1/models": models(parent=None, max_model_len=1)})
    a, b = FakeEngine("a", answer_ok), FakeEngine("b", answer_ok)
    with router(build, logs, short, a, b) as stack:
        for number in range(10):
            assert post(stack.port, chat(f"question {number}")).status == 200
        assert not short.requests


def test_a_sleeping_engine_is_no_candidate_and_says_so(build, logs):
    asleep = Odd("asleep", {"/is_sleeping": (200, json.dumps({"is_sleeping": True}))})
    awake = FakeEngine("awake", answer_ok)
    with router(build, logs, asleep, awake) as stack:
        def states():
            return {w["name"]: (w["state"], w["reason"]) for w in stack.worker_states()}
        stack.wait_until(lambda: states()["asleep"][0] == "draining")
        assert "sleeps" in states()["asleep"][1]
        for number in range(6):
            assert post(stack.port, chat(f"question {number}")).headers[
                "x-sightline-worker"] == "awake"
        assert not asleep.requests
