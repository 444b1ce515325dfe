# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""The router loads and unloads an adapter on all workers of a model, or on no worker."""

import contextlib
import json
import threading

import pytest
from fake_engine import FakeEngine, answer_ok, response, router
from stack import post

LOAD, UNLOAD = "/v1/load_lora_adapter", "/v1/unload_lora_adapter"
FLAGS = ["--passed-path", LOAD, "--passed-path", UNLOAD]
HERONS = {"lora_name": "herons", "lora_path": "/adapters/herons"}


class LoraEngine(FakeEngine):
    """Loads and unloads adapters like vLLM 0.32. `refuses`: paths that it answers with 400.
    `breaks`: paths whose request it executes without an answer."""

    def __init__(self, name, adapters=()):
        super().__init__(name, self._answer)
        self.adapters = dict(adapters)
        self.refuses, self.breaks = set(), set()
        self.answers = threading.Event()  # while unset, requests wait
        self.answers.set()

    def quiet_answers(self):
        answers = super().quiet_answers()
        models = json.loads(answers["/v1/models"][1])
        models["data"] += [{"id": name, "object": "model", "root": path, "parent": "demo"}
                           for name, path in self.adapters.items()]
        return {**answers, "/v1/models": (200, json.dumps(models))}

    def _answer(self, connection, request):
        path, given = request[1], json.loads(request[3])
        if path not in (LOAD, UNLOAD):
            return answer_ok(connection, request)
        self.answers.wait()
        name = given["lora_name"]
        is_there = name in self.adapters
        can_be_done = not is_there or given.get("load_inplace") if path == LOAD else is_there
        if path in self.refuses or not can_be_done:
            connection.sendall(response(400, json.dumps({"error": {"message": self.name}})))
            return True
        if path == LOAD:
            self.adapters[name] = given["lora_path"]
        else:
            del self.adapters[name]
        if path in self.breaks:
            return False
        connection.sendall(response(200, "Success: " + self.name, "text/plain"))
        return True


@contextlib.contextmanager
def three(build, logs, *adapters):
    """A router in front of three engines that have loaded these adapters."""
    engines = [LoraEngine(f"e{i}", dict(adapters[i:i + 1] and adapters[i])) for i in range(3)]
    with router(build, logs, *engines, flags=FLAGS) as stack:
        yield stack, engines


def loaded(engines):
    return [engine.adapters for engine in engines]


def changes(stack, outcome, action="load"):
    labels = f'action="{action}",outcome="{outcome}"'
    return stack.router_count(f"sightline_adapter_changes_total{{{labels}}}")


def test_router_loads_an_adapter_on_every_worker(build, logs):
    with three(build, logs) as (stack, engines):
        answer = post(stack.port, HERONS, path=LOAD)
        assert answer.status == 200 and answer.body.startswith(b"Success")
        assert loaded(engines) == [{"herons": "/adapters/herons"}] * 3
        assert changes(stack, "done") == 1
        assert post(stack.port, {"lora_name": "herons"}, path=UNLOAD).status == 200
        assert loaded(engines) == [{}] * 3


@pytest.mark.parametrize("bad", range(3))
def test_router_unloads_an_adapter_that_one_worker_refuses(build, logs, bad):
    with three(build, logs) as (stack, engines):
        engines[bad].refuses.add(LOAD)
        answer = post(stack.port, HERONS, path=LOAD)
        assert answer.status == 400 and engines[bad].name in answer.body.decode()
        assert loaded(engines) == [{}] * 3
        assert changes(stack, "undone") == 1 and changes(stack, "done") == 0


@pytest.mark.parametrize("bad", range(3))
def test_adapter_stays_on_all_workers_if_one_keeps_it(build, logs, bad):
    there = {"herons": "/adapters/herons"}
    with three(build, logs, there, there, there) as (stack, engines):
        engines[bad].refuses.add(UNLOAD)
        assert post(stack.port, {"lora_name": "herons"}, path=UNLOAD).status == 400
        assert loaded(engines) == [there] * 3


def test_router_reverts_a_worker_that_does_not_answer(build, logs):
    with three(build, logs) as (stack, engines):
        engines[1].breaks.add(LOAD)
        assert post(stack.port, HERONS, path=LOAD).status == 503
        assert loaded(engines) == [{}] * 3


def test_router_loads_an_adapter_on_workers_that_lack_it(build, logs):
    there = {"herons": "/adapters/herons"}
    with three(build, logs, there) as (stack, engines):
        assert post(stack.port, HERONS, path=LOAD).status == 200
        assert loaded(engines) == [there] * 3
        assert engines[0].requests == []
        again = post(stack.port, HERONS, path=LOAD)  # a single engine gives the same answer
        assert again.status == 400
        assert loaded(engines) == [there] * 3


def test_router_keeps_another_adapter_of_the_same_name(build, logs):
    other = {"herons": "/adapters/other"}
    with three(build, logs, {}, other) as (stack, engines):
        assert post(stack.port, HERONS, path=LOAD).status == 400
        assert loaded(engines) == [{}, other, {}]
        assert post(stack.port, {**HERONS, "load_inplace": True}, path=LOAD).status == 200
        assert loaded(engines) == [{"herons": "/adapters/herons"}] * 3


def test_router_names_a_worker_that_it_cannot_revert(build, logs):
    with three(build, logs) as (stack, engines):
        for engine in engines:
            engine.refuses.add(UNLOAD)
        engines[2].refuses.add(LOAD)
        while not any(loaded(engines)):  # repeats if the first worker is the one that refuses
            answer = post(stack.port, HERONS, path=LOAD)
        assert answer.status == 503
        message = json.loads(answer.body)["error"]["message"]
        for engine in engines:
            assert (engine.name in message) == (engine is engines[2] or bool(engine.adapters))
        assert changes(stack, "torn") == 1


def test_router_changes_one_adapter_at_a_time(build, logs):
    with three(build, logs) as (stack, engines):
        for engine in engines:
            engine.answers.clear()
        first = []
        asked = threading.Thread(target=lambda: first.append(post(stack.port, HERONS, path=LOAD)))
        asked.start()
        stack.wait_until(lambda: any(engine.requests for engine in engines))
        assert post(stack.port, HERONS, path=LOAD).status == 503
        for engine in engines:
            engine.answers.set()
        asked.join()
        assert first[0].status == 200
        assert loaded(engines) == [{"herons": "/adapters/herons"}] * 3
        assert post(stack.port, {"lora_name": "herons"}, path=UNLOAD).status == 200


def test_router_changes_no_adapter_while_a_worker_is_down(build, logs):
    with three(build, logs) as (stack, engines):
        engines[1].close()
        stack.wait_until(lambda: stack.worker_states()[1]["state"] != "unverified")
        answer = post(stack.port, HERONS, path=LOAD)
        assert answer.status == 503
        assert "worker e1 is" in json.loads(answer.body)["error"]["message"]
        assert loaded(engines) == [{}] * 3


@pytest.mark.parametrize("body, status", [({}, 400), ([], 400), ({"lora_name": 5}, 400),
                                          ({"lora_name": "a", "lora_path": "b" * 70_000}, 413)])
def test_malformed_adapter_requests_reach_no_worker(build, logs, body, status):
    with three(build, logs) as (stack, engines):
        assert post(stack.port, body, path=LOAD).status == status
        assert [engine.requests for engine in engines] == [[], [], []]
