# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Processes that do not fit together exclude each other from their views, and each side reports the
difference. A process without the key or with another scope's permissions changes nothing."""

import json
import os

import pytest

from deployment import Deployment
from nats_server import NatsClient, NatsServer
from pictures import png
from predictions import picture_body, send_all
from replicated import another_router, judges, member, metric, replicas, stream, wait_until_equal
from replicated import worker
from stack import Stack
from truth import Judge

UNSEEN = "its agent has not answered"
PREFIX = "sl.default.default.0."
VERSION = b"\x01"  # the first byte of an envelope, which ends with a tag of 16 bytes


@pytest.fixture(scope="module")
def deployment(build, shared_logs):
    with Deployment(build, engines=1, routers=1, logs=shared_logs / "refusals") as running:
        view = running.view(running.routers[0])
        send_all(view, [picture_body(png(224, 224, seed=i)) for i in range(6)])
        view.wait_until_heard()
        yield running


@pytest.fixture
def view(deployment):
    return deployment.view(deployment.routers[0])


def check_both_say(view, odd, name, difference, values):
    """Each of the two routers names the difference with both values, and counts it."""
    odd.wait_until(lambda: member(odd, "router0") and not member(odd, "router0")["fits"])
    view.wait_until(lambda: member(view, name) and not member(view, name)["fits"])
    for told in (member(view, name), member(odd, "router0")):
        assert told["difference"] == difference
        for value in values:
            assert value in told["reason"], told
    series = f'sightline_replica_members_unfit{{difference="{difference}"}}'
    view.wait_until(lambda: metric(view, series) == 1)
    odd.wait_until(lambda: "member joined" in odd.router.log()
                   and "fits=false" in odd.router.log())


def check_it_hears_no_agent(odd):
    odd.wait_until(lambda: worker(odd)["reason"] == UNSEEN)
    assert worker(odd)["state"] == "unverified"
    assert worker(odd)["blocks"] == 0
    assert stream(odd)["agents"] == []


def test_routers_of_two_revisions_report_it_and_share_no_agent(deployment, view):
    with another_router(deployment, "odd", ["--revision", "next"]) as odd:
        check_both_say(view, odd, "odd", "revision", ["next", "0"])
        check_it_hears_no_agent(odd)
        assert sum(stream(odd)["refused"].values()) == 0
    assert worker(view)["state"] == "ready"


def test_routers_of_two_scopes_do_not_see_each_other(deployment, view):
    with another_router(deployment, "odd", ["--scope", "default/other"]) as odd:
        check_it_hears_no_agent(odd)
        odd.wait_until(lambda: replicas(odd)["nats"][0]["connected"])
        assert replicas(odd)["members"] == []
        assert member(view, "odd") is None


def test_routers_report_different_identity_keys_and_refuse_messages(deployment, view, tmp_path):
    key = tmp_path / "key"
    key.write_bytes(os.urandom(32))
    refused = stream(view)["refused"]
    with another_router(deployment, "odd", ["--identity-key-file", key]) as odd:
        check_both_say(view, odd, "odd", "identity_key", [])
        # The agent sends a heartbeat each second.
        odd.wait_until(lambda: stream(odd)["refused"]["wrong-tag"] > 0)
        check_it_hears_no_agent(odd)
        series = 'sightline_replica_refused_total{worker="w0",reason="wrong-tag"}'
        assert metric(odd, series) > 0
        # A thread of its own writes the log.
        odd.wait_until(lambda: "refused messages about a worker" in odd.router.log())
        assert stream(view)["refused"] == refused, "no agent answers its requests"
    assert worker(view)["state"] == "ready"


@pytest.mark.parametrize("difference,options", [
    ("model", {"model": "qwen2_5-vl"}),
    ("served_model", {"served_model_name": "other"}),
])
def test_routers_report_different_models_and_refuse_messages(deployment, view, difference, options):
    states = ("unverified", "excluded")
    with another_router(deployment, "odd", states=states, **options) as odd:
        check_both_say(view, odd, "odd", difference, [])
        odd.wait_until(lambda: stream(odd) is None or stream(odd)["refused"]["wrong-tag"] > 0)
        assert worker(odd)["blocks"] == 0


