# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""A worker list pushed to one of several routers reaches all routers, also later ones."""

import contextlib
import json
import signal
import threading

import pytest
from fake_engine import FakeEngine, answer_ok
from nats_server import NatsClient, NatsServer, free_port
from pushes import flags, list_of, names, pushed, put
from stack import Stack


@pytest.fixture
def nats(logs):
    with NatsServer(logs) as server:
        yield server


class Routers:
    """Routers in front of the same fake engines. A test may stop and start any router."""

    def __init__(self, build, logs, nats, tokens, count=2):
        self.everything = contextlib.ExitStack()
        self.engines = [self.everything.enter_context(FakeEngine(name, answer_ok))
                        for name in "abc"]
        self.workers = [engine.worker for engine in self.engines]
        self.routers = []
        for i in range(count):
            more = ["--nats", nats.url, "--replica-name", f"r{i}"]
            stack = Stack(build, workers=self.workers[:1], ready_states=("unverified",),
                          logs=logs / f"r{i}", router_flags=flags(tokens, *more),
                          ports={"engines": (0, 0, 0), "router": free_port(),
                                 "admin": free_port()})
            self.routers.append(stack)

    def __enter__(self):
        for router in self.routers:
            self.everything.enter_context(router)
        return self

    def __exit__(self, *_):
        self.everything.close()


def state(router):
    held = list_of(router)
    return held["source"], held["generation"], names(router)


def test_restarted_router_prefers_the_pushed_list_over_its_file(build, logs, nats, tokens):
    with Routers(build, logs, nats, tokens, 3) as deployment:
        first, second, third = deployment.routers
        assert state(third) == ("file", None, ["a"])
        assert put(first, pushed(7, deployment.workers[1:]))[0] == 200
        for router in (second, third):
            router.wait_until(lambda r=router: state(r) == ("peers", 7, ["b", "c"]), seconds=5)
        digests = {list_of(router)["digest"] for router in deployment.routers}
        assert len(digests) == 1
        listed = json.loads(second.get(second.admin_port, "/v1/replicas")[1])["list"]
        assert (listed["source"], listed["generation"]) == ("peers", 7)

        # After kill and start, a router never uses its file, even if the pushed-to router is gone.
        first.router.stop(signal.SIGKILL)
        third.router.stop(signal.SIGKILL)
        third.workers = deployment.workers[1:]  # the test waits for these, the flags name others
        third.router_flags = third.router_flags[:]
        third.start_router()
        assert state(third) == ("peers", 7, ["b", "c"])
        log = third.router.log()
        assert "worker=a" not in log
        # A router that has the list only from a peer refuses an older list too.
        status, answer = put(third, pushed(6, deployment.workers))
        assert status == 409 and answer["held"]["generation"] == 7
        first.start_router()
        assert state(first)[:2] == ("peers", 7)


def test_replicas_agree_on_the_newest_list_after_nats_returns(build, logs, nats, tokens):
    with Routers(build, logs, nats, tokens) as deployment:
        first, second = deployment.routers
        assert put(first, pushed(1, deployment.workers))[0] == 200
        second.wait_until(lambda: state(second)[1] == 1, seconds=5)
        nats.kill()
        assert put(first, pushed(3, deployment.workers[:2]))[0] == 200
        assert put(second, pushed(2, deployment.workers[:1]))[0] == 200
        nats.start()
        second.wait_until(lambda: state(second) == ("peers", 3, ["a", "b"]), seconds=20)
        assert state(first) == ("push", 3, ["a", "b"])
        # Both routers report two lists of one generation, and a later list resolves the conflict.
        nats.kill()
        assert put(first, pushed(4, deployment.workers[:1]))[0] == 200
        assert put(second, pushed(4, deployment.workers[:2]))[0] == 200
        nats.start()
        for router in (first, second):
            router.wait_until(lambda r=router: r.router_count(
                'sightline_pushes_total{what="peers",result="forked"}') > 0, seconds=30)
            router.wait_until(lambda r=router: "another worker list of the same generation"
                              in r.router.log())
        assert put(first, pushed(5, deployment.workers))[0] == 200
        second.wait_until(lambda: state(second) == ("peers", 5, ["a", "b", "c"]), seconds=20)


def test_recorded_messages_bring_no_old_list_back(build, logs, nats, tokens):
    subject = "sl.default.default.0."
    with Routers(build, logs, nats, tokens) as deployment, NatsClient(nats) as recorder:
        first, second = deployment.routers
        recorder.subscribe(subject + "lists.*")
        recorder.subscribe(subject + "ask-lists")
        recorder.flush()
        assert put(first, pushed(1, deployment.workers))[0] == 200
        second.wait_until(lambda: state(second)[1] == 1, seconds=5)
        tape = []
        while not tape or b'"generation": 1' not in tape[-1][1]:
            tape.append(recorder.next())
        # No router with the list is left. Only recorded messages can answer the router's request.
        for router in deployment.routers:
            router.router.stop(signal.SIGKILL)
        is_over = threading.Event()

        def play():
            while not is_over.wait(0.02):
                for said_on, payload in tape:
                    recorder.publish(said_on, payload)
                recorder.flush()

        player = threading.Thread(target=play)
        player.start()
        second.start_router()
        is_over.set()
        player.join()
        # The router rejects a made-up message before it reads the content.
        recorder.publish(subject + "ask-lists", b"\x01" + b"x" * 40)
        recorder.flush()
        second.wait_until(lambda: second.router_count(
            'sightline_pushes_total{what="peers",result="forged"}') > 0)
        assert state(second) == ("file", None, ["a"])
        assert 'what="peers",result="taken"' not in second.router_metrics()
