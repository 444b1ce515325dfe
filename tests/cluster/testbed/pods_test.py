# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""The abilities of pods in the machine's bed: all that the operator's pods need."""

import json
import re
import socket
import time

import pytest

from testbed import network, pods
from testbed.namespace import RESTRICTED

TOKEN = "/var/run/secrets/kubernetes.io/serviceaccount"


def test_a_service_is_found_by_name_and_spreads_over_its_pods(namespace):
    namespace.apply(pods.deployment("web", 2, pods.server()), pods.service("web"),
                    pods.service("each", clusterIP="None", selector={"app": "web"}),
                    pods.pod("client"))
    namespace.wait(["deployment/web"], "Available")
    namespace.wait("pod/client", "Ready")
    names = {p["metadata"]["name"] for p in namespace.get("pods", "-l", "app=web")["items"]}
    assert pods.fetch(namespace, "client", "http://web/").strip() in names
    script = "for i in $(seq 30); do curl -sS -m 10 http://web/; done"
    assert set(namespace.exec("client", "sh", "-c", script).split()) == names
    for name in ("web", f"web.{namespace.name}", f"web.{namespace.name}.svc.cluster.local"):
        assert pods.fetch(namespace, "client", f"http://{name}/").strip() in names
    found = namespace.exec("client", "nslookup", f"each.{namespace.name}.svc.cluster.local")
    assert len(set(re.findall(r"10\.251\.0\.\d+", found))) == 2, found


def test_pods_of_a_stateful_set_have_names_before_readiness(namespace):
    pod = pods.pod("set", pods.server(), readinessGates=[{"conditionType": "sightline.dev/never"}])
    namespace.apply(
        pods.service("set", clusterIP="None", publishNotReadyAddresses=True),
        {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "set"},
         "spec": {"replicas": 2, "serviceName": "set", "podManagementPolicy": "Parallel",
                  "selector": {"matchLabels": {"app": "set"}},
                  "template": {"metadata": {"labels": {"app": "set"}}, "spec": pod["spec"]}}})
    namespace.until(lambda: len(namespace.get("pods")["items"]) == 2, "both are there")
    namespace.wait(["pod/set-0", "pod/set-1"], "ContainersReady")
    url = f"http://set-1.set.{namespace.name}.svc.cluster.local:{pods.PORT}/"
    assert pods.fetch(namespace, "set-0", url) == "set-1\n"


def test_a_pod_reaches_itself_by_its_service(namespace):
    service = pods.service("own", selector={"app": "web"})
    namespace.apply(pods.pod("web", pods.server()), service)
    namespace.wait("pod/web", "Ready")
    assert pods.fetch(namespace, "web", "http://own/") == "web\n"


def test_the_tests_process_reaches_pods_and_services(namespace, pods_bed):
    namespace.apply(pods.pod("web", pods.server()), pods.service("web"))
    namespace.wait("pod/web", "Ready")
    places = [(namespace.get("service", "web")["spec"]["clusterIP"], 80),
              (namespace.get("pod", "web")["status"]["podIP"], pods.PORT)]
    for place in places:
        with network.inside(pods_bed.bed):
            connection = socket.create_connection(place, timeout=10)
        with connection:
            connection.sendall(b"GET / HTTP/1.0\r\n\r\n")
            assert b"200 OK" in connection.recv(100)


