# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""One engine with odd reports or without answers, beside healthy engines."""

import json
import threading

from fake_engine import FakeEngine, answer_ok, router
from stack import SLOWDOWN, post


def chat(text):
    return {"model": "demo", "messages": [{"role": "user", "content": text}], "max_tokens": 4}


class Odd(FakeEngine):
    """Answers some of the router's own requests differently."""

    def __init__(self, name, answers, behave=answer_ok):
        super().__init__(name, behave)
        self._answers = answers

    def quiet_answers(self):
        return {**super().quiet_answers(), **self._answers}


def models(**entry):
    return (200, json.dumps({"object": "list", "data": [{"id": "demo", **entry}]}))


def test_engine_with_a_short_context_gets_no_longer_prompt(build, logs):
    short = Odd("short", {"/v1/models": models(parent=None, max_model_len=1)})
    a, b = FakeEngine("a", answer_ok), FakeEngine("b", answer_ok)
    with router(build, logs, short, a, b) as stack:
        for number in range(10):
            assert post(stack.port, chat(f"question {number}")).status == 200
        assert not short.requests


def test_router_avoids_a_sleeping_engine_and_gives_the_reason(build, logs):
    said = {"/is_sleeping": (200, json.dumps({"is_sleeping": False}))}
    asleep, awake = Odd("asleep", said), FakeEngine("awake", answer_ok)
    flags = ["--fleet-probe-interval", "200ms"]
    with router(build, logs, asleep, awake, flags=flags) as stack:
        said["/is_sleeping"] = (200, json.dumps({"is_sleeping": True}))
        def states():
            return {w["name"]: (w["state"], w["reason"]) for w in stack.worker_states()}
        stack.wait_until(lambda: states()["asleep"][0] == "draining")
        assert "sleeps" in states()["asleep"][1]
        for number in range(6):
            assert post(stack.port, chat(f"question {number}")).headers[
                "x-sightline-worker"] == "awake"
        assert not asleep.requests
        said["/is_sleeping"] = (200, json.dumps({"is_sleeping": False}))
        stack.wait_until(lambda: states()["asleep"][0] == "unverified")


def test_router_suspects_an_engine_that_returns_no_token(build, logs):
    release = threading.Event()

    def hold(connection, request):
        release.wait(60 * SLOWDOWN)
        return answer_ok(connection, request)

    stuck, well = FakeEngine("stuck", hold), FakeEngine("well", answer_ok)
    with router(build, logs, stuck, well, flags=["--fleet-wedge-timeout", "1s"]) as stack:
        def state():
            return {w["name"]: (w["state"], w["reason"]) for w in stack.worker_states()}["stuck"]
        clients = []

        def holds_one():
            """Adds a client until the stuck engine has one: any of equal engines may be chosen."""
            if not stuck.requests:
                name = f"{len(clients)}"
                clients.append(threading.Thread(target=post, args=(stack.port, chat(name))))
                clients[-1].start()
            return stuck.requests

        stack.wait_until(holds_one)
        stack.wait_until(lambda: state()[0] == "suspect")
        assert "fleet.wedge_timeout" in state()[1]
        held = len(stuck.requests)
        for number in range(6):
            assert post(stack.port, chat(f"later {number}")).headers[
                "x-sightline-worker"] == "well"
        assert len(stuck.requests) == held
        release.set()
        for client in clients:
            client.join()
        stack.wait_until(lambda: state()[0] != "suspect")
