# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Makes an object while requests of one kind fail in one way. Its whole final state must equal the
final state without faults."""

import random

import pytest
from steps import SMALLEST, Life
from testbed.fault_proxy import ALL, Rule
from testbed.namespace import Namespace

FAULTS = 10
TIMES = 3
# Method and pattern. HOME is the namespace.
REQUESTS = {
    "writes of Deployments": ("PATCH", r"/HOME/deployments/"),
    "writes of ConfigMaps": ("PATCH", r"/HOME/configmaps/"),
    "writes of Services": ("PATCH", r"/HOME/services/"),
    "writes of StatefulSets": ("PATCH", r"/HOME/statefulsets/"),
    "writes of its status": ("PATCH", r"/HOME/multimodalrouters/demo/status"),
    "writes of pods' gates": ("PATCH", r"/HOME/pods/[^/]+/status"),
    "new Secrets": ("POST", r"/HOME/secrets"),
    "reads of Secrets": ("GET", r"/HOME/secrets/"),
    "looks before writes": ("GET", r"/HOME/(deployments|services)/"),
    "its events": ("POST", r"/HOME/events"),
}
WATCHES = {f"watches of {kind}": ("GET", rf"/{kind}\?.*watch=")
           for kind in ("multimodalrouters", "pods", "deployments", "configmaps", "secrets")}
LISTS = {f"lists of {kind}": ("GET", rf"/{kind}\?(?!.*watch=)")
         for kind in ("multimodalrouters", "pods", "deployments", "podmonitors")}


def table():
    """Returns all pairs (fault, requests that it hits)."""
    once = [(fault, what) for fault in ALL if fault != "cut" for what in {**REQUESTS, **LISTS}]
    return once + [(fault, what) for fault in ("cut", "drop", "500") for what in WATCHES]


def plan_of(seed, count):
    """Returns one fault of every kind, and others until there are `count`."""
    dice = random.Random(f"faults {seed}")
    every = table()
    dice.shuffle(every)
    first = {fault: (fault, what) for fault, what in every}
    rest = [one for one in every if one not in first.values()]
    return [*first.values(), *rest][:count]


def rule_of(fault, what, home):
    method, path = {**REQUESTS, **LISTS, **WATCHES}[what]
    return Rule(fault, method, path.replace("HOME", home.name), TIMES)


@pytest.fixture(scope="module")
def wanted(bed, operator):
    """The final state while nothing fails."""
    with Namespace(bed.bed, "undisturbed") as home:
        life = Life(home)
        life.apply(SMALLEST)
        yield life.await_rest(SMALLEST)


def strike(home, proxy, operator, fault, what):
    rule = proxy.add(rule_of(fault, what, home))
    if what in WATCHES:
        proxy.cut_all()
    if what in LISTS:
        operator.kill()
        operator.wait()
        operator.start()
    home.apply(SMALLEST)
    return rule


def test_the_same_seed_gives_the_same_faults():
    assert plan_of("7", FAULTS) == plan_of("7", FAULTS) != plan_of("8", FAULTS)
    assert {fault for fault, _ in plan_of("7", FAULTS)} == set(ALL)


def test_no_fault_changes_the_final_state(make_home, proxy, operator, wanted, seed, is_full):
    plan = plan_of(seed, len(table()) if is_full else FAULTS)
    for fault, what in plan:
        home = make_home(f"{fault} {what}")
        rule = strike(home, proxy, operator, fault, what)
        Life(home).await_state(wanted, f"it is as without {fault} of {what}")
        assert rule.hits, f"{fault} of {what} struck nothing"
        proxy.clear()
        home.kubectl("delete", "mmr", "demo", "--wait=false")
        print(f"{fault} of {what}: {rule.hits} struck, the end is the same")
