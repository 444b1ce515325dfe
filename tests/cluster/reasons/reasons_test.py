# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""What keeps the operator from its work is the reason of Ready and an event of the object. It comes
before its consequences. After a repair the object goes on."""

import datetime
import json

import objects
import pytest
from objects import READY_S, condition, owned, router, says, until_said, until_written
from testbed.namespace import Namespace

KIND = "customresourcedefinition/multimodalrouters.sightline.dev"
LOG_LEVEL = ("/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/logLevel/enum/-")


# Until the waits between attempts have their maximum, 30 s. And a time well within one wait.
FAILS_S, WITHIN_A_WAIT_S = 45, 20
TYPO = {"replicas": 1, "podTemplate": {
    "spec": {"tolerations": [{"key": "dedicated", "operator": "Exist"}]}}}


@pytest.fixture(scope="module")
def failing(operator, bed):
    """The namespace of an object that fails while the other tests run."""
    with Namespace(bed.bed, "failing") as made:
        made.apply(router(frontend=TYPO))
        yield made


def test_object_reports_a_typo_in_a_pod_template(failing):
    until_said(failing, "Ready", "WriteFailed", "tolerations[0].operator", "Exist")
    assert condition(failing, "Ready")["status"] == "False"


def test_object_reports_a_foreign_service_and_keeps_it(home):
    theirs = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "demo"},
              "spec": {"ports": [{"port": 80}], "selector": {"app": "theirs"}}}
    home.apply(theirs)
    before = home.get("service", "demo")
    home.apply(router())
    until_said(home, "Ready", "NameTaken", "Service/demo", "another owner")
    assert home.get("service", "demo") == before
    home.kubectl("delete", "service", "demo")
    home.until(lambda: "demo" in owned(home, "service"), "it has a Service of its own", READY_S)
    until_written(home)


def test_object_reports_an_exceeded_quota(home):
    home.apply({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "small"},
                "spec": {"hard": {"count/deployments.apps": "0"}}})
    home.until(lambda: home.get("quota", "small").get("status"), "the quota counts")
    home.apply(router())
    until_said(home, "Ready", "QuotaExceeded", "small", "deployments.apps")
    home.kubectl("delete", "quota", "small")
    home.until(lambda: owned(home, "deployment"), "its Deployments are there", READY_S)
    until_written(home)


def test_object_reports_a_quota_that_blocks_pods(home):
    home.apply({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "small"},
                "spec": {"hard": {"pods": "0"}}})
    home.until(lambda: home.get("quota", "small").get("status"), "the quota counts")
    home.apply(router())
    home.until(lambda: says(home, "RouterReady", "PodsNotReady", "exceeded quota: small"),
               "it says why there are no pods", READY_S)


@pytest.fixture
def newer_kind(bed):
    """The kind permits a word that the operator does not know."""
    bed.kubectl("patch", KIND, "--type=json", "-p", json.dumps(
        [{"op": "add", "path": LOG_LEVEL, "value": "verbose"}]))
    yield
    words = json.loads(bed.kubectl("get", KIND, "-o", "json"))
    for part in LOG_LEVEL.strip("/").split("/")[:-1]:
        words = words[int(part) if part.isdigit() else part]
    bed.kubectl("patch", KIND, "--type=json", "-p", json.dumps(
        [{"op": "remove", "path": f"{LOG_LEVEL[:-1]}{words.index('verbose')}"}]))


def test_an_unknown_word_is_reported_and_the_old_spec_stays(home, newer_kind):
    home.apply(router())
    until_written(home)
    before = sorted(owned(home, "deployment"))

    def is_taken():
        return home.try_kubectl("apply", "--server-side", "-f", "-",
                                given=router(logLevel="verbose"))[0] == 0

    home.until(is_taken, "the API server takes the word")
    until_said(home, "Accepted", "SpecNotUnderstood", "spec.logLevel", "newer than this operator")
    assert condition(home, "Ready")["reason"] == "SpecNotUnderstood"
    assert sorted(owned(home, "deployment")) == before
    home.apply(router())
    until_written(home)


def test_operator_adopts_orphaned_children(home):
    home.apply(router())
    until_written(home)
    children = {kind: sorted(owned(home, kind)) for kind in ("deployment", "service", "configmap")}
    uids = {one["metadata"]["uid"] for one in owned(home, "service").values()}
    home.kubectl("delete", "mmr", "demo", "--cascade=orphan")
    assert not owned(home, "service")
    home.apply(router())
    mine = home.get("mmr", "demo")["metadata"]["uid"]

    def are_taken_back():
        taken = owned(home, "service")
        owners = {owner["uid"] for service in taken.values()
                  for owner in service["metadata"]["ownerReferences"]}
        return set(children["service"]) <= set(taken) and owners == {mine}

    home.until(are_taken_back, "it owns its Services", READY_S)
    until_written(home)
    assert {one["metadata"]["uid"] for one in owned(home, "service").values()} >= uids


def test_object_reports_a_child_with_another_owner(home):
    home.apply(router())
    until_written(home)
    name = next(name for name in owned(home, "deployment") if name.endswith("-router"))
    other = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "other"}}
    home.apply(other)
    uid = home.get("configmap", "other")["metadata"]["uid"]
    home.kubectl("patch", "deployment", name, "--type=merge", "-p", json.dumps(
        {"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "other",
                                           "uid": uid, "controller": True}]}}))
    until_said(home, "Ready", "NameTaken", f"Deployment/{name}", "ConfigMap other")
    home.kubectl("patch", "deployment", name, "--type=merge", "-p",
                 '{"metadata": {"ownerReferences": null}}')
    home.until(lambda: name in owned(home, "deployment"), "it is taken back", READY_S)
    until_written(home)


def test_a_disputed_scale_object_stays_with_its_owner(home):
    def scaled(name, pool):
        made = router(name)
        made["spec"]["pools"][0] |= {"name": pool, "autoscaling": {
            "minReplicas": 1, "maxReplicas": 3}}
        del made["spec"]["pools"][0]["replicas"]
        return made

    home.apply(scaled("demo", "x-gpu"))
    home.until(lambda: owned(home, "mmrp"), "the first has it", READY_S)
    home.apply(scaled("demo-x", "gpu"))
    until_said(home, "Ready", "NameTaken", "MultimodalRouterPool", "demo-x-gpu", name="demo-x")
    scale = home.get("mmrp", "demo-x-gpu")
    assert scale["spec"]["router"] == "demo" and scale["spec"]["pool"] == "x-gpu"
    until_written(home)
    assert home.get("mmrp", "demo-x-gpu")["spec"] == scale["spec"]


def test_object_is_accepted_once_its_claim_exists(home):
    source = {"name": "demo", "source": {"pvc": {"claimName": "models"}}}
    home.apply(router(model=source))
    until_said(home, "Accepted", "ClaimMissing", "PersistentVolumeClaim models")
    assert not owned(home, "deployment")
    home.apply({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "models"},
                "spec": {"accessModes": ["ReadWriteMany"], "storageClassName": "",
                         "resources": {"requests": {"storage": "1Gi"}}}})
    home.until(lambda: condition(home, "Accepted")["status"] == "True", "it is accepted", READY_S)


def test_kv_transfer_arguments_are_refused_with_the_reason(home):
    pool = {"name": "engines", "replicas": 1, "template": {
        "image": "vllm:1", "args": ["--kv-transfer-config", "{}"]}}
    home.apply(router(pools=[pool]))
    until_said(home, "Accepted", "ArgumentsRefused", "--kv-transfer-config",
               "spec.pools[0].template.args")


def test_a_label_that_repeats_an_operator_label_is_refused(home):
    home.apply(router(frontend={"replicas": 1, "podTemplate": {
        "metadata": {"labels": {"app.kubernetes.io/component": "mine"}}}}))
    until_said(home, "Accepted", "PodTemplateRefused", "spec.frontend.podTemplate",
               "app.kubernetes.io/component")


def test_operator_removes_status_entries_of_others(home):
    home.apply(router())
    until_written(home)
    when = "2026-01-01T00:00:00Z"
    home.kubectl("apply", "--server-side", "--subresource=status", "--field-manager=stranger",
                 "-f", "-", given=router() | {"status": {
                     "conditions": [{"type": "Blessed", "status": "True", "reason": "Stranger",
                                     "message": "not ours", "lastTransitionTime": when}],
                     "revisions": [{"name": "stranger", "blockSize": 7}]}})

    def is_ours_alone():
        now = objects.status(home)
        return ("Blessed" not in [one["type"] for one in now["conditions"]]
                and "stranger" not in [one["name"] for one in now.get("revisions", [])])

    home.until(is_ours_alone, "only what the operator wrote is there", READY_S)


def test_pod_templates_of_nats_and_agents_reach_their_pods(home):
    template = {"spec": {"tolerations": [{"key": "dedicated", "operator": "Exists"}],
                         "priorityClassName": "system-cluster-critical"}}
    theirs = {"name": "theirs", "selector": {"matchLabels": {"serves": "demo"}}}
    home.apply(router(pools=[theirs], agents={"podTemplate": template},
                      nats={"managed": {"podTemplate": template}}))
    until_written(home)
    found = objects.templates(home)
    for name in ("statefulset/demo-nats",
                 next(name for name in found if name.endswith("-agents"))):
        spec = found[name]["spec"]
        assert spec["priorityClassName"] == "system-cluster-critical", name
        assert {"key": "dedicated", "operator": "Exists"} in spec["tolerations"], name
    untouched = next(name for name in found if name.endswith("-router"))
    assert "priorityClassName" not in found[untouched]["spec"]


def users_in(value):
    """Returns every user and group in a template, at any depth."""
    if isinstance(value, dict):
        own = [(name, one) for name, one in value.items()
               if name in ("runAsUser", "runAsGroup", "fsGroup")]
        return own + [found for one in value.values() for found in users_in(one)]
    return [found for one in value for found in users_in(one)] if isinstance(value, list) else []


def test_pod_user_platform_sets_no_user_anywhere(home):
    theirs = {"name": "theirs", "selector": {"matchLabels": {"serves": "demo"}}}
    both = [router()["spec"]["pools"][0], theirs]
    home.apply(router(pools=both))
    until_written(home)
    assert len(objects.templates(home)) == 5
    assert any(map(users_in, objects.templates(home).values()))
    home.apply(router(pools=both, podUser="Platform"))
    home.until(lambda: not any(map(users_in, objects.templates(home).values())),
               "no user is chosen", READY_S)


def failures(operator, home):
    """Returns how often the operator failed to reconcile an object there."""
    return sum("reconciliation failed" in line and home.name in line
               for line in operator.log.read_text().splitlines())


def test_a_change_ends_the_back_off_of_a_failing_object(failing, operator):
    until_said(failing, "Ready", "WriteFailed")
    since = datetime.datetime.fromisoformat(condition(failing, "Ready")["lastTransitionTime"])
    long = datetime.timedelta(seconds=FAILS_S)
    failing.until(lambda: datetime.datetime.now(datetime.UTC) - since > long, "it fails for long")
    begun = failures(operator, failing)
    failing.until(lambda: failures(operator, failing) > begun, "its longest wait begins")
    failing.apply(router())
    failing.until(lambda: objects.is_written(failing), "it is written", WITHIN_A_WAIT_S)
