# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""NATS, agents and engines fail and return. Meanwhile unproved blocks do not count, the router
gives the reason, and requests go on. Afterwards every index equals the engine's blocks."""

import http.client
import json
import time
import urllib.request

import pytest

import truth
from deployment import Deployment, Node
from pictures import png
from predictions import picture_body, send_all
from replicated import judges, metric, replicas, stream, wait_for_state, wait_until_equal
from stack import SLOWDOWN

STALE_S = 5
# Heartbeats come each second. The last one came before the failure.
EARLY_S = 2.5
DUMPS = 'sightline_replica_dumps_total{worker="w0",result="whole"}'
TOKEN = "a-token-of-who-may-drain"
# The time that a check takes on a busy machine.
LATE_S = 5


@pytest.fixture(scope="module")
def running(build, shared_logs):
    logs = shared_logs / "failures"
    logs.mkdir(parents=True, exist_ok=True)
    (logs / "tokens").write_text(TOKEN + "\n")
    with Deployment(build, engines=2, routers=2, logs=logs,
                    agent_flags=["--admin-token-file", logs / "tokens"]) as deployment:
        yield deployment


@pytest.fixture
def deployment(running):
    """The deployment of the test before, once it has recovered."""
    for view in views_of(running):
        for name in ("w0", "w1"):
            wait_for_state(view, name, is_ready)
    send_all(views_of(running)[0], bodies(0))
    all_is_well(running)
    return running


def bodies(seed, count=10):
    return [picture_body(png(224, 224, seed=seed * 100 + i)) for i in range(count)]


def views_of(deployment):
    return [deployment.view(router) for router in deployment.routers]


def is_connected(view):
    return all(n["connected"] for n in replicas(view)["nats"])


def fault(deployment, engine, kind, **fields):
    stack = deployment.engines
    status, answer = stack.call("POST", stack.engine_port(engine), "/fault",
                                json.dumps({"kind": kind, **fields}))
    assert status == 200, answer


def life(judge, engine):
    """Returns the number of the engine's life: a restart begins the next. None while it is down."""
    try:
        return judge.truth(engine).life
    except (OSError, http.client.HTTPException):
        return None


def all_is_well(deployment):
    with judges(deployment) as all_judges:
        return wait_until_equal(all_judges, len(deployment.agents))


def is_unverified(text):
    return lambda worker: worker["state"] == "unverified" and text in (worker["reason"] or "")


def is_ready(worker):
    return worker["state"] == "ready"


def test_workers_are_unverified_until_nats_returns(deployment):
    views = views_of(deployment)
    deployment.nats.kill()
    killed = time.monotonic()
    for view in views:
        view.wait_until(lambda: all(n["trouble"] for n in replicas(view)["nats"]))  # noqa: B023
        assert not is_connected(view)
        for name in ("w0", "w1"):
            wait_for_state(view, name, is_unverified("NATS cannot be reached"))
    # Not too early, because a restart of the NATS server is harmless. And not too late.
    assert STALE_S - EARLY_S < time.monotonic() - killed < (STALE_S + LATE_S) * SLOWDOWN
    # Requests go on, routed by load.
    send_all(views[1], bodies(1))
    assert not any(a.overlap[0] for a in send_all(views[0], bodies(0)))
    deployment.nats.start()
    for view in views:
        for name in ("w0", "w1"):
            wait_for_state(view, name, is_ready)
    all_is_well(deployment)
    assert all(stream(view)["digests_unequal"] == 0 for view in views)


def test_routers_fill_a_short_nats_gap_without_a_dump(deployment):
    views = views_of(deployment)
    epochs = [stream(view)["epoch"] for view in views]
    dumps = [metric(view, DUMPS) for view in views]
    deployment.nats.kill()
    send_all(views[0], bodies(2))
    deployment.nats.start()
    for view in views:
        view.wait_until(lambda: is_connected(view))  # noqa: B023
    all_is_well(deployment)
    assert [stream(view)["epoch"] for view in views] == epochs
    assert [metric(view, DUMPS) for view in views] == dumps


