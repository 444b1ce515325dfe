# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""A node that runs pods: containerd, kubelet, kube-proxy and cluster DNS, as the node `real-0`.

All these programs and the control plane run in a network namespace of the bed. containerd and the
kubelet also have a mount namespace. It removes their mounts when they end. Only one bed of a
machine can have this node at a time."""

import contextlib
import json
import os
import pathlib
import subprocess

from . import bed as beds
from . import dns, fake_nodes, images, mounts, processes, small_requests
from .api import Api, call
from .services import Service, ensure

NAME = "real-0"
LABEL = "type=real"
CLAIM = pathlib.Path("/run/sightline-testbed-pods")
# containerd's parent control group for containers, if the kubelet names no other.
CONTAINERS = "k8s.io"
# Directories of libcni and of the kubelet's device plugins. No setting changes them, so a tmpfs
# covers them. They must exist for that.
COVERED = (pathlib.Path("/var/lib/cni"), pathlib.Path("/var/lib/kubelet"))
CNI_PLUGINS = "/usr/lib/cni"
# In the mount namespace, /run is empty. The path is short, because Linux allows a socket 107 bytes.
SOCKET = images.SOCKET
KUBE_PROXY_HEALTH, KUBE_PROXY_METRICS, KUBELET_HEALTH = 10256, 10249, 10248

CONTAINERD = """\
version = 2
root = "{root}"
state = "/run/containerd"
disabled_plugins = ["io.containerd.internal.v1.opt"]
[grpc]
  address = "{socket}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause}"
  restrict_oom_score_adj = true
  disable_apparmor = true
  disable_hugetlb_controller = true
  tolerate_missing_hugetlb_controller = true
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "{snapshotter}"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{plugins}"
    conf_dir = "{networks}"
"""
# unshare makes the mounts private first, so later mounts are not visible outside. This script makes
# them shared, because the kubelet's mounts must reach the containers.
MOUNTS = """\
set -e
mount --make-rshared /
for place in /run /var/log {covered}; do mount -t tmpfs tmpfs "$place"; done
mkdir -p /run/containerd /run/netns
exec "$@"
"""


def claim(bed):
    """Makes this bed the machine's only bed with real pods."""
    if os.geteuid() != 0:
        raise beds.BedError("real pods need root; hack/testbed check says what else")
    try:
        CLAIM.symlink_to(bed.directory)
    except FileExistsError:
        other = owner()
        if other != bed.directory:
            raise beds.BedError(
                f"the test bed in {other} has real pods, and a machine runs one such at a time: "
                f"there, hack/testbed down --name {other.name}") from None


def release(bed):
    if owner() == bed.directory:
        for place in COVERED:
            with contextlib.suppress(OSError):
                place.rmdir()
        CLAIM.unlink(missing_ok=True)


def control_groups(bed):
    """Returns the control groups of all containers of the bed. containerd's notes name most of
    them, because containerd writes a note before it makes a group. On a busy machine, the group or
    a process of a removed container may remain without a note. This function finds these too."""
    notes = bed.directory / "containerd/io.containerd.grpc.v1.cri"
    noted = {note.name for kind in ("sandboxes", "containers") for note in (notes / kind).glob("*")}
    stray = set()
    if owner() == bed.directory:
        inside = processes.by_control_group(CONTAINERS)
        stray = {name for name in mounts.names_of_control_groups(CONTAINERS)
                 if all(mounts.are_of(pid, bed.directory) for pid in inside.get(name, []))}
    return [f"{CONTAINERS}/{name}" for name in noted | stray]


def owner():
    try:
        return pathlib.Path(os.readlink(CLAIM))
    except OSError:
        return None


def start(bed, programs):
    """Starts the programs that do not run. Returns the names of the started ones."""
    api = Api(bed)
    small_requests.apply(api)
    started = ensure(bed, _containerd(bed))
    images.load(bed, images.pause(), mount_namespace(bed))
    # These start together, because kube-proxy waits until the node exists.
    return started + ensure(bed, _kubelet(bed, programs, api), _kube_proxy(bed, programs),
                            dns.service(bed, programs))


def mount_namespace(bed):
    """Returns the beginning of a command that runs in the mount namespace of containerd and the
    kubelet."""
    inside = _mount_namespace_of_any(bed)
    if inside is None:
        raise beds.BedError(f"containerd of the test bed '{bed.name}' does not run: "
                            f"hack/testbed up --name {bed.name}")
    return inside


def _mount_namespace_of_any(bed):
    """Like mount_namespace(), but returns None if no process is in there. The namespace outlives
    containerd: pods and the kubelet stay inside."""
    for process in sorted(processes.of_bed(bed.directory), key=_is_not_containerd):
        with contextlib.suppress(OSError):
            theirs = f"/proc/{process.pid}/ns/mnt"
            if os.readlink(theirs) != os.readlink("/proc/self/ns/mnt"):
                return ["nsenter", f"--mount={theirs}", "--"]
    return None


