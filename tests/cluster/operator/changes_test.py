# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Changes that a client which never stops does not notice: other sizes, another image, an absent
operator. While two revisions serve, each gets the share of its workers, and no router receives
blocks of two sizes."""

import contextlib
import json
import math

import pytest
from installed import (BUILD, READY_S, ROLLING, admin, away, client, condition, evict, failed,
                       metric, router, status, wait_until_serves)

NEXT_IMAGE = "sightline:next"
# Enough requests to measure a share to 10 percentage points, at four standard deviations.
ASKED, DEVIATIONS = 400, 4
FRONTENDS = 4


def has_come_to_rest(home, workers):
    return status(home).get("workers") == workers and condition(home, "Ready") == "True AsWanted"


def sized(replicas):
    spec = router(ROLLING)
    spec["spec"]["pools"][0]["replicas"] = replicas
    return spec


def pods(home, component):
    return home.get("pods", "-l", f"app.kubernetes.io/component={component}")["items"]


def test_scaling_of_workers_fails_no_request(demo):
    with client(demo) as answers:
        for replicas in (3, 1, 2):
            demo.apply(sized(replicas))
            demo.until(lambda: has_come_to_rest(demo, f"{replicas}/{replicas}"),  # noqa: B023
                       f"{replicas} workers serve", READY_S)
    assert not failed(answers)
    assert len({answer.worker for answer in answers}) >= 3, "all workers were asked"


@pytest.fixture
def next_image(pods_bed):
    """The same program under another name, like a release."""
    pods_bed.must("image", NEXT_IMAGE, BUILD / "bin/sightline")
    return NEXT_IMAGE


def test_a_new_image_replaces_every_pod_and_fails_no_request(demo, next_image):
    def old():
        return [pod["metadata"]["name"] for component in ("frontend", "router", "worker")
                for pod in pods(demo, component)
                if any(container["image"] != next_image
                       for container in pod["spec"]["containers"])]

    before = status(demo)["currentRevision"]
    with client(demo) as answers:
        demo.apply(router(ROLLING | {"image": next_image}))
        demo.until(lambda: not old() and has_come_to_rest(demo, "2/2"),
                   "all pods have the new image", READY_S)
    assert not failed(answers)
    assert status(demo)["currentRevision"] == before, "blocks of both are the same"


@pytest.mark.alone
def test_no_request_fails_while_the_operator_is_away(demo, operator):
    engine = pods(demo, "worker")[0]["metadata"]["name"]
    old_router = pods(demo, "router")[0]["metadata"]["name"]
    with client(demo) as answers:
        with away(operator):
            evict(demo, engine)
            demo.kubectl("delete", "pod", old_router, "--wait=false")
            demo.wait([f"pod/{engine}", f"pod/{old_router}"], "delete", READY_S)
            routers = "deployment", "-l", "app.kubernetes.io/component=router"
            demo.until(lambda: all(one["status"].get("readyReplicas") == 2
                                   for one in demo.get(*routers)["items"]),
                       "a router that has asked the others is ready", READY_S)
            begun = len(answers)
            demo.until(lambda: len(answers) > begun + 20, "what is left answers")
        demo.until(lambda: has_come_to_rest(demo, "2/2"), "two workers again", READY_S)
    assert not failed(answers)


def block_sizes(home):
    """Returns {router: its workers' block sizes}. Fails if a router met two sizes of a worker."""
    sizes = {}
    for name, read in admin(home, "router").items():
        with contextlib.suppress(OSError, ValueError):
            sizes[name] = {worker["block_size"] for worker in json.loads(read("/v1/workers"))
                           if worker["block_size"]}
            mismatches = metric(read("/metrics"), "sightline_block_size_mismatch_total")
            assert not mismatches, f"{name} met {mismatches} announcements of another size"
    return sizes


def test_two_revisions_share_requests_by_workers_but_no_index(home):
    wide = {"frontend": {"replicas": FRONTENDS}}
    home.apply(router(ROLLING | wide))
    wait_until_serves(home)
    old = status(home)["currentRevision"]
    paused = {"rollout": ROLLING["rollout"] | {"paused": True}}
    larger = {"kv": {"blockSize": 32}}

    def both_serve():
        revisions = {one["name"]: one for one in status(home)["revisions"]}
        assert all(len(sizes) <= 1 for sizes in block_sizes(home).values())
        return (len(revisions) == 2 and all(one["routable"] for one in revisions.values())
                and revisions)

    def frontends_follow():
        """True when nothing changes and all endpoints are ready."""
        wanted = sum(one["spec"]["replicas"] for one in
                     home.get("deployment", "-l",
                              "app.kubernetes.io/component=frontend")["items"])
        ready = status(home)["frontend"]
        return (condition(home, "Progressing") == "False Paused"
                and ready == {"desired": wanted, "ready": wanted} and len(pods(home, "frontend"))
                == wanted and both_serve())

    with client(home) as answers:
        home.apply(router(ROLLING | wide | larger))
        home.until(both_serve, "workers of both revisions are routable", READY_S)
        home.apply(router(ROLLING | wide | larger | paused))
        revisions = home.until(frontends_follow, "the rollout is paused", READY_S)
        begun = len(answers)
        home.until(lambda: len(answers) >= begun + ASKED, f"{ASKED} questions are answered",
                   READY_S)
        measured = answers[begun:begun + ASKED]
        routers = block_sizes(home)
        home.apply(router(ROLLING | wide | larger))
        home.until(lambda: has_come_to_rest(home, "2/2") and len(status(home)["revisions"]) == 1
                   and set(map(tuple, block_sizes(home).values())) == {(32,)},
                   "the old revision is gone", READY_S)
    assert not failed(answers)
    assert sorted(map(tuple, routers.values())) == [(16,), (16,), (32,), (32,)]
    workers = revisions[old]["routable"] / sum(one["routable"] for one in revisions.values())
    asked = sum(old in answer.worker for answer in measured) / ASKED
    one_pod = 1 / FRONTENDS
    chance = DEVIATIONS * math.sqrt(workers * (1 - workers) / ASKED)
    assert abs(asked - workers) <= one_pod + chance, (
        f"{asked:.2f} of the requests, {workers:.2f} of the workers")
    assert status(home)["currentRevision"] != old