def test_probes_decide_about_traffic_and_restarts(namespace):
    by_file = {"exec": {"command": ["test", "-e", "/tmp/ready"]}, "periodSeconds": 1,
               "failureThreshold": 1}
    # A slow start on a busy machine must not count as a failed probe.
    by_page = {"httpGet": {"path": "/", "port": pods.PORT}, "periodSeconds": 1}
    namespace.apply(
        pods.pod("asked", pods.container("client", readinessProbe=by_file)), pods.service("asked"),
        pods.pod("sick", pods.server(
            startupProbe=by_page | {"failureThreshold": 60},
            livenessProbe=by_page | {"failureThreshold": 1})))
    namespace.wait("pod/sick", "Ready")
    namespace.wait("pod/asked", "jsonpath={.status.phase}=Running")

    def ready():
        slices = namespace.get("endpointslices", "-l", "kubernetes.io/service-name=asked")["items"]
        return [e["conditions"]["ready"] for s in slices for e in s["endpoints"] or []]

    namespace.until(lambda: ready() == [False], "no pod is asked")
    namespace.exec("asked", "touch", "/tmp/ready")
    namespace.until(lambda: ready() == [True], "the pod is asked")
    namespace.exec("asked", "rm", "/tmp/ready")
    namespace.until(lambda: ready() == [False], "no pod is asked again")
    namespace.exec("sick", "rm", "/tmp/www/index.html")
    namespace.wait("pod/sick", "jsonpath={.status.containerStatuses[0].restartCount}=1")


def test_kubectl_shows_logs_runs_commands_and_forwards_ports(namespace):
    namespace.apply(pods.pod("web", pods.server("forwarded"),
                             pods.container("talker", "echo said; exec sleep 1000")))
    namespace.wait("pod/web", "Ready")
    namespace.until(lambda: namespace.kubectl("logs", "web", "-c", "talker") == "said\n",
                    "the log is there")
    status, output, _ = namespace.try_kubectl("exec", "web", "-c", "talker", "--", "sh", "-c",
                                              "echo out; exit 3")
    assert (status, output) == (3, "out\n")
    with namespace.forward("pod/web", pods.PORT) as connection:
        connection.sendall(b"GET / HTTP/1.0\r\n\r\n")
        answer = b"".join(iter(lambda: connection.recv(4096), b""))
    assert answer.endswith(b"forwarded\n")


def restricted(name, *containers, **spec):
    return pods.pod(name, *containers, **{"securityContext": {
        "runAsNonRoot": True, "runAsUser": 65532, "fsGroup": 65532,
        "seccompProfile": {"type": "RuntimeDefault"}}, "automountServiceAccountToken": False,
        "enableServiceLinks": False} | spec)


def test_a_restricted_namespace_runs_restricted_pods_and_refuses_others(make_namespace, tmp_path):
    namespace = make_namespace(labels=RESTRICTED)
    tmp_path.chmod(0o755)
    (tmp_path / "model.txt").write_text("weights\n")
    namespace.mount_directory("model", tmp_path)
    namespace.apply(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"},
         "data": {"level": "debug"}},
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key"},
         "stringData": {"key": "secret"}},
        restricted("fine", pods.container(
            "client", securityContext=pods.RESTRICTED, volumeMounts=[
                {"name": "model", "mountPath": "/model", "readOnly": True},
                {"name": "scratch", "mountPath": "/scratch"},
                {"name": "secrets", "mountPath": "/secrets", "readOnly": True},
                {"name": "shared", "mountPath": "/dev/shm"}],
            envFrom=[{"configMapRef": {"name": "settings"}}],
            env=[{"name": "SELF", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]),
            volumes=[
                {"name": "model", "persistentVolumeClaim": {"claimName": "model",
                                                            "readOnly": True}},
                {"name": "scratch", "emptyDir": {}},
                {"name": "shared", "emptyDir": {"medium": "Memory", "sizeLimit": "16Mi"}},
                {"name": "secrets", "projected": {"sources": [{"secret": {
                    "name": "key", "items": [{"key": "key", "path": "key"}]}}]}}]))
    namespace.wait("pod/fine", "Ready")

    def says(script):
        return namespace.exec("fine", "sh", "-c", script).strip()

    assert says("id -u; id -g; cat /model/model.txt /secrets/key; echo; echo $level $SELF") == (
        "65532\n65532\nweights\nsecret\ndebug fine")
    assert says("touch /scratch/a /dev/shm/b && stat -c %g /scratch/a") == "65532"
    assert "Read-only" in says("touch /usr/a 2>&1; true")
    assert says("df /dev/shm | tail -n 1 | cut -d' ' -f 1") == "tmpfs"
    limits = says("grep -E '^(CapEff|NoNewPrivs|Seccomp):' /proc/self/status | cut -f 2")
    assert limits.split() == ["0" * 16, "1", "2"]
    status, _, errors = namespace.try_kubectl("run", "free", f"--image={pods.CLIENT}")
    assert (status, 'violates PodSecurity "restricted' in errors) == (1, True), errors


