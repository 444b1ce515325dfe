# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""A router is ready when it knows its workers, and all that it can learn from them."""

import socket

from fake_engine import FakeEngine, answer_ok
from pushes import flags, pushed, put
from stack import Stack

ANY_STATE = ("starting", "ready", "unverified", "excluded", "draining", "suspect", "down")


def ready(stack):
    status, text = stack.get(stack.admin_port, "/readyz?verbose")
    return status, dict(line.split("] ", 1)[1].split(": ", 1) if ": " in line
                        else (line.split("] ", 1)[1], "")
                        for line in text.decode().splitlines() if line.startswith("["))


def test_ready_router_names_the_source_of_its_workers(build, logs):
    with Stack(build, engines=2, logs=logs) as stack:
        stack.wait_until(lambda: ready(stack)[0] == 200)
        checks = ready(stack)[1]
        assert checks["workers"] == "2 from flags, environment and file"
        assert checks["learnt"] == ""
        assert all(worker["ready"] for worker in stack.worker_states())
        assert "sightline_learnt 1\n" in stack.router_metrics()


def test_router_waits_for_missing_events_until_ready_timeout(build, logs):
    engine = FakeEngine("a", answer_ok)
    with socket.create_server(("127.0.0.1", 0)) as silent, engine:
        worker = {**engine.worker, "events": f"tcp://127.0.0.1:{silent.getsockname()[1]}"}
        with Stack(build, workers=[worker], ready_states=("unverified",), logs=logs,
                   router_flags=["--ready-timeout", "3s"]) as stack:
            status, checks = ready(stack)
            assert status == 503 and checks["engines"] == ""
            assert "a: waiting for the first event connection. The router waits" in checks["learnt"]
            assert not stack.worker_states()[0]["ready"]
            assert stack.get(stack.admin_port, "/readyz?exclude=learnt")[0] == 200
            stack.wait_until(lambda: ready(stack)[0] == 200)
            note = ready(stack)[1]["learnt"]
            assert note.startswith("incomplete after 3 s (--ready-timeout): 1 of 1 workers are "
                                   "pending, first")


def test_router_waits_for_a_dead_replay_until_ready_timeout(build, logs, tokens):
    # This socket accepts connections and never answers. It replaces the replay socket.
    with socket.create_server(("127.0.0.1", 0)) as silent, \
            Stack(build, engines=1, logs=logs, router_flags=flags(tokens)) as stack:
        worker = {**stack.workers[0], "replay": f"tcp://127.0.0.1:{silent.getsockname()[1]}"}
        events = stack.worker_states()[0]["ranks"][0]["events_endpoint"]
        stack.router.stop()
        stack.workers = [{**worker, "events": events}]
        stack.router_flags = flags(tokens, "--ready-timeout", "4s")
        stack.ready_states = ANY_STATE
        stack.start_router()
        stack.wait_until(lambda: ready(stack)[0] == 200, seconds=10)


def test_later_workers_do_not_make_a_router_unready(build, logs, tokens):
    first, late = FakeEngine("a", answer_ok), FakeEngine("b", answer_ok)
    with first, late, socket.create_server(("127.0.0.1", 0)) as silent, \
            Stack(build, workers=[first.worker], ready_states=("unverified",), logs=logs,
                  router_flags=flags(tokens)) as stack:
        stack.wait_until(lambda: ready(stack)[0] == 200)
        worker = {**late.worker, "events": f"tcp://127.0.0.1:{silent.getsockname()[1]}"}
        assert put(stack, pushed(1, [first.worker, worker]))[0] == 200
        stack.wait_until(lambda: [w["state"] for w in stack.worker_states()] == ["unverified"] * 2)
        assert ready(stack)[0] == 200
        assert not stack.worker_states()[1]["ready"]


def test_router_does_not_wait_for_a_worker_without_answers(build, logs):
    engine = FakeEngine("a", answer_ok)
    with socket.create_server(("127.0.0.1", 0)) as silent, engine:
        port = silent.getsockname()[1]
        workers = [engine.worker, {"name": "mute", "url": f"http://127.0.0.1:{port}"}]
        with Stack(build, workers=workers, ready_states=ANY_STATE, logs=logs,
                   router_flags=["--fleet-probe-timeout", "1s"]) as stack:
            stack.wait_until(lambda: ready(stack)[0] == 200, seconds=10)
            assert ready(stack)[1]["learnt"] == ""
