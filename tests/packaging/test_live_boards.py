# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Tests boards on a Prometheus that scrapes real programs: three routers, a frontend, eight
simulated engines with an agent each, and NATS. Every query has data, and its values are right."""

import argparse
import contextlib
import http.client
import json
import operator
import threading

import pytest
from boards import BOARDS
from boards.live import filled, panels_without_data
from boards.model import board_json
from deployment import Deployment
from helm import ROOT
from mixed_load import Load
from stack import post
from watching import Watch, never_with_data, wait_for


ENGINES = 8
PACE = 20_000  # tokens a second
SPEED = ["--prefill-tokens-per-s", PACE, "--encoder-tokens-per-s", 100 * PACE,
         "--decode-tokens-per-s", 500, "--blocks", 2000]
# The operator's board needs a Kubernetes: tests/cluster/chart.
HERE = [board_json(board) for board in BOARDS if board.name != "operator"]
# Queries without data while the deployment is healthy: (uid, panel) -> fault that gives them data.
EMPTY_WHILE_WELL = {("sightline-engines", "Errors by kind"): "garbage"}


def targets_of(deployment):
    return {
        "routers": [(node.admin_port, {}) for node in deployment.routers],
        "frontends": [(node.admin_port, {}) for node in deployment.frontends],
        "agents": [(node.admin_port, {}) for node in deployment.agents],
        "engines": [(deployment.engines.engine_port(i), {})
                    for i in range(len(deployment.agents))],
    }


def clients_of(deployment):
    return [node.port for node in (*deployment.routers, *deployment.frontends)]


@pytest.fixture(scope="module")
def deployment(tmp_path_factory):
    with Deployment(ROOT / "build/release", engines=ENGINES, routers=3, frontends=1,
                    engine_flags=SPEED, logs=tmp_path_factory.mktemp("logs")) as made:
        yield made


@pytest.fixture(scope="module")
def watch(deployment, tmp_path_factory):
    with Watch(tmp_path_factory.mktemp("watch"), targets_of(deployment)) as made:
        yield made


def without_data(watch):
    asked = argparse.Namespace(url=watch.url, since=15, window="10s")
    return panels_without_data(asked, HERE)


def test_every_query_has_data_at_least_after_its_fault(deployment, watch):
    with Load(clients_of(deployment)):
        well = EMPTY_WHILE_WELL.keys()
        assert never_with_data(lambda: without_data(watch), well, 300) == well
        for kind in set(EMPTY_WHILE_WELL.values()):
            fault = {"kind": kind, "p": 1, "count": 3}
            deployment.engines.call("POST", deployment.engines.engine_port(0), "/fault",
                                    json.dumps(fault))
        assert never_with_data(lambda: without_data(watch), set(), 300) == set()


def query(uid, title, number=0):
    board = next(one for one in HERE if one["uid"] == uid)
    panel = next(one for one in board["panels"] if one["title"] == title)
    return filled(panel["targets"][number]["expr"], "10s")


def engines_counts(deployment, name):
    return sum(deployment.engines.engine_metrics(i).get(name, 0) for i in range(ENGINES))


def counted(watch, name):
    return watch.settled(f"sum(sightline_{name}_total)")


def test_reused_tokens_equal_the_engines_counts(deployment, watch):
    def ours():
        return counted(watch, "reused_tokens"), counted(watch, "judged_prompt_tokens")

    def theirs():
        return tuple(engines_counts(deployment, f"vllm:prefix_cache_{name}_total")
                     for name in ("hits", "queries"))
    before = ours(), theirs()
    with Load(clients_of(deployment), judged=True, seed=2) as load:
        wait_for(lambda: len(load.statuses) > 400, 600)
    assert set(load.statuses) == {200}
    after = ours(), theirs()
    assert after[1][0] - before[1][0] > 10_000
    for mine, mine_before, own, own_before in zip(after[0], before[0], after[1], before[1],
                                                  strict=True):
        assert mine - mine_before == own - own_before


def learn_paces(deployment, watch):
    """Makes each router measure each engine's prefill time of a token. The prompts are new and take
    0.2 s, so a wait for a processor is short in comparison."""
    number = 0
    while (watch.value("count(sightline_prefill_seconds_per_token)") or 0) < 3 * ENGINES:
        for node in deployment.routers:
            for _ in range(ENGINES):
                number += 1
                content = f"{number} " + f"Nobody has seen {number} of these. " * 500
                answer = post(node.port, {"model": "demo", "max_tokens": 2, "stream": True,
                                          "stream_options": {"include_usage": True},
                                          "messages": [{"role": "user", "content": content}]})
                assert answer.status == 200
        assert number < 100 * ENGINES


@pytest.mark.parametrize("clients, pause_s", [(1, 0.05), (12, 0)], ids=["idle", "loaded"])
def test_board_shows_the_engines_saved_prefill_time(deployment, watch, clients, pause_s):
    learn_paces(deployment, watch)
    saved, reused = (counted(watch, name) for name in ("saved_prefill_seconds", "reused_tokens"))
    with Load(clients_of(deployment), clients=clients, judged=True, pause_s=pause_s,
              seed=3 + clients) as load:
        wait_for(lambda: len(load.statuses) > 300, 600)
    saved = counted(watch, "saved_prefill_seconds") - saved
    reused = counted(watch, "reused_tokens") - reused
    assert reused > 10_000
    assert saved == pytest.approx(reused / PACE, rel=0.15)


def test_imbalance_equals_that_of_running_requests(deployment, watch):
    router = deployment.view(deployment.routers[0])
    content = [{"type": "text", "text": "To be counted. " * 600}]
    body = {"model": "demo", "messages": [{"role": "user", "content": content}],
            "max_tokens": 28_000, "stream": True}
    held = [hold(deployment.routers[0].port, body) for _ in range(5)]
    wait_for(lambda: len(running(router)) and sum(running(router)) == 5)

    # The router closes the connection of a client that does not read.
    for connection in held:
        threading.Thread(target=read_on, args=(connection,), daemon=True).start()

    def told_and_true():
        now = running(router)
        # The rounding of an average depends on the order of its parts.
        true = pytest.approx(max(now) * ENGINES / sum(now), rel=1e-12)
        return watch.value(query("sightline-engines", "Imbalance")), true
    with contextlib.suppress(RuntimeError):
        wait_for(lambda: operator.eq(*told_and_true()), 20)
    told, true = told_and_true()
    every = watch.get(f"{watch.url}/api/v1/query", query="sightline_worker_inflight != 0")
    assert told == true, every["data"]["result"]
    for connection in held:
        connection.close()


def read_on(connection):
    with contextlib.suppress(OSError, ValueError, AttributeError, http.client.HTTPException):
        while connection.begun.readline():
            pass


def running(router):
    return [worker["in_flight"] for worker in router.worker_states()]


def hold(port, body):
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("POST", "/v1/chat/completions", json.dumps(body),
                       {"content-type": "application/json"})
    connection.begun = connection.getresponse()
    assert connection.begun.status == 200
    return connection


def test_lag_equals_the_delay_of_messages(deployment, watch):
    lag = query("sightline-engines", "Lag")
    for i in range(ENGINES):
        deployment.engines.call("POST", deployment.engines.engine_port(i), "/fault",
                                json.dumps({"kind": "delay", "p": 1, "ms": 1500}))
    with Load(clients_of(deployment), clients=2, judged=True, seed=9):
        wait_for(lambda: 1.5 <= (watch.value(f"max({lag})") or 0) < 2.5, 40, "lag is 1.5 s")
    for i in range(ENGINES):
        deployment.engines.call("DELETE", deployment.engines.engine_port(i), "/fault")
    with Load(clients_of(deployment), clients=2, judged=True, seed=10):
        wait_for(lambda: (watch.value(f"max({lag})") or 9) < 0.5, 40, "lag is gone")


def test_router_counts_an_answer_at_its_first_token(deployment, watch):
    begun = "sum(sightline_answers_begun_total)"
    before = watch.settled(begun)
    body = {"model": "demo", "messages": [{"role": "user", "content": "Count."}],
            "max_tokens": 8000, "stream": True}
    held = hold(deployment.routers[1].port, body)
    wait_for(lambda: watch.value(begun) == before + 1, 20, "the answer has begun")
    held.close()
    post(deployment.routers[1].port, {**body, "stream": False, "max_tokens": 2})
    wait_for(lambda: watch.value(begun) == before + 2, 20, "the other one too")