def _is_not_containerd(process):
    return process.executable != "containerd"


def _containerd(bed):
    for place in COVERED:
        place.mkdir(parents=True, exist_ok=True)
    networks = bed.directory / "networks"
    config = bed.directory / "containerd.toml"
    beds.write_whole(config, CONTAINERD.format(
        root=bed.directory / "containerd", socket=SOCKET, pause=images.PAUSE,
        plugins=CNI_PLUGINS, networks=networks, snapshotter=images.snapshotter(bed)))
    # Each pod has its own link. On a bridge, the answer of a neighbour behind a Service would
    # bypass the address translation, unless the kernel filters bridges.
    beds.write_whole(networks / "10-testbed.conflist", json.dumps({
        "cniVersion": "0.4.0", "name": "testbed", "plugins": [{
            "type": "ptp",
            "ipam": {"type": "host-local", "ranges": [[{"subnet": beds.REAL_POD_CIDR}]],
                     "dataDir": str(bed.directory / "addresses"),
                     "routes": [{"dst": "0.0.0.0/0"}]}}]}))
    inside = _mount_namespace_of_any(bed)
    new = ["unshare", "--mount", "--propagation", "private", "--", "sh", "-c",
           MOUNTS.format(covered=" ".join(map(str, COVERED))), "sh"]
    return Service("containerd", [
        *(inside or new), "containerd", "--config", config, "--log-level", "warn",
    ], lambda: _answers(bed))


def _answers(bed):
    if processes.find(bed.directory, "containerd") is None:
        return False
    command = [*mount_namespace(bed), "ctr", "--address", SOCKET, "version"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def _kube_proxy(bed, programs):
    config = bed.directory / "kube-proxy.json"
    beds.write_whole(config, json.dumps({
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "kind": "KubeProxyConfiguration",
        "clientConnection": {"kubeconfig": str(bed.pki / "kube-proxy.kubeconfig")},
        "mode": "nftables", "hostnameOverride": NAME, "clusterCIDR": beds.REAL_POD_CIDR,
        # With the default of one second, a Service finds a Ready pod only after this time.
        "nftables": {"minSyncPeriod": "100ms"}, "conntrack": {"maxPerCore": 0},
        "healthzBindAddress": f"{beds.NODE_IP}:{KUBE_PROXY_HEALTH}",
        "metricsBindAddress": f"127.0.0.1:{KUBE_PROXY_METRICS}"}))
    # The health endpoint on the node's address also depends on, for example, the API server.
    return Service("kube-proxy", [programs["kube-proxy"], "--config", config],
                   lambda: call(f"http://127.0.0.1:{KUBE_PROXY_METRICS}/healthz")[0] == 200)


def _kubelet(bed, programs, api):
    config = bed.directory / "kubelet.json"
    beds.write_whole(config, json.dumps(_kubelet_configuration(bed)))
    return Service("kubelet", [
        *mount_namespace(bed), programs["kubelet"], "--config", config,
        "--kubeconfig", bed.pki / "kubelet.kubeconfig", "--root-dir", bed.directory / "kubelet",
        "--hostname-override", NAME, "--node-ip", beds.NODE_IP, "--node-labels", LABEL,
    ], lambda: call(f"http://127.0.0.1:{KUBELET_HEALTH}/healthz")[0] == 200 and _is_node_ready(api))


def _is_node_ready(api):
    node = api.get(f"/api/v1/nodes/{NAME}")
    return node is not None and fake_nodes.is_ready(node)


def _kubelet_configuration(bed):
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
        "containerRuntimeEndpoint": f"unix://{SOCKET}",
        "authentication": {
            "anonymous": {"enabled": False}, "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(bed.pki / "ca.crt")}},
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": str(bed.pki / "kubelet-serving.crt"),
        "tlsPrivateKeyFile": str(bed.pki / "kubelet-serving.key"),
        "healthzPort": KUBELET_HEALTH, "clusterDNS": [beds.NODE_IP], "clusterDomain": dns.DOMAIN,
        # With these, containerd names the control groups of pods, and control_groups() finds them.
        "cgroupDriver": "cgroupfs", "cgroupsPerQOS": False, "enforceNodeAllocatable": [],
        # The bed ignores the machine's own limits.
        "failCgroupV1": False, "failSwapOn": False, "oomScoreAdj": 0,
        "evictionHard": {"memory.available": "0%", "nodefs.available": "0%",
                         "imagefs.available": "0%", "nodefs.inodesFree": "0%"},
        "imageGCHighThresholdPercent": 100, "makeIPTablesUtilChains": False, "resolvConf": "",
        "podLogsDir": str(bed.logs / "pods"),
        "volumePluginDir": str(bed.directory / "volume-plugins"),
    }
