# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""NetworkPolicies of the chart and of an object, checked with the connections of a router that
serves, grows and changes. They allow each of these connections, and refuse strangers."""

import dataclasses
import ipaddress
import json

import pytest
from chart import NAMESPACE
from installed import BUILD, MODEL, PORT, READY_S, picture, wait_until_serves
from policies import Judge, Recorder, objects_of, selects
from testbed.bed import NODE_IP, SERVICE_CIDR
from testbed.pods import container, pod

ADMIN_PORT, SELECTION_PORT, NATS_PORT, METRICS_PORT = 9090, 8092, 4222, 8080
SERVICES = ipaddress.ip_network(SERVICE_CIDR)
CONTENT = {"model": {"name": "demo", "source": {"pvc": {"claimName": "models"}}},
           "networkPolicy": {"enabled": True}, "router": {"replicas": 2},
           "pools": [{"name": "engines", "backend": "simulator", "replicas": 2, "template": {}}]}


def object_with(**more):
    return {"apiVersion": "sightline.dev/v1alpha1", "kind": "MultimodalRouter",
            "metadata": {"name": "demo"}, "spec": CONTENT | more}


def role(one):
    labels = one["metadata"].get("labels", {})
    return labels.get("app.kubernetes.io/component") or labels.get("app.kubernetes.io/name")


def test_judge_resolves_port_names_and_selectors():
    """Checks parts of the judge that Sightline's policies may not need."""
    frontend = {"metadata": {"name": "f", "namespace": "a", "labels": {"app": "f"}},
                "spec": {"containers": [{"ports": [{"name": "http", "containerPort": 80}]}]}}
    friend, stranger = ({"metadata": {"name": name, "namespace": "b", "labels": {"app": name}}}
                        for name in ("friend", "stranger"))
    policy = {"metadata": {"name": "p", "namespace": "a"}, "spec": {
        "podSelector": {"matchLabels": {"app": "f"}}, "policyTypes": ["Ingress"],
        "ingress": [{"ports": [{"port": "http"}], "from": [
            {"namespaceSelector": {"matchExpressions": [{"key": "team", "operator": "Exists"}]},
             "podSelector": {"matchLabels": {"app": "friend"}}}]}]}}
    judge = Judge([policy], {"a": {}, "b": {"team": "x"}})
    assert not judge.refuses(friend, frontend, 80)
    assert judge.refuses(stranger, frontend, 80) == ["p"]
    assert judge.refuses(friend, frontend, 81) == ["p"]
    assert judge.refuses(None, frontend, 80) == ["p"]
    assert Judge([policy], {"a": {}, "b": {}}).refuses(friend, frontend, 80) == ["p"]
    assert not judge.refuses(frontend, friend, 1)
    assert selects({}, {"any": "thing"})


@pytest.fixture
def home(make_namespace):
    namespace = make_namespace()
    namespace.mount_directory("models", BUILD / "models" / MODEL)
    return namespace


def client_pod(name):
    made = pod(name, container(name))
    made["metadata"]["labels"] = {"app": name}
    return made


def test_policies_allow_our_connections_and_no_others(home, installation, pods_bed, tmp_path):
    with open(tmp_path / "pods.json", "w", encoding="utf-8") as out, Recorder(home.bed) as recorder:
        watching = home.begin("kubectl", "get", "pods", "-A", "--watch", "-o", "json", stdout=out)
        try:
            installation.install("--set=networkPolicy.enabled=true",
                                 f"--set=networkPolicy.apiServerPorts={{{api_port(pods_bed)}}}")
            installation.helm("test", "sightline", "--namespace", NAMESPACE)
            serve_grow_and_change(home)
        finally:
            watching.terminate()
            watching.wait()
    assert recorder.lost == 0
    text = (tmp_path / "pods.json").read_text(encoding="utf-8")
    pods = {one["status"]["podIP"]: one for one in objects_of(text)
            if one["status"].get("podIP", NODE_IP) != NODE_IP}
    policies = pods_bed.get("networkpolicies", "-A")["items"]
    namespaces = {one["metadata"]["name"]: one["metadata"].get("labels", {})
                  for one in pods_bed.get("namespaces")["items"]}
    judge = Judge(policies, namespaces)
    check_seen(behind_services(recorder.seen, pods_bed), pods, judge)
    check_strangers(pods, judge)


