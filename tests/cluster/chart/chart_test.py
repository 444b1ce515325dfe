# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""The chart on a real Kubernetes: install, upgrade, rollback, removal, and use by a namespace's
administrator. The serving objects do not change meanwhile."""

import argparse
import contextlib
import http.client
import itertools
import json
import subprocess
import threading
import time

import nats_secrets
import pytest
import yaml
from boards import BOARDS
from boards.drawing import draw_board
from boards.live import panels_without_data
from boards.model import board_json
from chart import CHART, KINDS, NAMESPACE, OURS, ROOT, WAIT, ClusterWatch, of_version
from installed import (BUILD, MODEL, PORT, READY_S, ROLLING, address_of, ask, client, condition,
                       exchange, failed, picture, router, send, wait_until_serves)
from nats_server import free_port
from testbed import network
from testbed.namespace import RESTRICTED
from watching import never_with_data, wait_for

EXAMPLES = sorted((CHART / "ci").glob("*-values.yaml"))
# The children whose changes the tests detect.
CHILDREN = "deployments,statefulsets,services,pdb,networkpolicies,mmrp,configmaps,serviceaccounts"


@pytest.fixture
def home(make_namespace):
    namespace = make_namespace(labels=RESTRICTED)
    namespace.mount_directory("models", BUILD / "models" / MODEL)
    return namespace


def is_hook(one):
    """True for the pod of helm's test. It needs its service account, and other tests run it."""
    return "helm.sh/hook" in one["metadata"].get("annotations", {})


def test_kubernetes_accepts_every_example_strictly(pods_bed, helm):
    for values in EXAMPLES:
        text = helm("template", "sightline", CHART, "--namespace", NAMESPACE, "--values", values,
                    "--api-versions", "monitoring.coreos.com/v1/PodMonitor",
                    "--api-versions", "monitoring.coreos.com/v1/PrometheusRule")
        objects = [one for one in yaml.safe_load_all(text) if one and not is_hook(one)]
        for name in {one["metadata"].get("namespace") for one in objects} - {None}:
            made = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            pods_bed.kubectl("apply", "-f", "-", given=made)
        said = pods_bed.kubectl("apply", "--dry-run=server", "--validate=strict", "-f", "-",
                                given={"apiVersion": "v1", "kind": "List", "items": objects})
        assert len(said.splitlines()) == len(objects), values.name


def test_two_commands_start_a_router_that_reuses_blocks(home, installation, pods_bed, tmp_path):
    said = installation.install()
    assert "kubectl apply -f - <<EOF" in said
    assert "Succeeded" in installation.helm("test", "sightline", "--namespace", NAMESPACE)
    # If a policy closes the engines' ports, the routers cannot read the engines' hit rates.
    home.apply(router({"networkPolicy": {"enabled": False}}))
    wait_until_serves(home)
    with ClusterWatch(pods_bed, tmp_path / "watch") as watch:
        reused = ("sum(sightline_reused_tokens_total) / "
                  "sum(sightline_judged_prompt_tokens_total)")
        wait_for(lambda: watch.value("count(up == 1)") == sum(map(len, watch.targets.values())))
        code, first = ask(home, 7)
        assert code == 200 and first.startswith("0/"), first

        def comes_home():
            code, overlap = ask(home, 7)
            known, _, whole = overlap.partition("/")
            return code == 200 and int(known) > 0.8 * int(whole)
        home.until(comes_home, "the cache holds a repeated picture")
        wait_for(lambda: (watch.value(reused) or 0) > 0.3, what="tokens are reused")
        # Each router measures each worker on its own.
        for seed in (*range(8, 20), *range(8, 20)):
            stream(home, seed)
        wait_for(lambda: (watch.value("sum(sightline_saved_prefill_seconds_total)") or 0) > 0,
                 what="prefill is saved")
        assert watch.value("sum(sightline_operator_object_ready)") == 1
        look_at_boards(home, watch, pods_bed.bed, tmp_path)


