# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Requests that the router does not read: embeddings and the like."""

import json
import threading

from fake_engine import FakeEngine, response, router
from stack import post

EMBED = {"model": "demo", "input": "hello"}
PATH = "/v1/embeddings"


def embedding(connection, _request):
    connection.sendall(response(200, '{"object":"list","data":[]}'))
    return True


def close_now(_connection, _request):
    return False


def state_of(stack, name):
    return {w["name"]: w["state"] for w in stack.worker_states()}[name]


def test_a_dead_worker_costs_no_request_and_is_left_alone(build, logs):
    dead, alive = FakeEngine("dead", embedding), FakeEngine("alive", embedding)
    with router(build, logs, dead, alive, flags=["--fleet-probe-interval", "1h"]) as stack:
        dead.close()
        assert [post(stack.port, EMBED, path=PATH).status for _ in range(10)] == [200] * 10
        assert len(alive.requests) == 10
        assert state_of(stack, "dead") in ("suspect", "down")
        assert 'sightline_retries_total{worker="dead"' in stack.router_metrics()


def test_what_an_engine_may_have_begun_is_not_begun_again_elsewhere(build, logs):
    engines = [FakeEngine(name, close_now) for name in "ab"]
    with router(build, logs, *engines) as stack:
        answer = post(stack.port, EMBED, path=PATH)
        assert answer.status == 502
        assert sum(len(engine.requests) for engine in engines) == 1
        asked = next(engine.name for engine in engines if engine.requests)
        line = f"worker state worker={asked} state=suspect"
        stack.wait_until(lambda: line in stack.router.log())


def test_beyond_the_concurrency_limit_they_are_told_to_come_back_too(build, logs):
    release = threading.Event()

    def slow(connection, request):
        release.wait()
        return embedding(connection, request)

    engine = FakeEngine("slow", slow)
    with router(build, logs, engine, flags=["--concurrent-requests-max", "2"]) as stack:
        waiting = [threading.Thread(target=post, args=(stack.port, EMBED, PATH), daemon=True)
                   for _ in range(2)]
        for thread in waiting:
            thread.start()
        stack.wait_until(lambda: len(engine.requests) == 2)
        answers = []
        one_more = threading.Thread(
            target=lambda: answers.append(post(stack.port, EMBED, path=PATH)), daemon=True)
        one_more.start()
        try:
            stack.wait_until(lambda: answers)
        finally:
            release.set()
        assert answers[0].status == 503 and answers[0].headers["retry-after"] == "1"
        assert "concurrent-requests-max" in json.loads(answers[0].body)["error"]["message"]
        for thread in waiting:
            thread.join()