def test_a_sidecar_starts_first_and_keeps_no_pod_alive(namespace):
    sidecar = pods.server("sidecar", restartPolicy="Always", startupProbe={
        "httpGet": {"path": "/", "port": pods.PORT}, "periodSeconds": 1})
    namespace.apply(pods.pod(
        "job", pods.container("main", f"curl -sS http://localhost:{pods.PORT}/ > /tmp/said && "
                              "grep -q sidecar /tmp/said"),
        initContainers=[sidecar], restartPolicy="Never"))
    namespace.wait("pod/job", "jsonpath={.status.phase}=Succeeded")


DRAIN = """\
trap exit TERM
mkdir -p /tmp/www/cgi-bin && cd /tmp/www
printf '#!/bin/sh\\necho "drained $QUERY_STRING" >> /notes/said\\necho; echo\\n' > cgi-bin/drain
chmod +x cgi-bin/drain
httpd -f -p 8081 & wait
"""


def test_hooks_run_first_and_the_sidecar_ends_last(namespace, tmp_path):
    tmp_path.chmod(0o777)
    namespace.mount_directory("notes", tmp_path)
    notes = {"volumeMounts": [{"name": "notes", "mountPath": "/notes"}]}
    ended = "trap 'echo {} ended >> /notes/said; exit' TERM; sleep 1000 & wait"
    namespace.apply(pods.pod(
        "leaving",
        pods.container("worker", ended.format("worker"), **notes, lifecycle={"preStop": {
            "httpGet": {"path": "/cgi-bin/drain?timeout=5", "port": 8081}}}),
        pods.container("front", ended.format("front"), **notes, lifecycle={"preStop": {
            "sleep": {"seconds": 2}}}),
        initContainers=[
            pods.container("agent", DRAIN, restartPolicy="Always", **notes, startupProbe={
                "tcpSocket": {"port": 8081}, "periodSeconds": 1}),
            pods.container("last", ended.format("last"), restartPolicy="Always", **notes)],
        volumes=[{"name": "notes", "persistentVolumeClaim": {"claimName": "notes"}}],
        terminationGracePeriodSeconds=30))
    namespace.wait("pod/leaving", "Ready")
    began = time.monotonic()
    namespace.kubectl("delete", "pod", "leaving")
    assert 2 <= time.monotonic() - began < 25
    assert (tmp_path / "said").read_text().splitlines() == [
        "drained timeout=5", "worker ended", "front ended", "last ended"]


def test_a_pod_with_a_readiness_gate_waits_for_its_condition(namespace):
    gate = "sightline.dev/routable"
    namespace.apply(pods.pod("gated", pods.server(), readinessGates=[{"conditionType": gate}]))
    namespace.wait("pod/gated", "ContainersReady")
    ready = namespace.get("pod", "gated")["status"]["conditions"]
    assert {c["type"]: c["status"] for c in ready}["Ready"] == "False"
    namespace.kubectl("patch", "pod", "gated", "--subresource=status", "-p", json.dumps(
        {"status": {"conditions": [{"type": gate, "status": "True"}]}}))
    namespace.wait("pod/gated", "Ready")


def test_a_disruption_budget_refuses_an_eviction_of_too_many_pods(namespace):
    namespace.apply(pods.deployment("web", 2, pods.server()), {
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "web"},
        "spec": {"minAvailable": 2, "selector": {"matchLabels": {"app": "web"}}}})
    namespace.wait("deployment/web", "Available")
    namespace.wait("pdb/web", "jsonpath={.status.currentHealthy}=2")
    name = namespace.get("pods")["items"][0]["metadata"]["name"]
    status, _, errors = pods.evict(namespace, name)
    assert (status, "disruption budget" in errors) == (1, True), errors
    namespace.kubectl("scale", "deployment/web", "--replicas=3")
    namespace.wait("pdb/web", "jsonpath={.status.disruptionsAllowed}=1")
    status, _, errors = pods.evict(namespace, name)
    assert status == 0, errors
    namespace.wait(f"pod/{name}", "delete")


