# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Objects that the operator does not find are not gone. While another user changes owners, labels
or kept specs, routers keep their workers. No request fails, and the object reports the reason."""

import contextlib
import json

import engines
import policy
import pytest
from installed import (BUILD, MODEL, READY_S, ROLLING, admin, away, client, condition, failed,
                       router, says, spread_pictures, status, wait_until_answered,
                       wait_until_serves)
from testbed.namespace import RESTRICTED, Namespace

ROUTER_LABEL, MANAGER_LABEL = "sightline.dev/router", "app.kubernetes.io/managed-by"
SPECS = "configmap/demo-specs"
ASKED = 10


@pytest.fixture(scope="module")
def shared(operator):
    with Namespace(operator.bed, "lists", RESTRICTED) as made:
        made.mount_directory("models", BUILD / "models" / MODEL)
        made.apply(router(ROLLING))
        yield made


@pytest.fixture
def serving(shared):
    """A router that is Ready. Each test leaves it Ready."""
    wait_until_serves(shared)
    return shared


def lists(home):
    """Returns {router: (generation of its list, names of its workers)}. Each new list has a later
    generation. The names are None while a router has only the list of its file."""
    return {name: (held["generation"], names_in(held["pushed"]))
            for name, read in admin(home, "router").items()
            if (held := json.loads(read("/v1/workers/list")))}


def names_in(pushed):
    return pushed and tuple(one["name"] for one in pushed["workers"])


def wait_for_more(home, answers):
    begun = len(answers)
    home.until(lambda: len(answers) > begun + ASKED, "requests are answered")


@contextlib.contextmanager
def answered(home):
    """Checks that no request fails, some of them at the end. Yields the list of answers."""
    with client(home) as answers:
        yield answers
        wait_for_more(home, answers)
    assert not failed(answers)


@contextlib.contextmanager
def undisturbed(home):
    """Checks also that every router has both workers in its list before and after, and no other
    list in between."""
    before = lists(home)
    assert [len(names) for _, names in before.values()] == [2, 2], before
    with answered(home) as answers:
        yield answers
    assert lists(home) == before


def workers_deployment(home):
    return f"demo-{status(home)['currentRevision']}-engines"


def owners(home, name):
    return [one["uid"] for one in home.get("deployment", name)["metadata"].get(
        "ownerReferences", [])]


def disown(home, name):
    """Removes the owners. Returns the owners before."""
    before = owners(home, name)
    home.kubectl("patch", "deployment", name, "--type=merge", "-p",
                 '{"metadata": {"ownerReferences": null}}')
    return before


def label_of(home, name):
    return home.get("deployment", name)["metadata"]["labels"].get(ROUTER_LABEL)


def is_well(home):
    return condition(home, "Ready") == "True AsWanted" and status(home)["workers"] == "2/2"


def wait_until_well(home):
    """Waits for the status. The operator restores objects before it reports them."""
    home.until(lambda: is_well(home), "all is well again", READY_S)


def test_operator_adopts_a_deployment_that_lost_its_owner(serving):
    name = workers_deployment(serving)
    with undisturbed(serving):
        before = disown(serving, name)
        assert before == [serving.get("mmr", "demo")["metadata"]["uid"]]
        serving.until(lambda: owners(serving, name) == before, "it has its owner again")
    wait_until_well(serving)


def test_workers_that_cannot_be_adopted_serve_with_a_reason(serving):
    name = workers_deployment(serving)
    with undisturbed(serving):
        frozen = policy.refuse(policy.OPERATOR, policy.DEPLOYMENTS)
        with policy.in_force(serving, frozen, lambda: policy.refuses(
                serving, policy.OPERATOR, f"deployment/{name}")):
            before = disown(serving, name)
            serving.until(lambda: says(serving, "Ready", "False WriteFailed",
                                       f"Deployment/{name}", policy.FROZEN), "it says why")
            assert condition(serving, "Degraded") == "False Serving"
            assert status(serving)["workers"] == "2/2"
            assert not owners(serving, name)
        serving.until(lambda: owners(serving, name) == before, "it has its owner again", READY_S)
        wait_until_well(serving)


@pytest.mark.parametrize("entry", ["revision-{}.json", "accepted.json"])
def test_operator_restores_an_entry_of_the_kept_specs(serving, entry):
    entry = entry.format(status(serving)["currentRevision"])
    before = serving.get(SPECS)["data"]
    assert entry in before
    with undisturbed(serving):
        serving.kubectl("patch", SPECS, "--type=merge", "-p", json.dumps({"data": {entry: None}}))
        serving.until(lambda: serving.get(SPECS)["data"] == before, "the entry is back")
    wait_until_well(serving)


@pytest.mark.alone
def test_a_revision_without_spec_serves_until_the_next_is_complete(serving, operator):
    old = status(serving)["currentRevision"]
    size = {"kv": {"blockSize": 32}}
    paused = {"rollout": ROLLING["rollout"] | {"paused": True}}

    def both_serve():
        now = status(serving)["revisions"]
        return len(now) == 2 and all(one["routable"] for one in now)

    def lists_of_old():
        return {name: held for name, held in lists(serving).items() if f"-{old}-" in name}

    with answered(serving) as answers:
        serving.apply(router(ROLLING | size))
        serving.until(both_serve, "workers of both revisions are routable", READY_S)
        serving.apply(router(ROLLING | size | paused))
        serving.until(lambda: condition(serving, "Progressing") == "False Paused", "it is paused")
        with away(operator):
            serving.kubectl("patch", SPECS, "--type=merge", "-p",
                            json.dumps({"data": {f"revision-{old}.json": None}}))
            before = lists_of_old()
        serving.until(lambda: says(serving, "Ready", "False RevisionUnknown", old, "demo-specs"),
                      "it says which revision", READY_S)
        wait_for_more(serving, answers)
        assert before and lists_of_old() == before
        serving.apply(router(ROLLING | size))
        serving.until(lambda: is_well(serving) and not lists_of_old(), "the old one is gone",
                      READY_S)


def test_a_policy_that_overwrites_the_manager_changes_nothing(serving):
    ours = "deployments,replicasets,pods", "-l", f"{ROUTER_LABEL}=demo"

    def are_changed():
        policy.touch(serving, *ours)
        return {one["metadata"]["labels"][MANAGER_LABEL]
                for one in serving.get(*ours)["items"]} == {"platform"}

    rules = policy.overwrite_label(MANAGER_LABEL, "platform", policy.WORKLOADS)
    with undisturbed(serving) as answers, policy.in_force(serving, rules, are_changed):
        wait_for_more(serving, answers)
        assert is_well(serving)
    assert is_well(serving)


@pytest.mark.parametrize("change", [f"{ROUTER_LABEL}=theirs", f"{ROUTER_LABEL}-"],
                         ids=["changed", "removed"])
def test_operator_restores_the_label_of_a_workers_deployment(serving, change):
    name = workers_deployment(serving)
    with undisturbed(serving):
        serving.kubectl("label", "--overwrite", "deployment", name, change)
        serving.until(lambda: label_of(serving, name) == "demo", "it has its label again", READY_S)
    wait_until_well(serving)


@pytest.mark.parametrize("rules, label", [
    (policy.overwrite_label(ROUTER_LABEL, "theirs"), "theirs"),
    (policy.remove_label(ROUTER_LABEL), None)], ids=["changes", "removes"])
def test_object_reports_a_policy_that_overwrites_its_label(serving, rules, label):
    name = workers_deployment(serving)

    def is_changed():
        policy.touch(serving, f"deployment/{name}")
        return label_of(serving, name) == label

    with undisturbed(serving):
        with policy.in_force(serving, rules, is_changed):
            serving.until(lambda: says(serving, "Ready", "False WriteFailed",
                                       f"Deployment/{name}", ROUTER_LABEL, "policy"), "it says why")
            assert condition(serving, "Degraded") == "False Serving"
        wait_until_well(serving)


def test_workers_of_an_unlabelled_replica_set_serve_with_a_reason(serving):
    name = workers_deployment(serving)
    ours = "replicasets", "-l", f"{ROUTER_LABEL}=demo,sightline.dev/pool=engines"
    of_workers = [f"replicaset/{one['metadata']['name']}" for one in serving.get(*ours)["items"]
                  if one["status"]["replicas"] > 0]
    with undisturbed(serving) as answers:
        # Otherwise its Deployment would make another one.
        frozen = policy.refuse(policy.CONTROLLER, policy.SETS)
        with policy.in_force(serving, frozen, lambda: policy.refuses(
                serving, policy.CONTROLLER, of_workers[0])):
            serving.kubectl("label", *of_workers, f"{ROUTER_LABEL}-")
            serving.until(lambda: says(serving, "Ready", "False WorkersNotFound", name,
                                       "has 2 pods, but the operator finds 0"), "it says so")
            assert condition(serving, "Degraded") == "False Serving"
            wait_for_more(serving, answers)
            serving.kubectl("label", *of_workers, f"{ROUTER_LABEL}=demo")
            serving.until(lambda: is_well(serving), "they are found again", READY_S)


def ready_routers(home):
    """Returns the names of ready routers that do not end."""
    return {pod["metadata"]["name"]
            for pod in home.get("pods", "-l", "app.kubernetes.io/component=router")["items"]
            if "deletionTimestamp" not in pod["metadata"]
            and all(one["ready"] for one in pod["status"].get("containerStatuses", [{"ready": 0}]))}


def restart(home, name):
    """Deletes one router, and waits until another one is ready in its place."""
    home.kubectl("delete", "pod", name, "--wait=false")
    home.until(lambda: len(ready_routers(home) - {name}) == 2, "another router is ready", READY_S)


def test_a_pod_in_two_pools_counts_once_and_serves(home):
    home.apply(engines.pod("left"), engines.pod("right"))
    home.wait(["pod/left", "pod/right"], "Ready", READY_S)
    also = {"name": "also", "selector": engines.by_label()["selector"] | {
        "matchLabels": {"app": "left"}}}
    home.apply(router(ROLLING | {"pools": [engines.by_label(), also]}))
    for kind in ("PoolsDistinct", "Ready"):
        home.until(lambda: says(home, kind, "False WorkerInTwoPools",  # noqa: B023
                                "left (theirs, also)"), f"{kind} names all three", READY_S)
    assert status(home)["workers"] == "2/2"
    counts = {pool["name"]: pool["routable"] for pool in status(home)["pools"]}
    assert counts == {"theirs": 2, "also": 0}
    home.until(lambda: len(ready_routers(home)) == 2, "both routers are ready", READY_S)
    wait_until_answered(home)
    with answered(home) as answers:
        for name in ready_routers(home):
            restart(home, name)

    def all_have_both():
        seen = {names for _, names in lists(home).values()}
        assert seen <= {None, ("left", "right")}
        return seen == {("left", "right")}

    home.until(all_have_both, "every router has both workers")
    assert {answer.worker for answer in answers} <= {"left", "right"}
    spread_pictures(home, {"left", "right"}, first=5)
    home.apply(router(ROLLING | {"pools": [engines.by_label()]}))
    home.until(lambda: condition(home, "PoolsDistinct") == "True EachInOnePool" and is_well(home),
               "each is in one pool", READY_S)


def small(args, env):
    """One pod of each kind. The worker has these arguments, the router these variables."""
    return router({
        "frontend": {"replicas": 1},
        "router": {"replicas": 1, "podTemplate": {"spec": {"containers": [
            {"name": "router", "env": env}]}}},
        "pools": [{"name": "engines", "backend": "simulator", "replicas": 1,
                   "template": {"args": args}}]})


def test_conditions_show_the_last_output_of_a_program(home):
    of_worker = "worker: ", "exit code 2", "simulate.blocks (flag --blocks): 'many' is not"
    of_router = "router: ", "exit code 2", "(env SIGHTLINE_DRAIN_TIMEOUT): 'soon' is not a time"
    home.apply(small(["--blocks=many"], [{"name": "SIGHTLINE_DRAIN_TIMEOUT", "value": "soon"}]))
    for kind, words in (("WorkersReady", of_worker), ("RouterReady", of_router),
                        ("Ready", of_router)):
        home.until(lambda: says(home, kind, "False PodsNotReady", *words),  # noqa: B023
                   f"{kind} says why a program ended", READY_S)
    home.apply(small(["--blocks=320"], []))
    home.until(lambda: condition(home, "Ready") == "True AsWanted", "both run", READY_S)
