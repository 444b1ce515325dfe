# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""hack/testbed up, down and shell, with fake nodes."""

import json
import os
import pathlib
import signal
import subprocess

import pytest

from testbed import processes

PROGRAMS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok")


def deployment(name, replicas=3, annotations=None):
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": {
            "metadata": {"labels": labels, "annotations": annotations or {}},
            "spec": {"containers": [{"name": "main", "image": "nothing"}]}}}}


def pod(name, annotations):
    return {"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "annotations": annotations},
            "spec": {"containers": [{"name": "main", "image": "nothing"}]}}


def kill(commands, program):
    process = processes.find(commands.directory, program)
    os.kill(process.pid, signal.SIGKILL)
    return process


def test_a_deployment_becomes_available_on_fake_nodes(bed):
    bed.apply(deployment("web"))
    bed.kubectl("wait", "--for=condition=Available", "deployment/web", "--timeout=60s")
    pods = bed.get("pods", "-l", "app=web")["items"]
    assert {p["spec"]["nodeName"] for p in pods} <= {"fake-0", "fake-1", "fake-2"}
    assert all(p["status"]["podIP"].startswith("10.244.") for p in pods)


def test_annotations_set_the_state_of_a_fake_pod(bed, wait_for):
    bed.apply(pod("ends", {"testbed/run": "complete"}), pod("breaks", {"testbed/run": "crash"}),
              pod("waits", {"testbed/ready-after": "1h"}), pod("runs", {}))
    bed.kubectl("wait", "--for=condition=Ready", "pod/runs", "--timeout=60s")
    bed.kubectl("wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/ends", "--timeout=60s")
    broken = wait_for(lambda: bed.get("pod", "breaks")["status"].get("containerStatuses"))[0]
    assert broken["state"]["waiting"]["reason"] == "CrashLoopBackOff"
    assert broken["lastState"]["terminated"]["reason"] == "OOMKilled"
    assert bed.get("pod", "waits")["status"]["phase"] == "Pending"


def test_up_again_starts_nothing(bed):
    before = {p.pid for p in processes.of_bed(bed.directory)}
    assert "nothing had to be started" in bed.up()
    assert {p.pid for p in processes.of_bed(bed.directory)} == before


@pytest.mark.parametrize("program", PROGRAMS)
def test_up_restarts_a_killed_program_and_keeps_the_data(bed, program, wait_for):
    name = f"kept-{program}"
    bed.kubectl("create", "configmap", name)
    killed = kill(bed, program)
    wait_for(lambda: not killed.is_alive())
    assert f"started {program} (" in bed.up()
    assert bed.get("configmap", name)["metadata"]["name"] == name


def test_shell_sets_up_kubectl_and_helm_for_the_bed(bed):
    assert "fake-2" in bed.kubectl("get", "nodes")
    status, output, errors = bed.run("shell", "helm", "list", "--output", "json")
    assert (status, json.loads(output)) == (0, []), errors


def test_the_audit_log_has_all_writers_but_the_administrator(bed, wait_for):
    bed.kubectl("create", "serviceaccount", "writer")
    bed.kubectl("create", "clusterrolebinding", "writer", "--clusterrole=cluster-admin",
                "--serviceaccount=default:writer")
    token = bed.kubectl("create", "token", "writer").strip()
    config = bed.directory / "writer.kubeconfig"
    text = json.loads(bed.bed.kubeconfig.read_text())
    text["users"][0]["user"] = {"token": token}
    config.write_text(json.dumps(text))
    bed.kubectl("--kubeconfig", str(config), "create", "configmap", "audited")
    bed.kubectl("create", "configmap", "not-audited")

    def events():
        lines = bed.bed.audit_log.read_text().splitlines(keepends=True)
        return [json.loads(line) for line in lines if line.endswith("\n")]

    wait_for(lambda: any((e.get("objectRef") or {}).get("name") == "audited" for e in events()))
    assert {e["user"]["username"] for e in events()} == {"system:serviceaccount:default:writer"}


def test_two_beds_run_side_by_side(make_bed):
    first, second = make_bed("test-first"), make_bed("test-second")
    ups = [commands.begin("up") for commands in (first, second)]
    for process in ups:
        _, errors = process.communicate()
        assert process.returncode == 0, errors
    first.kubectl("create", "configmap", "mine")
    assert [c["metadata"]["name"] for c in second.get("configmaps")["items"]] == [
        "kube-root-ca.crt"]
    first.down()
    assert "fake-0" in second.kubectl("get", "nodes")


def test_down_after_all_was_killed_keeps_only_the_requested_logs(make_bed, traces_of, tmp_path):
    commands = make_bed("test-killed")
    commands.up()
    for process in processes.of_bed(commands.directory):
        os.kill(process.pid, signal.SIGKILL)
    assert traces_of(commands)
    assert "is gone" in commands.must("down", "--keep-logs", tmp_path)
    assert traces_of(commands) == []
    assert {f"{program}.log" for program in PROGRAMS} <= {f.name for f in tmp_path.iterdir()}


def kill_up_at(commands, moment, wait_for):
    up = commands.begin("up")
    wait_for(lambda: (commands.directory / moment).exists()
             or processes.find(commands.directory, moment))
    up.kill()
    up.communicate()


@pytest.mark.parametrize("moment", ["pki.part", "bed.json", "etcd", "kube-apiserver", "kwok"])
def test_down_after_up_was_killed_leaves_nothing(make_bed, moment, traces_of, wait_for):
    commands = make_bed("test-cut")
    kill_up_at(commands, moment, wait_for)
    commands.down()
    assert traces_of(commands) == []


def test_up_continues_where_it_was_killed(make_bed, wait_for):
    commands = make_bed("test-cut")
    kill_up_at(commands, "kube-apiserver", wait_for)
    assert "etcd" not in commands.up().splitlines()[1]
    assert "fake-0" in commands.kubectl("get", "nodes")


def test_down_without_a_bed_reports_it(make_bed):
    assert "There was nothing" in make_bed("test-none").down()


def test_shell_without_a_bed_names_the_command_for_one(make_bed):
    status, _, errors = make_bed("test-none").run("shell", "true")
    assert (status, "hack/testbed up --name test-none" in errors) == (1, True), errors


@pytest.mark.parametrize("name", ["", "..", "a/b", "Upper", "a" * 21, "-a"])
def test_an_invalid_name_of_a_bed_is_refused(name):
    command = pathlib.Path(__file__).resolve().parents[3] / "hack/testbed"
    answer = subprocess.run([command, "down", f"--name={name}"], capture_output=True, text=True,
                            check=False)
    assert (answer.returncode, "is no name for a test bed" in answer.stderr) == (1, True)