def stream(home, seed):
    """Sends a streamed request: from these answers the router measures a worker's pace."""
    body = json.dumps(json.loads(picture(seed)) | {"stream": True})
    code = send(home, address_of(home), body).code
    assert code == 200, code


# Panels that have no data while all is well, by board and panel, and what gives them data.
EMPTY_WHILE_WELL = {
    ("sightline-engines", "Errors by kind"): "garbage from an engine",
    ("sightline-operator", "Certificates of NATS"): "a process with a certificate",
}


def without_data(watch, bed):
    asked = argparse.Namespace(url=watch.url, since=30, window="30s")
    with network.inside(bed):
        return panels_without_data(asked, map(board_json, BOARDS))


def look_at_boards(home, watch, bed, folder):
    """Checks that every query has data, or gets data from what it shows."""
    watch.began = time.monotonic()
    with client(home), others(home):
        well = EMPTY_WHILE_WELL.keys()
        assert never_with_data(lambda: without_data(watch, bed), well, 300) == well
        break_an_engine(home)
        with process_with_certificate(bed, folder, watch):
            assert never_with_data(lambda: without_data(watch, bed), set(), 300) == set()
            # The operator's board shows a rollout.
            home.apply(router({"kv": {"blockSize": 32}, "networkPolicy": {"enabled": False}}))
            home.until(lambda: status_generation(home) == 2, "the change is seen")
            home.wait("mmr/demo", "Ready", READY_S)
            draw_operator(watch, bed)


@contextlib.contextmanager
def others(home):
    """Other load than whole answers about images: long streams about new images, for which engines
    publish events, and prompts that the router cannot count."""
    over = threading.Event()

    def run():
        for seed in itertools.count(20):
            for more in ({"stream": True, "max_tokens": 256},
                         {"chat_template": "{{ messages }}"}):
                body = json.dumps(json.loads(picture(seed)) | more)
                # An engine that is broken on purpose need not answer.
                with contextlib.suppress(OSError, http.client.HTTPException):
                    send(home, address_of(home), body)
            if over.wait(0.2):
                return
    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def draw_operator(watch, bed):
    """Draws the image of docs/monitoring.md. A person copies it there."""
    board = next(one for one in BOARDS if one.name == "operator")
    asked = argparse.Namespace(url=watch.url, since=time.monotonic() - watch.began, window="15s")
    pictures = BUILD / "test-output"
    pictures.mkdir(exist_ok=True)
    with network.inside(bed):
        draw_board(asked, board.name, board_json(board), pictures / "operator.png")


def break_an_engine(home):
    worker = home.get("pods", "-l", "app.kubernetes.io/component=worker")["items"][0]
    answer, said = exchange(home, worker["status"]["podIP"], PORT, "POST", "/fault",
                            json.dumps({"kind": "garbage", "p": 1, "count": 5}))
    assert answer.status == 200, said


