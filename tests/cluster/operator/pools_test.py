# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Engines that the operator does not run. However the operator finds them, routers use what they
hold, and Sightline never writes to them."""

import itertools
import json

import engines
from installed import (READY_S, ROLLING, address_of, admin, ask, condition, metric, names, picture,
                       router, send, spread_pictures, status, wait_until_serves)

# From the first block of another size to the report: one poll of the operator, and a margin.
TOLD_S = 15
# From a new pod until it is routable: a poll of the operator, one of the agent, and requests to the
# pod. The agent's kubelet alone would take up to 90 s.
MENDED_S = 40
KINDS, LABEL = "deployments,replicasets,pods", "serves=demo"


def with_pool(pool):
    return router(ROLLING | {"pools": [pool]})


def as_they_are(home):
    """Returns all that others could have written, and the names of all writers."""
    listed = home.get(KINDS, "-l", LABEL, "--show-managed-fields")["items"]
    found = {f"{one['kind']}/{one['metadata']['name']}": one for one in listed}
    written = {name: [one["spec"]] + [one["metadata"].get(part) for part in (
        "uid", "labels", "annotations", "ownerReferences", "finalizers")]
        for name, one in found.items()}
    writers = {field["manager"] for one in listed for field in one["metadata"]["managedFields"]}
    return written, writers


def restarts(home):
    return [container["restartCount"] for pod in home.get("pods", "-l", LABEL)["items"]
            for container in pod["status"]["containerStatuses"]]


def comes_home(home, seed, asked):
    """Returns whether the cache holds the image, on a worker that was asked about it before."""
    answer = send(home, address_of(home), picture(seed))
    assert answer.code == 200
    known, _, whole = answer.overlap.partition("/")
    is_known = int(known) > 0.8 * int(whole)
    assert not is_known or answer.worker in asked
    asked.add(answer.worker)
    return is_known


def check_routing(home, workers, first=0):
    for seed, asked in spread_pictures(home, workers, first).items():
        home.until(lambda: comes_home(home, seed, asked),  # noqa: B023
                   f"picture {seed} is known where it was seen")


def test_engines_found_by_label_are_routed_to_but_never_changed(home):
    home.apply(engines.deployment("engine", 2))
    home.wait("deployment/engine", "Available", READY_S)
    before, _ = as_they_are(home)
    home.apply(with_pool(engines.by_label()))
    wait_until_serves(home)
    assert status(home)["workers"] == "2/2"
    check_routing(home, {name.partition("/")[2] for name in before if name.startswith("Pod/")})
    home.kubectl("delete", "mmr", "demo")
    home.until(lambda: not [name for name in names(home) if "/demo" in name], "the router is gone",
               READY_S)
    home.wait("deployment/engine", "Available")
    after, writers = as_they_are(home)
    assert after == before
    assert not [writer for writer in writers if "sightline" in writer]
    assert restarts(home) == [0, 0]


def message(home, kind):
    return next(one["message"] for one in status(home)["conditions"] if one["type"] == kind)


def notes(home, reason):
    """Returns the messages of its events with this reason."""
    return [one["message"] for one in home.get("events")["items"]
            if one["reason"] == reason and one["involvedObject"]["name"] == "demo"]


def known_of(home, worker):
    """Returns what each router knows of the worker."""
    return [one for read in admin(home, "router").values()
            for one in json.loads(read("/v1/workers")) if one["name"] == worker]


def mismatches(read, worker):
    return metric(read("/metrics"), f'sightline_block_size_mismatch_total{{worker="{worker}"}}')


def test_an_engine_with_another_block_size_is_excluded_until_replaced(home):
    home.apply(engines.pod("even"), engines.pod("odd", block_size=32))
    home.wait(["pod/even", "pod/odd"], "Ready", READY_S)
    home.apply(with_pool(engines.by_label()))
    wait_until_serves(home)
    spread_pictures(home, {"even", "odd"})
    home.until(lambda: condition(home, "IndexConsistent") == "False BlockSizeMismatch",
               "the condition reports it", TOLD_S)
    assert "odd (32 tokens" in message(home, "IndexConsistent")
    assert "even" not in message(home, "IndexConsistent")
    home.until(lambda: any("odd (32 tokens" in note for note in notes(home, "BlockSizeMismatch")),
               "an event names it", TOLD_S)
    # One router is enough for the status. Each router receives the events on its own.
    home.until(lambda: all(mismatches(read, "odd") for read in admin(home, "router").values()),
               "every router has met it", TOLD_S)
    for read in admin(home, "router").values():
        assert not mismatches(read, "even")
        assert not json.loads(read("/v1/index?worker=odd"))["counts"]
    assert {one["state"] for one in known_of(home, "odd")} == {"excluded"}
    home.kubectl("delete", "pod", "odd")
    home.apply(engines.pod("odd"))
    home.wait("pod/odd", "Ready", READY_S)
    seeds = itertools.count(100)

    def is_mended():
        """Sends a request, because the engine's new events need one."""
        code, _ = ask(home, next(seeds))
        assert code == 200
        return condition(home, "Ready") == "True AsWanted"

    home.until(is_mended, "it is mended", MENDED_S)
    assert condition(home, "IndexConsistent") == "True OneBlockSize"
    check_routing(home, {"even", "odd"}, next(seeds))
    assert condition(home, "IndexConsistent") == "True OneBlockSize"


def test_engines_named_as_endpoints_reuse_blocks(home):
    home.apply(engines.pod("near"), engines.pod("far"), engines.service("near"))
    home.wait(["pod/near", "pod/far"], "Ready", READY_S)
    address = home.get("pod", "far")["status"]["podIP"]
    home.apply(with_pool(engines.by_place(service="near", address=address)))
    wait_until_serves(home)
    assert status(home)["workers"] == "2/2"
    check_routing(home, {"service", "address"})