def test_routers_drop_a_killed_agent_and_follow_its_successor(deployment):
    view = views_of(deployment)[0]
    epoch = stream(view)["epoch"]
    deployment.agents[0].kill()
    took = wait_for_state(view, "w0", is_unverified("its agent agent0 has been dead since "))
    assert took < (STALE_S + LATE_S) * SLOWDOWN
    assert view.worker_states()[1]["state"] == "ready"
    send_all(view, bodies(3))
    deployment.agents[0].start()
    wait_for_state(view, "w0", is_ready)
    assert stream(view)["epoch"] != epoch
    all_is_well(deployment)


def test_a_frozen_agent_becomes_stale_and_keeps_its_epoch(deployment):
    view = views_of(deployment)[0]
    epoch = stream(view)["epoch"]
    deployment.agents[0].freeze()
    try:
        took = wait_for_state(view, "w0", is_unverified("its agent agent0 has been dead since "))
        assert STALE_S - EARLY_S < took < (STALE_S + LATE_S) * SLOWDOWN
        assert stream(view)["good_beat_ms"] >= STALE_S * 1000
        # The router predicts no reuse from its blocks.
        assert not any(a.overlap[0] for a in send_all(view, bodies(0)) if a.worker == "w0")
    finally:
        deployment.agents[0].thaw()
    wait_for_state(view, "w0", is_ready)
    assert stream(view)["epoch"] == epoch
    all_is_well(deployment)


def test_router_trusts_neither_of_two_agents_for_one_worker(deployment):
    view = views_of(deployment)[0]
    first = deployment.agents[0]
    twin = Node("twin", deployment.logs, lambda ports: twin_command(deployment, ports), ["admin"])
    twin.launch()
    try:
        twin.wait()
        wait_for_state(view, "w0", is_unverified("two agents serve it"))
        reason = view.worker_states()[0]["reason"]
        assert "agent0" in reason and "twin" in reason
        assert sorted(a["name"] for a in stream(view)["agents"]) == ["agent0", "twin"]
        assert view.worker_states()[1]["state"] == "ready"
        assert metric(view, 'sightline_replica_stream_events_total{worker="w0",event="contest"}')
        first.kill()
        wait_for_state(view, "w0", is_ready)
        assert stream(view)["agent"]["name"] == "twin"
        all_is_well(deployment)
    finally:
        twin.stop()
        first.start()


def twin_command(deployment, ports):
    """The first agent's command under another name."""
    command = [str(part) for part in deployment.agents[0].command(ports)]
    return ["twin" if part == "agent0" else part for part in command]


def test_routers_drop_the_claims_of_a_restarted_engine(deployment):
    # The agent sees its connection close and publishes the restart in the stream.
    with judges(deployment) as all_judges:
        lives = {e: all_judges[0].truth(e).life for e in range(2)}
        with truth.Watch(all_judges[0], [0, 1]) as one, truth.Watch(all_judges[1], [0, 1]) as two:
            for engine in (0, 1):
                fault(deployment, engine, "restart", ms=0)
                view = all_judges[0].stack
                view.wait_until(lambda: life(all_judges[0], engine)  # noqa: B023
                                not in (None, lives[engine]))  # noqa: B023
                for watch in (one, two):
                    watch.wait_for_looks()
        for view in views_of(deployment):
            for name in ("w0", "w1"):
                wait_for_state(view, name, is_ready)
            send_all(view, bodies(5))
        wait_until_equal(all_judges, 2)


def test_a_drained_worker_gets_no_request(deployment):
    view = views_of(deployment)[1]
    drain = urllib.request.Request(
        f"http://127.0.0.1:{deployment.agents[0].admin_port}/drain?timeout=20", method="POST",
        headers={"authorization": f"Bearer {TOKEN}"})
    with urllib.request.urlopen(drain, timeout=30 * SLOWDOWN) as answer:
        assert answer.status == 200, answer.read()
    wait_for_state(view, "w0", lambda w: w["state"] == "draining")
    assert stream(view)["draining"]
    assert {a.worker for a in send_all(view, bodies(6))} == {"w1"}
    # The drain lasts until the agent ends.
    deployment.agents[0].stop()
    deployment.agents[0].start()
    wait_for_state(view, "w0", is_ready)
