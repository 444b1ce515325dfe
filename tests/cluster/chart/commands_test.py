# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Runs the commands of the documentation on a real Kubernetes, as written and in their order. The
images that they name are already there, because nothing is pulled."""

import contextlib
import pathlib
import re
import shutil
import subprocess

import documented
import pytest
import yaml
from chart import CHART, KINDS, ROOT
from installed import BUILD, MODEL, READY_S
from testbed import binaries, images, real_node

# The sample's volume, a directory of the node.
SAMPLE_FILES = "/var/lib/sightline/models"
WATCHED_S = 15
SYSTEM = "sightline-system"


class Reader:
    """Runs commands of the pages in a copy of the tree, whose sample has the build's model."""

    def __init__(self, bed, folder, runs):
        self._bed = bed
        self._folder = folder
        self._runs = runs
        for name in ("charts", "config", "crds"):
            shutil.copytree(ROOT / name, folder / name)
        sample = folder / "config/samples/two-engines.yaml"
        text = sample.read_text(encoding="utf-8")
        assert SAMPLE_FILES in text
        sample.write_text(text.replace(SAMPLE_FILES, str(BUILD / "models" / MODEL)),
                          encoding="utf-8")

    def types(self, command):
        """Runs a command. Returns its output."""
        limit = f"timeout {WATCHED_S} " if command.endswith("--watch") else ""
        done = subprocess.run(
            self._bed.command(["bash", "-c", limit + command]), cwd=self._folder, text=True,
            env=self._bed.environment(), capture_output=True, check=False, timeout=300)
        fine = 124 if limit else 0
        assert done.returncode == fine, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout

    def reads(self, page, begins):
        return self.types(self._runs.take(page, begins))

    @contextlib.contextmanager
    def begins(self, page, begins, until):
        """Starts a command in the background. Continues once its first line has this text."""
        command = self._runs.take(page, begins)
        assert command.endswith(" &")
        process = subprocess.Popen(self._bed.command(["bash", "-c", "exec " + command[:-2]]),
                                   cwd=self._folder, env=self._bed.environment(), text=True,
                                   stdout=subprocess.PIPE)
        try:
            line = process.stdout.readline()
            assert until in line, line
            yield
        finally:
            process.terminate()
            process.communicate()

    def is_ready(self, seconds=READY_S):
        """Waits until the object is ready with its newest spec."""
        self.types(f"kubectl wait mmr/demo --for=condition=Ready --timeout={seconds}s")


def named():
    """Yields (image of a bed, name of it in the chart and on the pages)."""
    values = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    version = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))["appVersion"]
    yield "nats", f"nats:{values['natsImage']['tag']}"
    for name in ("sightline", "sightline-operator"):
        yield name, f"{name}:{version}"
    pages = "".join((ROOT / f"docs/{page}.md").read_text(encoding="utf-8")
                    for page in ("install", "upgrade"))
    for path in sorted(set(re.findall(r"registry\.example/[a-z-]+:[0-9.]+", pages))):
        yield re.search(r"/([a-z-]+):", path)[1], path


@pytest.fixture
def reader(pods_bed, tmp_path):
    for name, other in named():
        images.name_too(f"{name}:testbed", other, real_node.mount_namespace(pods_bed.bed))
    runs = documented.Runs(pathlib.Path(__file__))
    tree = tmp_path / "tree"
    tree.mkdir()
    yield Reader(pods_bed.bed, tree, runs)
    for release, namespace in (("sightline", SYSTEM), ("sightline", "team")):
        subprocess.run(pods_bed.bed.command(["helm", "uninstall", release, "-n", namespace]),
                       env=pods_bed.bed.environment(), capture_output=True, check=False)
    pods_bed.kubectl("delete", "-k", tree / "config/default", "--ignore-not-found",
                     "--timeout=90s")
    pods_bed.kubectl("delete", "deployments,statefulsets,pvc,ingress,hpa", "--all", "--namespace",
                     "default", "--wait=false")
    pods_bed.kubectl("delete", "pv", "sightline-models", "--ignore-not-found", "--wait=false")
    # Pods of operators too, because the next test looks at all pods of Sightline.
    for pods in (("--all", "--namespace", "default"),
                 ("--selector", "app.kubernetes.io/name=sightline-operator", "--all-namespaces")):
        pods_bed.kubectl("wait", "pods", *pods, "--for=delete", "--timeout=90s")
    runs.check()


POOL_WITH_SCALE = """kubectl patch mmr demo --type=merge -p '{"spec": {"pools": [
  {"name": "engines", "backend": "simulator", "replicas": 1, "template": {}},
  {"name": "gpu", "backend": "simulator", "template": {},
   "autoscaling": {"minReplicas": 1, "maxReplicas": 8}}]}}'"""


def test_commands_of_the_pages_do_what_the_pages_say(reader, pods_bed):
    install(reader)
    tasks(reader, pods_bed)
    upgrade(reader)
    forget_leader(reader)
    chart(reader)
    forget_leader(reader)
    without_helm(reader)


