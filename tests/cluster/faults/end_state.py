# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""All objects of a namespace with one MultimodalRouter "demo", as text that two equal runs have in
common. The text leaves out only what differs in every run: names of pods and revisions, addresses,
times and keys."""

import collections
import json
import re

from testbed.api import LastingApi

KINDS = {
    "api/v1": ("configmaps", "secrets", "services", "serviceaccounts"),
    "apis/apps/v1": ("deployments", "statefulsets"),
    "apis/autoscaling/v2": ("horizontalpodautoscalers",),
    "apis/networking.k8s.io/v1": ("networkpolicies",),
    "apis/policy/v1": ("poddisruptionbudgets",),
    "apis/sightline.dev/v1alpha1": ("multimodalrouterpools", "multimodalrouters")}
OF_A_RUN = ("uid", "resourceVersion", "creationTimestamp", "managedFields", "generation",
            "generateName")
OF_A_SERVICE = ("clusterIP", "clusterIPs", "nodePort", "healthCheckNodePort")
# Annotations by the controllers of Kubernetes.
THEIRS = ("deployment.kubernetes.io/revision", "pv.kubernetes.io/bind-completed")
COUNTS = ("replicas", "readyReplicas", "updatedReplicas")
LATER = [
    (re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z"), "TIME"),
    (re.compile(r"\b127\.\d+\.\d+\.\d+\b"), "ADDRESS"),
    (re.compile(r"\bU[A-Z2-7]{55}\b"), "NKEY"),
    (re.compile(r"\b(?:[0-9a-f]{32}){1,2}\b"), "DIGEST"),
    # Hashes of pod templates and names of pods.
    (re.compile(r"-[0-9a-f]{6,10}-[a-z0-9]{5}\b"), "-POD"),
]


def _without(value):
    if isinstance(value, list):
        return [_without(one) for one in value]
    if not isinstance(value, dict):
        return value
    return {name: _without(one) for name, one in value.items()
            if name not in OF_A_RUN and name not in OF_A_SERVICE and name not in THEIRS}


def _with_current(value, generation):
    """Marks a current observedGeneration. Runs differ in the number of changes, but not in this."""
    if isinstance(value, list):
        return [_with_current(one, generation) for one in value]
    if not isinstance(value, dict):
        return value
    return {name: "CURRENT" if name == "observedGeneration" and one == generation
            else _with_current(one, generation) for name, one in value.items()}


def _content(thing):
    kept = _with_current(_without(thing), thing["metadata"].get("generation"))
    if "data" in kept and thing.get("type") == "Opaque":
        kept["data"] = sorted(kept["data"])
    if thing.get("kind") != "MultimodalRouter" and "status" in kept:
        kept["status"] = {name: kept["status"].get(name, 0) for name in COUNTS}
    return kept


class Reader:
    def __init__(self, home):
        self._home = home
        self._api = LastingApi(home.bed)

    def read(self):
        """Returns {kind/name: text}, or None while a list cannot be read."""
        things = {}
        for group, kinds in KINDS.items():
            for plural in kinds:
                listed = self._api.get(f"/{group}/namespaces/{self._home.name}/{plural}")
                if listed is None:
                    return None
                for one in listed["items"]:
                    if "kube-root-ca.crt" != one["metadata"]["name"] != "default":
                        things[f"{plural}/{one['metadata']['name']}"] = _content(
                            one | {"kind": listed["kind"].removesuffix("List")})
        pods = self._api.get(f"/api/v1/namespaces/{self._home.name}/pods")
        if pods is None:
            return None
        counts = collections.Counter(
            pod["metadata"]["labels"].get("app.kubernetes.io/component") for pod in pods["items"])
        return self._normal(things, {"pods": dict(sorted(counts.items()))})

    def _normal(self, things, more):
        status = things.get("multimodalrouters/demo", {}).get("status", {})
        names = [one["name"] for one in status.get("revisions", [])]
        names += [status[name] for name in ("targetRevision", "currentRevision") if name in status]
        found = {}
        for name, thing in (things | more).items():
            text = json.dumps(thing, sort_keys=True, indent=1)
            for i, revision in enumerate(dict.fromkeys(names)):
                text = text.replace(revision, f"REVISION{i}")
                name = name.replace(revision, f"REVISION{i}")
            text = text.replace(self._home.name, "HOME")
            for pattern, word in LATER:
                text = pattern.sub(word, text)
            found[name] = text
        return found


def is_at_rest(state):
    """Returns whether the object reports that all is as wanted, for its current spec."""
    if not state or "multimodalrouters/demo" not in state:
        return False
    status = json.loads(state["multimodalrouters/demo"]).get("status", {})
    told = {one["type"]: one["reason"] for one in status.get("conditions", [])}
    return told.get("Ready") in ("AsWanted", "Suspended") and told.get("Progressing") in (
        "Completed", "Suspended")


def differences(state, wanted):
    """Returns the differences as text, for a comparison that fails."""
    lines = []
    for name in sorted(set(state or {}) | set(wanted)):
        left, right = (state or {}).get(name), wanted.get(name)
        if left == right:
            continue
        if left is None or right is None:
            lines.append(f"{name} is {'missing' if left is None else 'too much'}")
            continue
        pairs = zip(left.splitlines(), right.splitlines())
        lines += [f"{name}: {one.strip()} in place of {other.strip()}"
                  for one, other in pairs if one != other][:3]
    return "\n".join(lines)