def test_no_pull_policy_pulls_a_missing_image(namespace):
    namespace.apply(pods.pod("never", pods.container("a", imagePullPolicy="Never")),
                    pods.pod("absent", pods.container("a", imagePullPolicy="IfNotPresent")),
                    pods.pod("unknown", pods.container("a", image="unknown:testbed")))
    namespace.wait(["pod/never", "pod/absent"], "Ready")
    namespace.wait("pod/unknown", "jsonpath={.status.containerStatuses[0].state.waiting.reason}="
                                  "ErrImageNeverPull")


def test_a_pod_uses_the_api_with_its_own_token(namespace):
    namespace.apply(pods.pod("client"))
    namespace.wait("pod/client", "Ready")
    url = f"https://kubernetes.default.svc/api/v1/namespaces/{namespace.name}/pods"
    script = (f'curl -sS -m 10 --cacert {TOKEN}/ca.crt -w "%{{http_code}}" -o /dev/null '
              f'-H "authorization: Bearer $(cat {TOKEN}/token)" {url}')
    assert namespace.exec("client", "sh", "-c", script) == "403"
    namespace.kubectl("create", "rolebinding", "sees", "--clusterrole=view",
                      f"--serviceaccount={namespace.name}:default")
    namespace.until(lambda: namespace.exec("client", "sh", "-c", script) == "200",
                    "the pod may list pods")


def test_a_container_above_its_memory_limit_is_killed(namespace):
    namespace.apply(pods.pod(
        "greedy", pods.container("greedy", "tail /dev/zero",
                                 resources={"limits": {"memory": "32Mi"}}), restartPolicy="Never"))
    namespace.wait("pod/greedy", "jsonpath={.status.containerStatuses[0].state.terminated.reason}="
                                 "OOMKilled")


def test_helm_installs_into_the_namespace(namespace, tmp_path):
    (tmp_path / "templates").mkdir()
    (tmp_path / "Chart.yaml").write_text("apiVersion: v2\nname: small\nversion: 1.0.0\n")
    (tmp_path / "templates/pod.yaml").write_text(json.dumps(pods.pod("charted")))
    namespace.helm("install", "small", str(tmp_path), "--wait", "--timeout", "60s")
    assert namespace.get("pod", "charted")["status"]["phase"] == "Running"
    assert json.loads(namespace.helm("list", "-o", "json"))[0]["status"] == "deployed"


@pytest.mark.parametrize("kind", ["containers", "initContainers"])
def test_a_small_machine_reduces_the_requests_of_pods(namespace, kind):
    greedy = pods.container("greedy", "true", resources={
        "requests": {"cpu": "64", "memory": "500Gi"}, "limits": {"memory": "900Gi"}})
    namespace.apply(pods.pod("greedy", *[greedy] if kind == "containers" else [],
                             **{kind: [greedy]}, restartPolicy="Never"))
    phase = "Succeeded" if kind == "containers" else "Running"
    namespace.wait("pod/greedy", f"jsonpath={{.status.phase}}={phase}")
    asked = namespace.get("pod", "greedy")["spec"][kind][0]["resources"]
    assert asked == {"requests": {"cpu": "1m", "memory": "1Mi"}, "limits": {"memory": "900Gi"}}


def test_pods_can_choose_fake_nodes_beside_the_real_one(namespace):
    namespace.apply(
        pods.pod("real", pods.container("a", image="unknown:testbed")),
        pods.pod("fake", pods.container("a", image="unknown:testbed"),
                 nodeSelector={"type": "kwok"},
                 tolerations=[{"key": "testbed/fake", "operator": "Exists"}]))
    namespace.wait("pod/fake", "Ready")
    assert namespace.get("pod", "fake")["spec"]["nodeName"].startswith("fake-")
    assert namespace.get("pod", "real")["spec"]["nodeName"] == "real-0"
