# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""The chart on a real Kubernetes: installed, upgraded, rolled back, removed, by a namespace's
administrator; nothing that serves notices."""

import json

import pytest
import yaml
from chart import CHART, KINDS, NAMESPACE, OURS, ROOT, WAIT, ClusterWatch, of_version
from installed import BUILD, MODEL, READY_S, ROLLING, ask, client, condition, failed, router
from testbed.namespace import RESTRICTED
from watching import wait_for

EXAMPLES = sorted((CHART / "ci").glob("*-values.yaml"))
# Kinds whose generation counts changes of what is wanted.
CHILDREN = "deployments,statefulsets,services,pdb,networkpolicies,mmrp,configmaps,serviceaccounts"


@pytest.fixture
def home(make_namespace):
    namespace = make_namespace(labels=RESTRICTED)
    namespace.mount_directory("models", BUILD / "models" / MODEL)
    return namespace


def is_hook(one):
    """The pod of helm's test, whose service account has to be there: other tests run it."""
    return "helm.sh/hook" in one["metadata"].get("annotations", {})


def test_every_example_is_accepted_strictly(pods_bed, helm):
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


def test_two_commands_give_a_router_that_knows_a_picture(home, installation, pods_bed, tmp_path):
    said = installation.install()
    assert "kubectl apply -f - <<EOF" in said
    assert "Succeeded" in installation.helm("test", "sightline", "--namespace", NAMESPACE)
    home.apply(router())
    home.wait("mmr/demo", "Ready", READY_S)
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
        home.until(comes_home, "the picture is known when it comes again")
        wait_for(lambda: (watch.value(reused) or 0) > 0.3, what="tokens are reused")
        for _ in range(3):
            ask(home, 8)
        assert watch.value("sum(sightline_operator_object_ready)") == 1


def generations(home):
    found = {}
    for one in home.get(CHILDREN)["items"]:
        meta = one["metadata"]
        if meta["name"] == "kube-root-ca.crt" or meta["name"] == "default":
            continue
        # Of kinds without a generation what is wanted itself.
        wanted = meta.get("generation") or json.dumps(one.get("data", one.get("spec")), sort_keys=1)
        found[f"{one['kind']}/{meta['name']}"] = (meta["uid"], wanted)
    return found


def is_ready(home):
    return condition(home, "Ready") == "True AsWanted"


def test_releases_come_and_go_and_nothing_that_serves_changes(home, installation, pods_bed,
                                                              tmp_path):
    installation.install(chart=of_version(tmp_path / "old", "0.0.9"))
    home.apply(router(ROLLING))
    home.wait("mmr/demo", "Ready", READY_S)
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


def test_the_administrator_of_a_namespace_installs_it_there(home, helm, pods_bed):
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
        # Until roles are put together.
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


def test_wrong_values_make_nothing(helm, pods_bed):
    answer = helm("install", "wrong", CHART, "--namespace", "wrong", "--create-namespace",
                  "--set=crds.kep=true", check=False)
    assert answer.returncode != 0 and "kep" in answer.stderr
    assert "wrong" not in pods_bed.kubectl("get", "namespaces", "-o", "name").split("/")
