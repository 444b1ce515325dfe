# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Routers over NATS: each router counts the load that is reserved at the other one."""

import contextlib
import http.client
import json
import signal

import pytest
from nats_server import NatsServer, free_port
from stack import Stack

ROUNDS = 8


class Pair:
    """Two routers of the same engines, which never answer: a request keeps its load until its
    client leaves."""

    def __init__(self, build, logs):
        self.nats = NatsServer(logs)
        flags = ["--nats", self.nats.url]
        self.engines = Stack(build, engines=2, logs=logs,
                             engine_flags=["--fault", "kind=stall,ms=0"])
        self.selection_ports = [free_port(), free_port()]
        self.routers = [Stack(build, workers=[], logs=logs / f"router{i}",
                              router_flags=[*flags, "--replica-name", f"r{i}",
                                            "--selection-port", self.selection_ports[i]])
                        for i in range(2)]

    def __enter__(self):
        try:
            self.nats.start()
            self.engines.start_engines()
            for router in self.routers:
                router.workers = self.engines.workers
                router.start_router()
            for router in self.routers:
                router.wait_until(lambda: len(sources(router)) == 1)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        with contextlib.ExitStack() as everything:
            everything.callback(self.nats.kill)
            everything.callback(self.engines.stop)
            for router in self.routers:
                everything.callback(router.stop)


@pytest.fixture
def pair(build, logs):
    with Pair(build, logs) as running:
        yield running


def sources(router):
    return json.loads(router.get(router.admin_port, "/v1/replicas")[1])["load"]["sources"]


def in_flight(router, whose):
    """Returns by worker the load of this router ("in_flight") or others ("others_in_flight")."""
    return [worker["ranks"][0][whose] for worker in router.worker_states()]


def hold(router, number):
    """Sends a request that differs from all others. It runs until the connection is closed."""
    connection = http.client.HTTPConnection("127.0.0.1", router.port)
    tokens = [1000 + number, *range(2000, 2063)]
    connection.request("POST", "/v1/completions",
                       json.dumps({"model": "demo", "prompt": tokens, "max_tokens": 1,
                                   "stream": True}),
                       {"content-type": "application/json"})
    return connection


def test_each_router_chooses_the_engine_that_the_other_left_idle(pair):
    first, second = pair.routers
    for number in range(ROUNDS):
        held = [hold(first, 2 * number)]
        first.wait_until(lambda: sum(in_flight(first, "in_flight")) == 1)
        taken = in_flight(first, "in_flight")
        # The other router may still report a request of the last round that has ended.
        second.wait_until(lambda: in_flight(second, "others_in_flight") == taken)  # noqa: B023
        held.append(hold(second, 2 * number + 1))
        second.wait_until(lambda: sum(in_flight(second, "in_flight")) == 1)
        assert in_flight(second, "in_flight") == taken[::-1]
        for worker in ("w0", "w1"):
            believed = f'sightline_worker_believed_inflight{{worker="{worker}"}}'
            assert second.router_count(believed) == 1
        for connection in held:
            connection.close()
        for router in pair.routers:
            for whose in ("in_flight", "others_in_flight"):
                router.wait_until(lambda: in_flight(router, whose) == [0, 0])
        first, second = second, first


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM])
def test_the_load_of_a_router_ends_with_the_router(pair, end):
    first, second = pair.routers
    held = hold(first, 0)
    second.wait_until(lambda: sum(in_flight(second, "others_in_flight")) == 1)
    if end == signal.SIGTERM:
        held.close()
    first.router.stop(end)
    first.router = None
    # By its age, its load stops counting for each request. The list of sources follows soon.
    second.wait_until(lambda: in_flight(second, "others_in_flight") == [0, 0])
    second.wait_until(lambda: sources(second) == [])
    gone = "silent" if end == signal.SIGKILL else "ended"
    assert second.router_count(f'sightline_load_sources_gone_total{{reason="{gone}"}}') == 1
    held.close()


def test_restarted_router_learns_the_load_of_the_others(pair):
    first, second = pair.routers
    held = [hold(first, number) for number in range(3)]
    second.wait_until(lambda: sum(in_flight(second, "others_in_flight")) == 3)
    second.router.stop()
    second.start_router()
    second.wait_until(lambda: sum(in_flight(second, "others_in_flight")) == 3)
    assert in_flight(second, "others_in_flight") == in_flight(first, "in_flight")
    for connection in held:
        connection.close()
    second.wait_until(lambda: in_flight(second, "others_in_flight") == [0, 0])


def reserve(port, attempt):
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("POST", "/select_and_reserve",
                       json.dumps({"token_ids": list(range(2000, 2064)),
                                   "reservation": f"front.1.{attempt}"}))
    answer = connection.getresponse()
    assert answer.status == 200, answer.read()
    connection.close()


def test_a_reservation_that_moves_to_another_router_counts_once(pair):
    first, second = pair.routers
    reserve(pair.selection_ports[0], 0)
    second.wait_until(lambda: sum(in_flight(second, "others_in_flight")) == 1)
    # The caller has lost its connection to the first router, which still runs.
    reserve(pair.selection_ports[1], 1)
    first.wait_until(lambda: sum(in_flight(first, "in_flight")) == 0)
    first.wait_until(lambda: sum(in_flight(first, "others_in_flight")) == 1)
    second.wait_until(lambda: sum(in_flight(second, "others_in_flight")) == 0)
    assert sum(in_flight(second, "in_flight")) == 1
    assert second.router_count('sightline_load_taken_total{where="here"}') == 1
    # The reservation moves back.
    reserve(pair.selection_ports[0], 2)
    second.wait_until(lambda: sum(in_flight(second, "in_flight")) == 0)
    assert sum(in_flight(first, "in_flight")) == 1
