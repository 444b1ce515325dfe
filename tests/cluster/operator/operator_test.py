# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""sightline-operator as it is installed, with real pods: one object becomes a router."""

import contextlib
import http.client
import json
import os
import pathlib
import sys

import pytest

from testbed import network
from testbed.namespace import RESTRICTED

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "hack"))

from pictures import image_part, png, text_part  # noqa: E402

BUILD = pathlib.Path(os.environ.get("SL_BUILD", ROOT / "build/release")).resolve()
MODEL = "tiny-qwen2-vl"
SYSTEM = "sightline-system"
# Images of the manifests, and those of the build tree.
IMAGES = {"sightline-operator:0.1.0": "sightline-operator:testbed",
          "sightline:0.1.0": "sightline:testbed", "nats:2.15.1": "nats:testbed"}
READY_S = 180
# What a namespace has by itself.
OF_EVERY_NAMESPACE = {"configmap/kube-root-ca.crt", "serviceaccount/default"}


@pytest.fixture(scope="session")
def operator(pods_bed, tmp_path_factory):
    """The operator, installed as the documentation says; its log stands below a failure of it."""
    manifests = pods_bed.kubectl("kustomize", ROOT / "config/default")
    for name, ours in IMAGES.items():
        assert name in manifests
        manifests = manifests.replace(f"{name}\n", f"{ours}\n")
    file = tmp_path_factory.mktemp("operator") / "operator.yaml"
    file.write_text(manifests)
    pods_bed.kubectl("apply", "-f", file)
    pods_bed.kubectl("-n", SYSTEM, "rollout", "status", "deployment/sightline-operator",
                     "--timeout=120s")
    yield pods_bed
    print(pods_bed.kubectl("-n", SYSTEM, "logs", "deployment/sightline-operator", "--tail=100"))


@pytest.fixture
def home(operator, make_namespace):
    """A namespace with the model's files."""
    namespace = make_namespace(labels=RESTRICTED)
    namespace.mount_directory("models", BUILD / "models" / MODEL)
    return namespace


def router(spec=None):
    return {"apiVersion": "sightline.dev/v1alpha1", "kind": "MultimodalRouter",
            "metadata": {"name": "demo"}, "spec": {
                "model": {"name": "demo", "source": {"pvc": {"claimName": "models"}}},
                "pools": [{"name": "engines", "backend": "simulator", "replicas": 2,
                           "template": {}}]} | (spec or {})}


def ask(home, seed):
    """(status, overlap as "X/Y") of a picture's question through the client Service."""
    address = home.get("service", "demo")["spec"]["clusterIP"]
    parts = [image_part(png(448, 448, seed=seed)), text_part("What is shown?")]
    body = json.dumps({"model": "demo", "max_tokens": 4,
                       "messages": [{"role": "user", "content": parts}]})
    with network.inside(home.bed):
        connection = http.client.HTTPConnection(address, 8000, timeout=30)
        with contextlib.closing(connection):
            connection.request("POST", "/v1/chat/completions", body,
                               {"content-type": "application/json"})
            answer = connection.getresponse()
            answer.read()
    return answer.status, answer.getheader("x-sightline-overlap", "")


def status(home):
    return home.get("mmr", "demo").get("status", {})


def condition(home, kind):
    return next((f"{one['status']} {one['reason']}" for one in status(home).get("conditions", [])
                 if one["type"] == kind), None)


def names(home):
    """kind/name of all that is there."""
    kinds = "all,configmap,secret,serviceaccount,pdb,networkpolicy,hpa,mmr,mmrp"
    listed = home.kubectl("get", kinds, "-o", "name").split()
    return {name.lower() for name in listed} - OF_EVERY_NAMESPACE


def test_one_object_becomes_a_router_that_knows_a_picture_when_it_comes_again(home):
    home.apply(router())
    home.wait("mmr/demo", "Ready", READY_S)
    line = home.kubectl("get", "mmr", "demo", "--no-headers").split()
    assert line[1:3] == ["True", "AsWanted"], line
    assert {"16", "disabled", "2/2"} <= set(line), line
    code, first = ask(home, 7)
    assert code == 200 and first.startswith("0/"), first

    def comes_home():
        code, overlap = ask(home, 7)
        known, _, whole = overlap.partition("/")
        return code == 200 and int(known) > 0.8 * int(whole) and overlap

    home.until(comes_home, "the picture is known when it comes again")
    assert condition(home, "IndexConsistent") == "True OneBlockSize"
    story = home.kubectl("describe", "mmr", "demo")
    assert "Ready: block size 16, transfer disabled, workers 2/2, routers 2" in story
    home.kubectl("delete", "mmr", "demo")
    home.until(lambda: not names(home), f"nothing is left: {names(home)}")


def test_another_block_size_replaces_everything_and_fails_no_request(home):
    home.apply(router({"rollout": {"maxSurge": 1, "maxUnavailable": 0}}))
    home.wait("mmr/demo", "Ready", READY_S)
    before = status(home)["currentRevision"]
    home.apply(router({"rollout": {"maxSurge": 1, "maxUnavailable": 0}, "kv": {"blockSize": 32}}))
    asked = []

    def is_there():
        asked.append(ask(home, len(asked) % 5)[0])
        now = status(home)
        revisions = now.get("revisions", [])
        assert len(revisions) <= 2
        return (len(revisions) == 1 and revisions[0]["blockSize"] == 32
                and condition(home, "Ready") == "True AsWanted")

    home.until(is_there, "the new revision is all there is", READY_S)
    assert set(asked) == {200}, asked
    assert len(asked) > 10
    home.until(lambda: not [name for name in names(home) if before in name],
               "nothing of the old revision is left")