@contextlib.contextmanager
def process_with_certificate(bed, folder, watch):
    """A router that has a CA file and no NATS. It is scraped with the others."""
    authority = nats_secrets.make_authority(folder, "ca")
    port = free_port()
    command = [BUILD / "bin/sightline", "serve", "--model-path", BUILD / "models" / MODEL,
               "--served-model-name", "demo", "--port", "0", "--admin-port", str(port), "--nats",
               "tls://127.0.0.1:9", "--nats-ca-file", authority,
               "--worker", "name=w,url=http://127.0.0.1:9"]
    with network.inside(bed), open(folder / "router.log", "wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        watch.add_target("with-certificate", port)
        yield
    finally:
        process.terminate()
        process.wait()


def generations(home):
    found = {}
    for one in home.get(CHILDREN)["items"]:
        meta = one["metadata"]
        if meta["name"] == "kube-root-ca.crt" or meta["name"] == "default":
            continue
        # For kinds without a generation, the wanted content itself.
        wanted = meta.get("generation") or json.dumps(one.get("data", one.get("spec")), sort_keys=1)
        found[f"{one['kind']}/{meta['name']}"] = (meta["uid"], wanted)
    return found


def is_ready(home):
    return condition(home, "Ready") == "True AsWanted"


def test_changes_of_the_release_change_no_serving_object(home, installation, pods_bed, tmp_path):
    installation.install(chart=of_version(tmp_path / "old", "0.0.9"))
    home.apply(router(ROLLING))
    wait_until_serves(home)
    home.until(lambda: is_ready(home), "it is as wanted")
    before = generations(home)
    assert len(before) > 8
    with client(home) as answers:
        installation.upgrade()
        home.until(lambda: is_ready(home), "it is as wanted after the upgrade")
        assert generations(home) == before
        installation.helm("rollback", "sightline", "--namespace", NAMESPACE, *WAIT)
        home.until(lambda: is_ready(home), "it is as wanted after the rollback")
        assert generations(home) == before
        installation.uninstall()
        kept = pods_bed.kubectl("get", "crd", *KINDS, "-o", "name").split()
        assert len(kept) == 2
        assert generations(home) == before
        refused = installation.install(release="other", namespace="elsewhere", check=False)
        assert "invalid ownership metadata" in refused.stderr
        installation.releases.clear()
        installation.install("--take-ownership", release="other", namespace="elsewhere")
        rollouts = pods_bed.kubectl("-n", "elsewhere", "get", "lease", "-o", "name")
        assert "sightline-operator" in rollouts
        home.until(lambda: is_ready(home), "it is as wanted under another release")
        assert generations(home) == before
        home.apply(router(ROLLING | {"router": {"policy": "round-robin"}}))
        home.until(lambda: status_generation(home) == 2, "the new release reconciles")
    assert not failed(answers)
    assert len(answers) > 20


def status_generation(home):
    return home.get("mmr", "demo").get("status", {}).get("observedGeneration")


def test_a_namespace_administrator_can_install_the_chart(home, helm, pods_bed):
    kubectl = pods_bed.kubectl
    kubectl("apply", "--server-side", "-k", ROOT / "config/crd")
    try:
        home.apply({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
                    "metadata": {"name": "admins"},
                    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
                                "name": "admin"},
                    "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User",
                                  "name": "alice"}]})
        as_alice = ["--kube-as-user", "alice", "--namespace", home.name]
        # Kubernetes aggregates the roles later.
        home.until(lambda: home.try_kubectl(
            "auth", "can-i", "create", "multimodalrouters.sightline.dev", "--as", "alice")[0] == 0,
            "alice may make routers")
        helm("install", "sightline", CHART, *as_alice, *OURS, *WAIT, "--set=crds.enabled=false",
             f"--set=watchNamespaces={{{home.name}}}")
        assert "Succeeded" in helm("test", "sightline", *as_alice)
        home.kubectl("apply", "--as", "alice", "-f", "-", given=router())
        home.wait("mmr/demo", "Ready", READY_S)
        log = home.kubectl("logs", "-l", "app.kubernetes.io/name=sightline-operator", "--tail=-1")
        assert "forbidden" not in log.lower()
        helm("uninstall", "sightline", *as_alice, "--wait")
    finally:
        kubectl("delete", "--ignore-not-found", "--timeout=60s", "crd", *KINDS)
        kubectl("delete", "-k", ROOT / "config/crd", "--ignore-not-found", "--timeout=60s")


def test_helm_refuses_wrong_values_and_creates_nothing(helm, pods_bed):
    answer = helm("install", "wrong", CHART, "--namespace", "wrong", "--create-namespace",
                  "--set=crds.kep=true", check=False)
    assert answer.returncode != 0 and "kep" in answer.stderr
    assert "wrong" not in pods_bed.kubectl("get", "namespaces", "-o", "name").split("/")