def serve_grow_and_change(home):
    home.apply(client_pod("asker"), object_with())
    home.wait("pod/asker", "Ready", READY_S)
    wait_until_serves(home)
    ask = ["curl", "-sf", f"http://demo:{PORT}/v1/chat/completions", "-d", picture(7),
           "-H", "content-type: application/json"]
    for _ in range(2):
        assert json.loads(home.exec("asker", *ask))["choices"]
    home.apply(object_with(nats={"managed": {"replicas": 3}}, kv={"blockSize": 32}))
    home.until(lambda: home.get("mmr", "demo")["status"].get("observedGeneration") == 2,
               "the change is seen")
    home.wait("mmr/demo", "Ready", READY_S)
    assert json.loads(home.exec("asker", *ask))["choices"]


def api_port(pods_bed):
    (slice_of,) = pods_bed.get("endpointslices", "-n", "default", "-l",
                               "kubernetes.io/service-name=kubernetes")["items"]
    return slice_of["ports"][0]["port"]


def behind_services(seen, pods_bed):
    """Replaces the API server's Service by the node, which answers for the API server itself."""
    kubernetes = pods_bed.get("service", "kubernetes", "-n", "default")["spec"]["clusterIP"]
    port = api_port(pods_bed)
    return {dataclasses.replace(one, target=NODE_IP, port=port)
            if one.target == kubernetes else one for one in seen}


def check_seen(seen, pods, judge):
    """Checks all connections that pods begin. No policy forbids the node's own, for example
    probes (kubernetes.io, Network Policies)."""
    kinds, refused = set(), {}
    for one in seen:
        source, target = pods.get(one.source), pods.get(one.target)
        # A connection to a Service appears again with a pod's address.
        if source is None or ipaddress.ip_address(one.target) in SERVICES:
            continue
        outside = "node" if one.target == NODE_IP else "outside"
        kinds.add((role(source), role(target) if target else outside, one.port))
        if found := judge.refuses(source, target, one.port, one.protocol):
            refused[(role(source), one.target, one.port)] = found
    assert refused == {}
    # The recorder has missed no connection that must exist.
    assert kinds >= {
        (None, "frontend", PORT), ("frontend", "router", SELECTION_PORT),
        ("frontend", "nats", NATS_PORT), ("router", "nats", NATS_PORT),
        ("worker", "nats", NATS_PORT), ("nats", "nats", 6222),
        ("sightline-operator", "router", ADMIN_PORT),
        ("sightline-operator", "frontend", ADMIN_PORT),
    }, kinds
    assert any(one == "sightline-operator" and port not in (53, ADMIN_PORT)
               for one, to, port in kinds if to == "node"), kinds
    assert {("frontend", "worker", PORT), ("router", "worker", PORT)} & kinds, kinds


# Ports that must be open to everyone: for clients, for the operator and Prometheus.
OPEN = {("frontend", PORT), ("frontend", ADMIN_PORT), ("router", ADMIN_PORT),
        ("worker", ADMIN_PORT), ("sightline-operator", METRICS_PORT)}


def check_strangers(pods, judge):
    ours = {}
    for one in pods.values():
        if role(one) in {name for name, _ in OPEN} | {"nats"}:
            selected = [policy["metadata"]["name"] for policy in judge.selected(one, "Ingress")]
            assert selected, one["metadata"]["name"]
            ours[(role(one), *selected)] = one
    reached = set()
    for one in ours.values():
        beside = {"metadata": {"name": "stranger", "labels": {"app": "stranger"},
                               "namespace": one["metadata"]["namespace"]}}
        elsewhere = {"metadata": {**beside["metadata"], "namespace": "default"}}
        for stranger in (beside, elsewhere, None):
            reached |= {(role(one), port) for port in range(1, 65536)
                        if not judge.refuses(stranger, one, port)}
    assert reached == OPEN
    assert "nats" in {role(one) for one in ours.values()}
