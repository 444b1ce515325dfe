# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""The control plane of a bed: etcd, API server, controllers, scheduler, and kwok for fake nodes."""

import json

from . import bed as beds
from . import fake_nodes
from .api import Api, anonymous_tls, call
from .services import Service, ensure, wait_until

# The audit log shows each writer, except the programs of the control plane and the administrator.
# For our own kinds it also has the written object, because tests follow its status.
AUDIT_POLICY = {
    "apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "None", "userGroups": [
            "system:masters", "system:nodes", "system:serviceaccounts:kube-system"]},
        {"level": "None", "users": [
            "system:apiserver", "system:kube-controller-manager", "system:kube-scheduler",
            "system:kube-proxy", "system:anonymous"]},
        {"level": "Request", "resources": [{"group": "sightline.dev"}]},
        {"level": "Metadata"},
    ],
}


def start(bed, programs):
    """Starts the programs that do not run, in order. Returns the names of the started ones."""
    beds.write_whole(bed.pki / "audit-policy.json", json.dumps(AUDIT_POLICY))
    fake_nodes.write_stages(bed)
    api = Api(bed)
    started = ensure(bed, _etcd(bed, programs))
    started += ensure(bed, _apiserver(bed, programs, api))
    started += ensure(bed, _controller_manager(bed, programs), _scheduler(bed, programs),
                      _kwok(bed, programs))
    fake_nodes.make(api, is_alone=not bed.with_pods)
    wait_until(lambda: api.get("/api/v1/namespaces/default/serviceaccounts/default"),
               "the namespace 'default' has its service account")
    wait_until(lambda: fake_nodes.are_ready(api), "the fake nodes are Ready")
    return started


def _is_healthy(url):
    tls = anonymous_tls() if url.startswith("https") else None
    return lambda: call(url, tls=tls)[0] == 200


def _etcd(bed, programs):
    clients = f"http://127.0.0.1:{bed.ports['etcd']}"
    peers = f"http://127.0.0.1:{bed.ports['etcd-peer']}"
    return Service("etcd", [
        programs["etcd"], "--data-dir", bed.directory / "etcd", "--name", "testbed",
        # A crash of the machine may lose the data. No test bed has to survive that.
        "--unsafe-no-fsync", "--log-level", "warn",
        "--listen-client-urls", clients, "--advertise-client-urls", clients,
        "--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers,
        "--initial-cluster", f"testbed={peers}",
    ], _is_healthy(f"{clients}/health"))


def _apiserver(bed, programs, api):
    pki = bed.pki
    return Service("kube-apiserver", [
        programs["kube-apiserver"], "--etcd-servers", f"http://127.0.0.1:{bed.ports['etcd']}",
        "--etcd-compaction-interval", "5m", "--secure-port", bed.ports["kube-apiserver"],
        *_addresses(bed),
        "--tls-cert-file", pki / "kube-apiserver.crt",
        "--tls-private-key-file", pki / "kube-apiserver.key", "--client-ca-file", pki / "ca.crt",
        "--service-account-key-file", pki / "service-accounts.pub",
        "--service-account-signing-key-file", pki / "service-accounts.key",
        "--service-account-issuer", "https://kubernetes.default.svc",
        "--service-cluster-ip-range", beds.SERVICE_CIDR, "--authorization-mode", "Node,RBAC",
        "--enable-admission-plugins", "NodeRestriction",
        # Without these flags, the controllers and the scheduler log an error every 20 seconds.
        "--requestheader-client-ca-file", pki / "ca.crt",
        "--requestheader-allowed-names", "front-proxy-client",
        "--requestheader-username-headers", "X-Remote-User",
        "--requestheader-group-headers", "X-Remote-Group",
        "--requestheader-extra-headers-prefix", "X-Remote-Extra-",
        "--proxy-client-cert-file", pki / "front-proxy-client.crt",
        "--proxy-client-key-file", pki / "front-proxy-client.key",
        "--kubelet-client-certificate", pki / "kubelet-client.crt",
        "--kubelet-client-key", pki / "kubelet-client.key",
        "--kubelet-certificate-authority", pki / "ca.crt",
        "--kubelet-preferred-address-types", "InternalIP", "--allow-privileged=true",
        "--audit-policy-file", pki / "audit-policy.json", "--audit-log-path", bed.audit_log,
        "--profiling=false",
    ], lambda: api.call("/readyz")[0] == 200)


def _addresses(bed):
    if not bed.with_pods:
        return ["--bind-address", "127.0.0.1", "--advertise-address", "127.0.0.1",
                "--endpoint-reconciler-type", "none"]
    # Pods reach the API server through its Service. A Service needs an address outside loopback.
    return ["--bind-address", "0.0.0.0", "--advertise-address", beds.NODE_IP,
            "--endpoint-reconciler-type", "lease"]


def _with_kubeconfig(bed, name):
    file = bed.pki / f"{name}.kubeconfig"
    return ["--bind-address", "127.0.0.1", "--secure-port", bed.ports[name],
            "--leader-elect=false", "--kubeconfig", file, "--authentication-kubeconfig", file,
            "--authorization-kubeconfig", file]


def _controller_manager(bed, programs):
    name = "kube-controller-manager"
    return Service(name, [
        programs[name], *_with_kubeconfig(bed, name), "--use-service-account-credentials=true",
        "--service-account-private-key-file", bed.pki / "service-accounts.key",
        "--root-ca-file", bed.pki / "ca.crt",
        # With the default of 20 requests a second, its controllers would wait for each other.
        "--kube-api-qps", "500", "--kube-api-burst", "1000",
        "--cluster-signing-cert-file", bed.pki / "ca.crt",
        "--cluster-signing-key-file", bed.pki / "ca.key",
    ], _is_healthy(f"https://127.0.0.1:{bed.ports[name]}/healthz"))


def _scheduler(bed, programs):
    name = "kube-scheduler"
    return Service(name, [programs[name], *_with_kubeconfig(bed, name)],
                   _is_healthy(f"https://127.0.0.1:{bed.ports[name]}/healthz"))


def _kwok(bed, programs):
    port = bed.ports["kwok"]
    return Service("kwok", [
        programs["kwok"], "--config", fake_nodes.stages_file(bed),
        "--kubeconfig", bed.pki / "kwok.kubeconfig", "--manage-all-nodes=false",
        "--manage-nodes-with-annotation-selector", fake_nodes.SELECTOR,
        "--node-lease-duration-seconds", "40", "--cidr", beds.FAKE_POD_CIDR,
        "--node-ip", "127.0.0.1", "--node-port", port, "--server-address", f"127.0.0.1:{port}",
    ], _is_healthy(f"http://127.0.0.1:{port}/healthz"))
