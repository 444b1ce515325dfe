# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Two routers of one name in two namespaces on one NATS, like in the sample. Each has a user that
may use only its own subjects. Neither router receives messages of the other."""

import base64
import json
import types

import pytest
from installed import (BUILD, MODEL, READY_S, ROLLING, ROOT, address_of, admin, ask, condition,
                       metric, picture, router, send, status, wait_until_serves)
from nats_server import NatsClient
from testbed import network, pods
from testbed.namespace import RESTRICTED

SAMPLE = ROOT / "config/samples/external-nats.yaml"
PORT = 4222
HEARD, HEARD_S = 20, 10
# Metrics of messages that were not for the router that got them, and of forbidden subjects.
STRANGERS = ["sightline_replica_members_unfit", "sightline_replica_members_refused_total",
             "sightline_replica_refused_total"] + [
    f'sightline_nats_dropped_total{{connection="{one}",reason="not-permitted"}}'
    for one in ("control", "events")]


def server(*tenants):
    """A NATS server with a user for each of these namespaces, as docs/replication.md describes."""
    users = "\n".join(
        f'{{ user: {name}, password: "of-{name}", permissions: '
        f'{{ publish: "sl.{name}.demo.>", subscribe: "sl.{name}.demo.>" }} }}' for name in tenants)
    pod = pods.pod("nats", pods.container(
        "nats", image="nats:testbed", args=["-c", "/etc/nats/nats.conf"],
        readinessProbe={"tcpSocket": {"port": PORT}, "periodSeconds": 1},
        volumeMounts=[{"name": "config", "mountPath": "/etc/nats"}]),
        volumes=[{"name": "config", "configMap": {"name": "nats"}}])
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "nats"}, "data": {
        "nats.conf": f"listen: 0.0.0.0:{PORT}\nauthorization {{ users = [\n{users}\n] }}\n"}}
    return pod, config, pods.service("nats", ports=[{"port": PORT}])


def sample_for(home, messaging):
    """Returns the sample's Secret and router, with the addresses and the engines of the test."""
    taken = home.kubectl("apply", "--dry-run=server", "-o", "json", "-f", SAMPLE)
    secret, shop = json.loads(taken)["items"]
    external = shop["spec"]["nats"]["external"]
    external["urls"] = [f"nats://nats.{messaging.name}.svc:{PORT}"]
    assert external["credentialsSecret"]["name"] == secret["metadata"]["name"]
    key, = secret["data"]
    return ({"apiVersion": "v1", "kind": "Secret", "metadata": {
        "name": secret["metadata"]["name"]}, "stringData": {key: f"{home.name}:of-{home.name}"}},
        router(ROLLING | {"nats": {"external": external}}))


@pytest.fixture
def messaging(operator, make_namespace):
    return make_namespace("messaging")


@pytest.fixture
def tenants(messaging, make_namespace):
    """Namespaces whose routers are Ready."""
    homes = [make_namespace(colour, RESTRICTED) for colour in ("red", "blue")]
    messaging.apply(*server(*(home.name for home in homes)))
    messaging.wait("pod/nats", "Ready", READY_S)
    for home in homes:
        home.mount_directory("models", BUILD / "models" / MODEL)
        home.apply(*sample_for(home, messaging))
    for home in homes:
        wait_until_serves(home)
    return homes


def of_pod(home, component):
    """Returns the user and the password of a pod of the component."""
    pod = home.get("pods", "-l", f"app.kubernetes.io/component={component}")["items"][0]
    volume = next(one for one in pod["spec"]["volumes"] if one["name"] == "nats")
    secret, = (source["secret"] for source in volume["projected"]["sources"])
    data = home.get("secret", secret["name"])["data"]
    return base64.b64decode(data[secret["items"][0]["key"]]).decode().split(":")


def client(messaging, user, password):
    address = messaging.get("pod", "nats")["status"]["podIP"]
    with network.inside(messaging.bed):
        return NatsClient(types.SimpleNamespace(host=address, port=PORT), user, password)


def comes_home(home, seed):
    code, overlap = ask(home, seed)
    known, _, whole = overlap.partition("/")
    return code == 200 and int(known) > 0.8 * int(whole)


def test_routers_on_one_nats_receive_no_messages_of_each_other(tenants):
    for home in tenants:
        assert condition(home, "MessagingReady") == "True Connected"
        assert status(home)["workers"] == "2/2"
        assert ask(home, 7)[1].startswith("0/"), "the blocks of the other router are not known here"
        home.until(lambda: comes_home(home, 7),  # noqa: B023
                   "the cache holds a repeated picture")
    for home in tenants:
        own = {pod["metadata"]["name"] for pod in home.get("pods")["items"]}
        readers = admin(home, "router")
        assert len(readers) == 2
        for name, read in readers.items():
            members = json.loads(read("/v1/replicas"))["members"]
            assert {one["scope"] for one in members} == {f"{home.name}/demo"}
            assert {one["name"] for one in members} == own - {name}
            page = read("/metrics")
            assert metric(page, "sightline_replica_members") == len(own) - 1
            assert not {what: metric(page, what) for what in STRANGERS if metric(page, what)}


def test_nats_refuses_a_router_the_subjects_of_another(tenants, messaging):
    red, blue = tenants
    for component in ("router", "frontend", "worker"):
        with client(messaging, *of_pod(red, component)) as stranger, \
                client(messaging, *of_pod(blue, component)) as owner:
            stranger.subscribe(f"sl.{red.name}.demo.>")
            assert stranger.next(HEARD_S)[0].startswith(f"sl.{red.name}.demo.")
            assert not stranger.errors
            for subject in (f"sl.{blue.name}.demo.>", "sl.>", ">"):
                stranger.subscribe(subject)
                assert "Permissions Violation for Subscription" in stranger.errors[-1]
                assert f'"{subject}"' in stranger.errors[-1]
            owner.subscribe(f"sl.{blue.name}.demo.forged")
            stranger.publish(f"sl.{blue.name}.demo.forged", b"{}")
            stranger.flush()
            assert "Permissions Violation for Publish" in stranger.errors[-1]
            owner.publish(f"sl.{blue.name}.demo.forged", b"own")
            assert owner.next(HEARD_S) == (f"sl.{blue.name}.demo.forged", b"own")
            assert not owner.errors
            send(blue, address_of(blue), picture(8))
            for _ in range(HEARD):
                assert stranger.next(HEARD_S)[0].startswith(f"sl.{red.name}.demo.")
