# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""What the operator renders in its golden scenes, and the specs of these scenes, are what a real
API server takes word by word. Of PodMonitors, which are not of Kubernetes, nothing is proved."""

import json

import pytest
from server import ROOT

GOLDENS = ROOT / "tests/unit/operator/desired/golden"
SCENES = sorted(file.name.removesuffix(".spec.json") for file in GOLDENS.glob("*.spec.json"))
NOT_OF_KUBERNETES = {"PodMonitor"}
AS_IN_SMALL = "as in small: "


def objects_of(scene):
    """All of its objects, written out."""
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
def test_the_objects_of_a_scene_are_taken(prod, scene):
    refused = []
    for thing in objects_of(scene):
        if thing["kind"] in NOT_OF_KUBERNETES:
            continue
        if thing["kind"] == "MultimodalRouterPool":
            # Made with its number of workers at first, which belongs to others from then on. It has
            # no owner: that of the scene is not there, and the garbage collector would delete it.
            replicas = thing["spec"]["minReplicas"]
            lone = {key: value for key, value in thing["metadata"].items()
                    if key != "ownerReferences"}
            prod.keep(thing | {"metadata": lone, "spec": thing["spec"] | {"replicas": replicas}})
        refused += [(thing["kind"], thing["metadata"]["name"], *why) for why in prod.apply(thing)]
    assert not refused


@pytest.mark.parametrize("scene", SCENES)
def test_the_spec_of_a_scene_is_taken(prod, scene):
    spec = json.loads((GOLDENS / f"{scene}.spec.json").read_text())
    assert prod.create({"apiVersion": "sightline.dev/v1alpha1", "kind": "MultimodalRouter",
                        "metadata": {"name": "shop", "namespace": "prod"}, "spec": spec}) == []


def test_the_scenes_hold_every_kind_that_the_operator_renders():
    kinds = {thing["kind"] for scene in SCENES for thing in objects_of(scene)}
    assert kinds == {
        "ConfigMap", "Deployment", "HorizontalPodAutoscaler", "MultimodalRouterPool",
        "NetworkPolicy", "PodDisruptionBudget", "PodMonitor", "Service", "ServiceAccount",
        "StatefulSet"}


def test_a_field_that_kubernetes_does_not_know_is_refused(prod):
    thing = objects_of("small")[0]
    assert prod.apply(thing | {"automountServiceAccount": True})
