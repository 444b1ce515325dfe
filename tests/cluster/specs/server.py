# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""The answers of a real API server to objects, without storing them."""

import json
import pathlib
import re

from testbed.api import APPLY, Api

ROOT = pathlib.Path(__file__).resolve().parents[3]
CRDS = ROOT / "crds"
OPERATOR = "fieldManager=sightline-operator"
MERGE = "application/merge-patch+json"
# Refuses unknown and duplicate fields, as kubectl also requests.
DRY = "dryRun=All&fieldValidation=Strict"
# The field in the message of a strict server.
UNKNOWN = re.compile(r'unknown field "([^"]+)"')


class Server:
    def __init__(self, bed):
        self._api = Api(bed)
        self._plurals = {}

    def get(self, path):
        return self._api.get(path)

    def keep(self, thing):
        """Stores the object, unless it exists."""
        status, body = self._api.call(self._place(thing), "POST", thing)
        assert status in (201, 409), body

    def create(self, thing):
        """Returns [(field, message)] of a refusal, or an empty list if the object is accepted."""
        return _refusal(*self._api.call(f"{self._place(thing)}?{DRY}", "POST", thing))

    def update(self, thing):
        """Like create(), for an update of a stored object."""
        path = self._path(thing)
        version = self._api.get(path)["metadata"]["resourceVersion"]
        thing = thing | {"metadata": thing["metadata"] | {"resourceVersion": version}}
        return _refusal(*self._api.call(f"{path}?{DRY}", "PUT", thing))

    def apply(self, thing):
        """Like create(), for a server-side apply by the operator."""
        return _refusal(*self._api.call(f"{self._path(thing)}?{DRY}&force=true&{OPERATOR}",
                                        "PATCH", thing, APPLY))

    def scale(self, thing, replicas):
        """Like create(), for the scale of a stored object."""
        return _refusal(*self._api.call(f"{self._path(thing)}/scale?{DRY}", "PATCH",
                                        {"spec": {"replicas": replicas}}, MERGE))

    def _place(self, thing):
        """Returns the path of all objects of this kind, as the server itself lists it."""
        version, kind = thing["apiVersion"], thing["kind"]
        root = f"/apis/{version}" if "/" in version else f"/api/{version}"
        if version not in self._plurals:
            listed = self._api.get(root)
            assert listed, f"the API server does not know {version}"
            self._plurals[version] = {one["kind"]: one["name"] for one in listed["resources"]
                                      if "/" not in one["name"]}
        place = f"{root}/{self._plurals[version][kind]}"
        if kind == "Namespace":
            return place
        namespace = thing["metadata"].get("namespace", "default")
        return place.replace(root, f"{root}/namespaces/{namespace}", 1)

    def _path(self, thing):
        return f"{self._place(thing)}/{thing['metadata']['name']}"


def _refusal(status, body):
    if status in (200, 201):
        return []
    assert status != 0, "the API server does not answer"
    said = json.loads(body)
    causes = (said.get("details") or {}).get("causes") or []
    unknown = [(field, said["message"]) for field in UNKNOWN.findall(said["message"])]
    return ([(cause.get("field", ""), cause["message"]) for cause in causes] or unknown
            or [("", said["message"])])