def forget_leader(reader):
    """Deletes the leases. An operator without its rights cannot give up its lease, and the next
    operator would wait for it."""
    reader.types(f"kubectl delete leases --all --namespace {SYSTEM}")


def install(reader):
    page = "docs/install.md"
    assert "STATUS: deployed" in reader.reads(page, "helm install")
    assert "Succeeded" in reader.reads(page, "helm test")
    reader.reads(page, "kubectl apply -f config/samples/two-engines.yaml")
    reader.reads(page, "kubectl wait mmr/demo")
    assert "demo" in reader.reads(page, "kubectl get mmr")
    reader.reads(page, "kubectl apply -f config/samples/vllm-gpu.yaml")
    reader.types("kubectl wait mmr/qwen --for=condition=Accepted --timeout=30s")
    reader.types("kubectl delete -f config/samples/vllm-gpu.yaml --cascade=foreground")
    with reader.begins(page, "kubectl port-forward", "Forwarding from"):
        said = reader.reads(page, "curl -i").lower()
    assert "200 ok" in said and "x-sightline-overlap: 0/" in said


def tasks(reader, pods_bed):
    page = "docs/tasks.md"
    pods_bed.kubectl("apply", "--server-side", "-f", binaries.kinds("gateway"))
    reader.reads(page, "kubectl apply -f config/samples/existing-vllm.yaml")
    assert "shop" in reader.reads(page, "kubectl get mmr")
    reader.types("kubectl delete mmr shop")
    reader.reads(page, "kubectl apply -f config/samples/httproute.yaml")
    reader.reads(page, "kubectl apply -f config/samples/ingress.yaml")
    reader.types(POOL_WITH_SCALE)
    reader.types("until kubectl get mmrp/demo-gpu; do sleep 0.2; done 2>&1")
    reader.reads(page, "kubectl scale mmrp/demo-gpu --replicas=4")
    assert reader.types("kubectl get mmrp/demo-gpu -o jsonpath='{.spec.replicas}'") == "4"
    reader.reads(page, "kubectl autoscale mmrp demo-gpu")
    reader.is_ready()
    reader.types("kubectl delete hpa demo-gpu; kubectl scale mmrp/demo-gpu --replicas=1")
    reader.is_ready()
    reader.reads(page, "kubectl patch mmr demo")
    assert "demo" in reader.reads(page, "kubectl get mmr demo --watch")
    assert reader.reads(page, "kubectl get mmr demo -o jsonpath").startswith("[{")
    reader.reads(page, "kubectl patch mmr demo")
    reader.is_ready()
    assert "demo-identity" in reader.reads(page, "kubectl get secrets")
    reader.reads(page, "kubectl patch mmr demo")
    reader.is_ready()
    reader.reads(page, "kubectl patch mmr demo")
    reader.types("until [[ -z $(kubectl get pods -l sightline.dev/router=demo -o name) ]]; "
                 "do sleep 0.5; done")
    reader.types("""kubectl patch mmr demo --type=merge -p '{"spec": {"suspend": false}}'""")
    reader.is_ready()


def upgrade(reader):
    page = "docs/upgrade.md"
    reader.reads(page, "helm upgrade")
    assert "default" in reader.reads(page, "kubectl get mmr -A")
    reader.reads(page, "kubectl patch mmr demo")
    reader.types("until kubectl get pods -o yaml | grep -q sightline:0.2.0; do sleep 0.5; done")
    reader.reads(page, "helm rollback")
    reader.reads(page, "kubectl delete mmr --all --all-namespaces")
    assert not reader.types("kubectl get deployments -A -l sightline.dev/router -o name")
    reader.reads(page, "helm uninstall")
    reader.reads(page, "kubectl delete crd")
    reader.reads(page, "kubectl delete clusterrole")


def chart(reader):
    page = "docs/chart.md"
    reader.reads(page, "helm install")
    reader.reads(page, "helm test")
    reader.reads(page, "kubectl apply -f config/samples/two-engines.yaml")
    reader.is_ready()
    reader.reads(page, "helm upgrade")
    reader.reads(page, "helm rollback")
    reader.types("kubectl delete mmr --all --all-namespaces --cascade=foreground")
    reader.reads(page, "helm uninstall")
    reader.types("kubectl delete crd " + " ".join(KINDS))
    reader.reads(page, "kubectl apply -k config/crd")
    reader.types("kubectl create namespace team")
    reader.reads(page, "helm install")
    reader.types("helm uninstall sightline --namespace team")


def without_helm(reader):
    page = "docs/operator.md"
    reader.reads(page, "kubectl apply -k config/default")
    reader.reads(page, "kubectl apply -f config/samples/two-engines.yaml")
    reader.is_ready()
    assert "demo" in reader.reads(page, "kubectl get mmr")
