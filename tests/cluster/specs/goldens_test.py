# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""A real API server accepts word by word what the operator renders in its golden scenes, and the
specs of these scenes. This proves nothing about PodMonitors, which are not part of Kubernetes."""

import json

import pytest
from server import ROOT

GOLDENS = ROOT / "tests/unit/operator/desired/golden"
SCENES = sorted(file.name.removesuffix(".spec.json") for file in GOLDENS.glob("*.spec.json"))
NOT_OF_KUBERNETES = {"PodMonitor"}
AS_IN_SMALL = "as in small: "


def objects_of(scene):
    """Returns all objects of a scene, written out."""
    listed = json.loads((GOLDENS / f"{scene}.json").read_text())
    if not any(isinstance(one, str) for one in listed):
        return listed
    small = {f"{AS_IN_SMALL}{one['kind']} {one['metadata']['name']}": one
             for one in objects_of("small")}
    return [small[one] if isinstance(one, str) else one for one in listed]


@pytest.fixture(scope="module")
def prod(server):
    """The namespace of the scenes."""
    server.keep({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "prod"}})
    return server


@pytest.mark.parametrize("scene", SCENES)
def test_api_server_accepts_the_objects_of_a_scene(prod, scene):
    refused = []
    for thing in objects_of(scene):
        if thing["kind"] in NOT_OF_KUBERNETES:
            continue
        if thing["kind"] == "MultimodalRouterPool":
            # The operator makes it with its first number of workers, which others change later. It
            # has no owner here: the garbage collector would delete it, because the scene's owner
            # does not exist.
            replicas = thing["spec"]["minReplicas"]
            lone = {key: value for key, value in thing["metadata"].items()
                    if key != "ownerReferences"}
            prod.keep(thing | {"metadata": lone, "spec": thing["spec"] | {"replicas": replicas}})
        refused += [(thing["kind"], thing["metadata"]["name"], *why) for why in prod.apply(thing)]
    assert not refused


@pytest.mark.parametrize("scene", SCENES)
def test_api_server_accepts_the_spec_of_a_scene(prod, scene):
    spec = json.loads((GOLDENS / f"{scene}.spec.json").read_text())
    assert prod.create({"apiVersion": "sightline.dev/v1alpha1", "kind": "MultimodalRouter",
                        "metadata": {"name": "shop", "namespace": "prod"}, "spec": spec}) == []


def test_scenes_contain_every_kind_that_the_operator_renders():
    kinds = {thing["kind"] for scene in SCENES for thing in objects_of(scene)}
    assert kinds == {
        "ConfigMap", "Deployment", "HorizontalPodAutoscaler", "MultimodalRouterPool",
        "NetworkPolicy", "PodDisruptionBudget", "PodMonitor", "Service", "ServiceAccount",
        "StatefulSet"}


def test_api_server_refuses_an_unknown_field(prod):
    thing = objects_of("small")[0]
    assert prod.apply(thing | {"automountServiceAccount": True})
