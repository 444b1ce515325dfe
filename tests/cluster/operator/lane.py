# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""One router that is changed and changed back, and all objects that belong to it."""

import contextlib
import hashlib
import json

from installed import READY_S, router
from spec_changes import BASE, merged
from testbed import network
from testbed.api import LastingApi

KINDS = {
    "api/v1": {"configmaps": "configmap", "secrets": "secret", "services": "service",
               "serviceaccounts": "serviceaccount"},
    "apis/apps/v1": {"deployments": "deployment", "statefulsets": "statefulset"},
    "apis/autoscaling/v2": {"horizontalpodautoscalers": "horizontalpodautoscaler"},
    "apis/networking.k8s.io/v1": {"networkpolicies": "networkpolicy"},
    "apis/policy/v1": {"poddisruptionbudgets": "poddisruptionbudget"},
    "apis/sightline.dev/v1alpha1": {"multimodalrouterpools": "multimodalrouterpool"}}
TITLE = ("labels", "annotations", "ownerReferences")
# Kubernetes itself writes these.
NOTED = ("metadata", "status", "kind", "apiVersion")
NOTED_ANNOTATION = "deployment.kubernetes.io/revision"


def compact(value):
    """Returns the value as JSON, in the operator's form."""
    return json.dumps(value, separators=(",", ":"))


def content_of(thing):
    """Leaves out what changes on its own: names and places of pods in the routers' files."""
    title = {name: thing["metadata"][name] for name in TITLE if name in thing["metadata"]}
    if "annotations" in title:
        title["annotations"] = {name: value for name, value in title["annotations"].items()
                                if name != NOTED_ANNOTATION}
    content = {name: value for name, value in thing.items() if name not in NOTED}
    if thing.get("type") == "Opaque":
        content["data"] = hashlib.sha256(json.dumps(content["data"]).encode()).hexdigest()
    if "router.yaml" in content.get("data", {}):
        file = json.loads(content["data"]["router.yaml"])
        file["workers"] = len(file.get("workers", []))
        content["data"] = content["data"] | {"router.yaml": compact(file)}
    return {"metadata": title} | content


def is_owned(thing):
    return any(owner["kind"] == "MultimodalRouter"
               for owner in thing["metadata"].get("ownerReferences", []))


def has_rolled(workload):
    """All of its pods exist and are of the newest template. This does not check readiness, which is
    counted here later than it is visible elsewhere."""
    wanted, status = workload["spec"]["replicas"], workload["status"]
    return (status.get("observedGeneration") == workload["metadata"]["generation"]
            and status.get("replicas", 0) == status.get("updatedReplicas", 0) == wanted)


def part_of(thing, place):
    """Returns the part at a JSON pointer, or None if it is missing."""
    for part in filter(None, place.split("/")):
        if thing is None:
            return None
        thing = thing[int(part)] if part.isdigit() else thing.get(part.replace("~1", "/"))
    return thing


class Lane:
    def __init__(self, home, is_over):
        self.home = home
        self._is_over = is_over
        self._api = LastingApi(home.bed)
        self._become({}, {})
        self._base = self.objects()

    def go_and_return(self, change):
        pods = self._pods()
        self._become(change.spec, {"Ready": change.ready} | change.conditions, change.shows)
        if change.keeps_pods:
            assert pods <= self._pods()
        self._become({}, {})
        if change.keeps_pods:
            assert pods <= self._pods()
        # The old revisions go last.
        with contextlib.suppress(AssertionError):
            self.home.until(lambda: self.objects() == self._base, "the old objects are back")
        assert self.objects() == self._base

    def objects(self):
        """Returns all objects that belong to the router, by kind and name."""
        return {f"{kind}/{thing['metadata']['name']}": content_of(thing)
                for group, kinds in KINDS.items() for plural, kind in kinds.items()
                for thing in self._list(group, plural) if is_owned(thing)}

    def _become(self, change, conditions, shows=()):
        """Applies the change and waits until its conditions hold and nothing changes any more."""
        wanted = {"Ready": "True AsWanted", "Progressing": "False Completed"} | conditions
        self.home.apply(router(merged(BASE, change)))
        self.home.until(
            lambda: self._is_at_rest(wanted) and all(self._shows(*one) for one in shows),
            f"it has become {change or 'the smallest again'}", READY_S)

    def _get(self, path):
        assert not self._is_over.is_set(), "the tests are over"
        with network.inside(self.home.bed):
            return self.home.until(lambda: self._api.get(path), f"there is {path}")

    def _list(self, group, plural):
        return self._get(f"/{group}/namespaces/{self.home.name}/{plural}")["items"]

    def _router(self):
        return self._get(f"/apis/sightline.dev/v1alpha1/namespaces/{self.home.name}"
                         "/multimodalrouters/demo")

    def _pods(self):
        """Returns the names of the pods that do not end."""
        return {pod["metadata"]["name"] for pod in self._list("api/v1", "pods")
                if "deletionTimestamp" not in pod["metadata"]}

    def _is_at_rest(self, conditions):
        """Reads the status, which may report that all is as wanted only when it is."""
        now = self._router()
        status = now.get("status", {})
        if status.get("observedGeneration") != now["metadata"]["generation"]:
            return False
        told = {one["type"]: f"{one['status']} {one['reason']}" for one in status["conditions"]}
        if not conditions.items() <= told.items():
            return False
        rolling = [workload["metadata"]["name"]
                   for workload in self._list("apis/apps/v1", "deployments")
                   if not has_rolled(workload)]
        if told["Ready"] == "True AsWanted":
            assert [one["name"] for one in status["revisions"]] == [status["targetRevision"]]
            assert not rolling
        return not rolling and all(map(has_rolled, self._list("apis/apps/v1", "statefulsets")))

    def _shows(self, name, place, value):
        revision = self._router()["status"]["targetRevision"]
        found = part_of(self.objects().get(name.format(revision=revision)), place)
        if found == value:
            return True
        text = found if isinstance(found, str) else compact(found)
        return isinstance(value, str) and found is not None and value in text
