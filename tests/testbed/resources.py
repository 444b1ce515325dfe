# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Objects of a bed's API server by the names that kubectl takes, without a kubectl: each of those
needs 0.1 s of a processor, and most calls of a test ask whether something is so yet."""

import json
import threading
import urllib.parse

from . import network
from .api import APPLY, Api

# All groups and their resources, in two answers (Kubernetes 1.30, aggregated discovery).
DISCOVERY = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
ANSWER_S = 120  # kubectl has no limit
WRITER = "fieldManager=kubectl&fieldValidation=Strict"


class Resources:
    """Of one namespace. Threads may share it."""

    def __init__(self, bed, namespace):
        self._bed = bed
        self._namespace = namespace
        self._lock = threading.Lock()
        self._api = None
        self._by_name = {}

    def get(self, kind, name=None, labels=None):
        """As `kubectl get -o json`."""
        root, found = self._find(kind)
        query = {} if labels is None else {"labelSelector": labels}
        thing = json.loads(self._must(self._place(root, found, name, query)))
        for item in thing.get("items", []):
            item |= {"apiVersion": thing["apiVersion"], "kind": thing["kind"].removesuffix("List")}
        for one in [thing, *thing.get("items", [])]:
            one["metadata"].pop("managedFields", None)
        return thing

    def apply(self, thing):
        """As `kubectl apply --server-side`."""
        root, found = self._find(thing["kind"], thing["apiVersion"])
        namespace = thing["metadata"].get("namespace")
        path = self._place(root, found, thing["metadata"]["name"], namespace=namespace)
        self._must(f"{path}?{WRITER}", "PATCH", thing, APPLY)

    def delete(self, kind, name=None, grace_s=None):
        """The named one, or all of the kind in the namespace, without waiting for their end. A
        refusal is ignored: this clears up after a test."""
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
        """(root of its group, what discovery says of it) by any name of it; of one version if it is
        given, else of the server's preferred one."""
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
    """By plural, singular, kind and short names; the first group and version that has a name keeps
    it, as the server puts the preferred ones first."""
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