def test_routers_report_different_block_sizes(build, deployment, view, logs):
    flags = ["--nats", deployment.nats.url, "--replica-name", "odd"]
    with Stack(build, engines=1, engine_flags=["--block-size", 32], router_flags=flags,
               logs=logs) as odd:
        check_both_say(view, odd, "odd", "block_size", ["16", "32"])


def test_router_reports_other_frame_versions(deployment, view):
    fitting = another_router(deployment, "mine", states=("ready",))
    with fitting, NatsClient(deployment.nats) as client:
        client.subscribe(PREFIX + "members")
        announced = {"leaving": True}
        while announced["leaving"]:
            announced = json.loads(client.next()[1])
        newer = {"name": "newer", "instance": "00000000000000aa", "frames_min": 7,
                 "frames_max": 9}
        client.publish(PREFIX + "members", json.dumps({**announced, **newer}).encode())
        view.wait_until(lambda: member(view, "newer"))
        told = member(view, "newer")
        assert told["difference"] == "frame_versions" and told["frames"] == [7, 9]
        assert "7 to 9" in told["reason"] and "2 to 2" in told["reason"]
        series = 'sightline_replica_members_unfit{difference="frame_versions"}'
        view.wait_until(lambda: metric(view, series) == 1)


# The forged messages of the test below, by the reason for which the router refuses them.
STRANGE = {"wrong-tag": 4, "other-version": 1, "too-short": 2}


def refused_count(view, reason):
    return metric(view, f'sightline_replica_refused_total{{worker="w0",reason="{reason}"}}') or 0


def test_forged_messages_are_counted_by_reason_and_change_nothing(deployment, view):
    with judges(deployment) as all_judges, NatsClient(deployment.nats) as client:
        before = stream(view)
        counted = {reason: refused_count(view, reason) for reason in STRANGE}
        client.subscribe(PREFIX + "kv.w0.0")
        subject, frame = client.next()
        other_version = bytes([frame[0] + 1]) + frame[1:]
        damaged = frame[:-1] + bytes([frame[-1] ^ 1])
        shortened = frame[:-20] + frame[-16:]
        for forged in (damaged, shortened, VERSION + bytes(100), VERSION + bytes(100_000)):
            client.publish(subject, forged)
        client.publish(subject, other_version)
        client.publish(subject, frame[:5])
        client.publish(subject, b"")
        # The agent does not answer forged requests.
        client.subscribe(PREFIX + "to.>")
        for size in (0, 10, 1_000, 900_000):
            client.publish(PREFIX + "ask.w0.0", VERSION + bytes(size))
        client.flush()
        total = sum(before["refused"].values()) + sum(STRANGE.values())
        view.wait_until(lambda: sum(stream(view)["refused"].values()) == total)
        after = stream(view)
        for reason, count in after["refused"].items():
            assert count == before["refused"][reason] + STRANGE.get(reason, 0)
        assert after["epoch"] == before["epoch"] and after["health"] == "verified"
        # The router already knows a genuine frame that is sent again.
        client.publish(subject, frame)
        view.wait_until(lambda: stream(view)["dropped"]["repeated"]
                        > before["dropped"]["repeated"])
        wait_until_equal(all_judges, 1)
        for reason, count in STRANGE.items():
            assert refused_count(view, reason) == counted[reason] + count
        view.wait_until(lambda: "refused messages about a worker" in view.router.log())
        refused = agent_count(deployment, "refused")
        assert refused >= 4, "the agent has counted them too"


def agent_count(deployment, what):
    text = deployment.engines.get(deployment.agents[0].admin_port, "/metrics")[1].decode()
    return sum(float(line.rpartition(" ")[2]) for line in text.splitlines()
               if line.startswith("sightline_agent_") and what in line)


@pytest.mark.parametrize("name", ["a.b", "w0.0", "w0:0"])
def test_a_worker_name_is_one_token_of_its_subject(deployment, view, name):
    check_nothing_is_mixed_up(deployment, view, {**deployment.worker(0), "name": name}, [])


@pytest.mark.parametrize("flags", [
    ["--revision", "*"], ["--revision", "0.>"], ["--scope", "*/*"], ["--scope", "default/>"],
    ["--scope", "default/default.0"], ["--revision", "0\r\nPUB x 0\r\n"],
])
def test_a_hostile_revision_or_scope_receives_no_other_streams(deployment, view, flags):
    check_nothing_is_mixed_up(deployment, view, deployment.worker(0), flags)


