# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""The machine's bed with pods while its programs are killed, and what remains of it at the end."""

import contextlib
import os
import pathlib
import shutil
import signal

import pytest

from testbed import pods, processes, real_node
from testbed.bed import ROOT
from testbed.mounts import control_group_directories

BUILD = pathlib.Path(os.environ.get("SL_BUILD", ROOT / "build/release"))
pytestmark = pytest.mark.ends_pods

PROGRAMS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok",
            "containerd", "kube-proxy", "coredns", "kubelet")


def mounts():
    return set(pathlib.Path("/proc/self/mounts").read_text().splitlines())


def test_a_second_bed_with_pods_is_refused(pods_bed, make_bed, traces_of):
    second = make_bed("test-other-pods")
    status, _, errors = second.run("up", "--pods")
    assert (status, f"hack/testbed down --name {pods_bed.name}" in errors) == (1, True), errors
    assert traces_of(second) == []


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_killed_program_restarts_and_its_pods_keep_running(pods_bed, namespace, program):
    namespace.apply(pods.pod("web", pods.server()), pods.service("web"))
    namespace.wait("pod/web", "Ready")
    killed = processes.find(pods_bed.directory, program)
    os.kill(killed.pid, signal.SIGKILL)
    namespace.until(lambda: not killed.is_alive(), f"{program} is dead")
    assert f"started {program} (" in pods_bed.up()
    namespace.apply(pods.pod("client"))
    namespace.wait(["pod/web", "pod/client"], "Ready")
    assert pods.fetch(namespace, "client", "http://web/") == "web\n"
    web = namespace.get("pod", "web")["status"]["containerStatuses"][0]
    assert web["restartCount"] == 0


def test_down_after_everything_was_killed_leaves_nothing(
        pods_bed, namespace, traces_of, processes_in_network):
    namespace.apply(pods.pod("web", pods.server()))
    namespace.wait("pod/web", "Ready")
    bed = pods_bed.bed
    network = os.stat(bed.network_namespace).st_ino
    groups = real_node.control_groups(bed)
    assert groups
    for process in processes.of_bed(bed.directory) + processes.in_control_groups(groups):
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)
    assert traces_of(pods_bed)
    assert "is gone" in pods_bed.down()
    assert traces_of(pods_bed) == []
    assert processes_in_network(network) == []


def test_down_ends_a_container_that_containerd_does_not_know(
        pods_bed, make_namespace, traces_of, processes_in_network):
    pods_bed.up("--pods")
    pods_bed.must("images", "--build", BUILD)
    namespace = make_namespace()
    namespace.apply(pods.pod("web", pods.server()))
    namespace.wait("pod/web", "Ready")
    bed = pods_bed.bed
    network = os.stat(bed.network_namespace).st_ino
    web = namespace.get("pod", "web")["status"]["containerStatuses"][0]["containerID"]
    for name in ("kubelet", "containerd"):
        os.kill(processes.find(bed.directory, name).pid, signal.SIGKILL)
    shutil.rmtree(bed.directory / "containerd/io.containerd.grpc.v1.cri/containers"
                  / web.removeprefix("containerd://"))
    for place in control_group_directories(real_node.CONTAINERS):
        (place / "without-processes").mkdir()
    pods_bed.down()
    assert traces_of(pods_bed) == []
    assert processes_in_network(network) == []


@pytest.mark.parametrize("moment", ["network", "containerd", "kubelet"])
def test_down_after_up_was_killed_leaves_nothing(pods_bed, moment, traces_of, wait_for):
    pods_bed.down()
    before = mounts()
    up = pods_bed.begin("up", "--pods")
    wait_for(lambda: (pods_bed.directory / moment).is_file()
             or processes.find(pods_bed.directory, moment))
    up.kill()
    up.communicate()
    pods_bed.down()
    assert traces_of(pods_bed) == []
    assert mounts() <= before
