# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""sightline-operator as installed, with real pods: one object becomes a router."""

import json
import time

from installed import (READY_S, ROLLING, SYSTEM, admin, ask, client, condition, evict, failed,
                       names, router, status, wait_until_serves)

RESTS_S, QUIET_S = 3, 120
GRACE_S = 135  # of a worker's pod
LEASE = ("update", "leases")


def test_one_object_becomes_a_router_that_reuses_blocks(home):
    home.apply(router())
    wait_until_serves(home)
    line = home.kubectl("get", "mmr", "demo", "--no-headers").split()
    assert line[1:3] == ["True", "AsWanted"], line
    assert {"16", "disabled", "2/2"} <= set(line), line
    code, first = ask(home, 7)
    assert code == 200 and first.startswith("0/"), first

    def comes_home():
        code, overlap = ask(home, 7)
        known, _, whole = overlap.partition("/")
        return code == 200 and int(known) > 0.8 * int(whole) and overlap

    home.until(comes_home, "the cache holds a repeated picture")
    assert condition(home, "IndexConsistent") == "True OneBlockSize"
    home.until(lambda: are_equal(home), "both routers know the same blocks")
    story = home.kubectl("describe", "mmr", "demo")
    assert "Ready: block size 16, transfer disabled, workers 2/2, routers 2" in story
    home.kubectl("delete", "mmr", "demo")
    home.until(lambda: not names(home), "nothing is left", READY_S)


def are_equal(home):
    """True if both routers know the same blocks of each worker, and know some."""
    known = [{worker["name"]: worker["blocks"] for worker in json.loads(read("/v1/workers"))}
             for read in admin(home, "router").values()]
    return len(known) == 2 and known[0] == known[1] and sum(known[0].values()) > 0


def test_a_new_block_size_replaces_everything_and_fails_no_request(demo):
    before = status(demo)["currentRevision"]

    def is_there():
        revisions = status(demo).get("revisions", [])
        assert len(revisions) <= 2
        return (len(revisions) == 1 and revisions[0]["blockSize"] == 32
                and condition(demo, "Ready") == "True AsWanted")

    with client(demo) as answers:
        demo.apply(router(ROLLING | {"kv": {"blockSize": 32}}))
        demo.until(is_there, "the new revision is all there is", READY_S)
    assert not failed(answers)
    assert len(answers) > 10
    demo.until(lambda: not [name for name in names(demo) if before in name],
               "nothing of the old revision is left", READY_S)


def test_a_reverted_change_fails_no_request(demo):
    before = status(demo)["currentRevision"]
    with client(demo) as answers:
        demo.apply(router(ROLLING | {"kv": {"blockSize": 32}}))
        demo.until(lambda: len(status(demo)["revisions"]) == 2, "two revisions are there")
        demo.apply(router(ROLLING | {"kv": {"blockSize": 16}}))
        demo.until(lambda: [one["name"] for one in status(demo)["revisions"]] == [before]
                   and condition(demo, "Ready") == "True AsWanted",
                   "the old revision is all there is", READY_S)
    assert not failed(answers)


def test_weights_and_policy_change_without_restarts(demo):
    pods = sorted(pod["metadata"]["uid"] for pod in demo.get("pods")["items"])
    live = {"router": {"policy": "round-robin", "weights": {"overlapCredit": "0.5"}}}
    with client(demo) as answers:
        demo.apply(router(ROLLING | live))

        def is_told():
            seen = {(row["value"], row["origin"]) for read in admin(demo, "router").values()
                    for row in json.loads(read("/v1/settings")) if row["name"] == "routing.policy"}
            return seen == {("round-robin", "push")}

        demo.until(is_told, "every router has the policy")
    assert not failed(answers)
    assert sorted(pod["metadata"]["uid"] for pod in demo.get("pods")["items"]) == pods


def test_an_evicted_worker_is_replaced_and_fails_no_request(demo):
    workers = demo.get("pods", "-l", "app.kubernetes.io/component=worker")["items"]
    name = workers[0]["metadata"]["name"]
    with client(demo) as answers:
        evict(demo, name)
        demo.wait(f"pod/{name}", "delete", READY_S)
        demo.until(lambda: status(demo)["workers"] == "2/2"
                   and condition(demo, "Ready") == "True AsWanted", "two workers again", READY_S)
    assert not failed(answers)


def test_a_suspended_router_has_no_pods_and_comes_back(demo):
    demo.apply(router(ROLLING | {"suspend": True}))
    demo.until(lambda: not demo.get("pods")["items"], "no pod is left", READY_S)
    assert condition(demo, "Ready") == "False Suspended"
    demo.apply(router(ROLLING | {"suspend": False}))
    demo.wait("mmr/demo", "Ready", READY_S)


def test_pods_that_end_during_their_start_end_early(demo):
    def are_starting():
        pods = demo.get("pods", "-l", "app.kubernetes.io/component=worker")["items"]
        return any(pod["spec"].get("nodeName") for pod in pods)

    def suspend():
        demo.apply(router(ROLLING | {"suspend": True}))
        demo.until(lambda: not demo.get("pods")["items"], "no pod is left", GRACE_S / 2)

    suspend()
    for _ in range(2):
        demo.apply(router(ROLLING))
        demo.until(are_starting, "workers start")
        suspend()
    demo.apply(router(ROLLING))
    demo.wait("mmr/demo", "Ready", READY_S)


def test_nothing_is_written_while_nothing_changes(demo):
    log = demo.bed.directory / "logs/audit.log"
    demo.until(lambda: condition(demo, "Progressing") == "False Completed", "it has come to rest")

    def written(since):
        """Returns what the operator wrote: {(verb, resource): the last content}."""
        with log.open() as file:
            file.seek(since)
            events = [json.loads(line) for line in file if line.endswith("\n")]
        return {(event["verb"], event["objectRef"]["resource"]): event.get("requestObject")
                for event in events
                if event.get("userAgent", "").startswith("sightline-operator")
                and event["verb"] not in ("get", "list", "watch")
                and event["objectRef"].get("namespace") in (demo.name, SYSTEM)}

    def rests():
        begin = log.stat().st_size
        time.sleep(RESTS_S)
        return set(written(begin)) <= {LEASE}

    # Routers use workers before their pods are Ready, because the kubelet checks gates later.
    demo.until(lambda: all(pool["ready"] == pool["desired"] for pool in status(demo)["pools"]),
               "the workers' pods are ready")
    demo.until(rests, "what was under way is over")
    begin = log.stat().st_size
    time.sleep(QUIET_S)
    writes = written(begin)
    assert set(writes) == {LEASE}, f"{writes}\n{status(demo)}"