@pytest.mark.parametrize("name", ["*", ">", "%2A", "w 0", "w\r\n0"])
def test_router_refuses_an_invalid_worker_name_at_start(deployment, name):
    with pytest.raises(RuntimeError, match="must be 1 to 63 characters"):
        check_nothing_is_mixed_up(deployment, None, {**deployment.worker(0), "name": name}, [])


def check_nothing_is_mixed_up(deployment, view, spec, flags):
    """The stream of a hostile name is separate. It receives no message of others, and they receive
    no message of this stream."""
    hostile = Stack(deployment.build, workers=[spec], worker_extra=",agent=true",
                    ready_states=("unverified",), logs=deployment.logs / "hostile",
                    router_flags=["--nats", deployment.nats.url, "--replica-name", "a.*> b",
                                  *flags])
    with hostile:
        before = stream(view)
        hostile.wait_until(lambda: all(n["connected"] for n in replicas(hostile)["nats"]))
        hostile.wait_until(lambda: worker(hostile, spec["name"])["reason"] == UNSEEN)
        # Two heartbeats of the other stream's agent.
        view.wait_until(lambda: stream(view)["position"] >= before["position"] + 2)
        told = stream(hostile, spec["name"])
        assert told["reason"] == UNSEEN
        assert sum(told["refused"].values()) == sum(told["dropped"].values()) == 0
        assert stream(view)["refused"] == before["refused"]
        assert stream(view)["dropped"]["other-agent"] == before["dropped"]["other-agent"]


TENANTS = """
authorization { users = [
  {user: ours, password: ours,
   permissions: {publish: "sl.team.ours.>", subscribe: "sl.team.ours.>"}}
  {user: b, password: b, permissions: {publish: "sl.team.b.>", subscribe: "sl.team.b.>"}}
] }
"""


def test_another_tenant_receives_and_changes_nothing(build, logs, tmp_path):
    credentials = tmp_path / "credentials"
    credentials.write_text("ours:ours\n")
    flags = ["--scope", "team/ours", "--nats-credentials-file", credentials]
    with Deployment(build, engines=1, routers=1, nats_config=TENANTS, agent_flags=flags,
                    router_flags=flags, logs=logs) as deployment:
        view = deployment.view(deployment.routers[0])
        with NatsClient(deployment.nats, "b", "b") as stranger:
            for subject in ("sl.team.ours.>", "sl.>", ">", "*.team.ours.0.kv.w0.0"):
                stranger.subscribe(subject)
            stranger.publish("sl.team.ours.0.kv.w0.0", VERSION + bytes(100))
            stranger.publish("sl.team.ours.0.ask.w0.0", VERSION + bytes(100))
            stranger.publish("sl.team.ours.0.members", b"{}")
            stranger.flush()
            send_all(view, [picture_body(png(224, 224, seed=i)) for i in range(4)])
            judge = Judge(view)
            try:
                view.wait_until(lambda: judge.equal(0))
            finally:
                judge.close()
            position = stream(view)["position"]
            view.wait_until(lambda: stream(view)["position"] >= position + 2)
            assert stranger.next(seconds=0.1) is None
            assert len(stranger.errors) == 7, stranger.errors
        assert sum(stream(view)["refused"].values()) == 0
        assert metric(view, 'sightline_replica_members_refused_total{reason="malformed"}') == 0


def test_router_reports_a_wrong_nats_password(build, logs, tmp_path):
    credentials = tmp_path / "credentials"
    credentials.write_text("ours:other\n")
    with NatsServer(logs, TENANTS) as nats:
        stack = Stack(build, engines=1, logs=logs,
                      router_flags=["--nats", nats.url, "--nats-credentials-file", credentials])
        with stack:
            stack.wait_until(lambda: "uthenticat" in (replicas(stack)["nats"][0]["trouble"] or ""))
            told = replicas(stack)["nats"]
            assert not any(n["connected"] for n in told)
            assert all(n["away_ms"] >= 0 for n in told)
            assert "other" not in json.dumps(told)
