# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Reads and writes objects of a bed's API server under the names that kubectl takes, but without
kubectl. Each run of kubectl takes 0.1 s of processor time, and tests mostly poll."""

import json
import threading
import urllib.parse

from . import network
from .api import APPLY, Api

# Aggregated discovery (Kubernetes 1.30) returns all groups and their resources in two answers.
DISCOVERY = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
ANSWER_S = 120  # kubectl has no limit
WRITER = "fieldManager=kubectl&fieldValidation=Strict"


class Resources:
    """The objects of one namespace. Threads may share it."""

    def __init__(self, bed, namespace):
        self._bed = bed
        self._namespace = namespace
        self._lock = threading.Lock()
        self._api = None
        self._by_name = {}

    def get(self, kind, name=None, labels=None):
        """Returns the result of `kubectl get -o json`."""
        root, found = self._find(kind)
        query = {} if labels is None else {"labelSelector": labels}
        thing = json.loads(self._must(self._place(root, found, name, query)))
        for item in thing.get("items", []):
            item |= {"apiVersion": thing["apiVersion"], "kind": thing["kind"].removesuffix("List")}
        for one in [thing, *thing.get("items", [])]:
            one["metadata"].pop("managedFields", None)
        return thing

    def apply(self, thing):
        """Does the same as `kubectl apply --server-side`."""
        root, found = self._find(thing["kind"], thing["apiVersion"])
        namespace = thing["metadata"].get("namespace")
        path = self._place(root, found, thing["metadata"]["name"], namespace=namespace)
        self._must(f"{path}?{WRITER}", "PATCH", thing, APPLY)

    def delete(self, kind, name=None, grace_s=None):
        """Deletes the named object, or all objects of the kind in the namespace. Does not wait for
        their end. Ignores errors, because it cleans up after a test."""
        query = {"propagationPolicy": "Background"}
        if grace_s is not None:
            query["gracePeriodSeconds"] = grace_s
        self._call(self._place(*self._find(kind), name, query), "DELETE")

    def _place(self, root, found, name=None, query=None, namespace=None):
        parts = [root]
        if found["scope"] == "Namespaced":
            parts += ["namespaces", namespace or self._namespace]
        parts += [found["resource"]] + ([name] if name else [])
        return "/".join(parts) + (f"?{urllib.parse.urlencode(query)}" if query else "")

    def _find(self, kind, version=None):
        """Returns (root of the group, entry of discovery) for any name of a kind. Without
        `version`, it takes the server's preferred version."""
        name = (kind.lower(), version)
        if name not in self._by_name:
            self._discover()
        if name not in self._by_name:
            raise AssertionError(f"the API server has no {kind} ({version or 'any version'})")
        return self._by_name[name]

    def _discover(self):
        by_name = {}
        for top in ("/api", "/apis"):
            groups = json.loads(self._must(top, accept=DISCOVERY))["items"]
            for group in groups:
                _note(by_name, top, group)
        self._by_name = by_name

    def _must(self, path, *what, **more):
        status, body = self._call(path, *what, **more)
        if status not in (200, 201):
            raise AssertionError(f"the API server answered {status} to {path}: {body}")
        return body

    def _call(self, path, *what, **more):
        if not self._bed.kubeconfig.exists():
            raise AssertionError(f"the bed '{self._bed.name}' is down")
        with self._lock:
            self._api = self._api or Api(self._bed)
        with network.inside(self._bed):
            return self._api.call(path, *what, timeout_s=ANSWER_S, **more)


def _note(by_name, top, group):
    """Adds a group's resources by plural, singular, kind and short names. The first group and
    version with a name keeps it, because the server lists preferred ones first."""
    group_name = group["metadata"].get("name")
    for version in group["versions"]:
        api_version = f"{group_name}/{version['version']}" if group_name else version["version"]
        root = f"{top}/{api_version}"
        for one in version.get("resources", []):
            names = {one["resource"], one.get("singularResource", ""),
                     one["responseKind"]["kind"].lower(), *one.get("shortNames", [])} - {""}
            for name in names:
                by_name.setdefault((name, None), (root, one))
                by_name.setdefault((name, api_version), (root, one))
