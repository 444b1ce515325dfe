# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Makes the keys, certificates and kubeconfigs of a bed with openssl, all or nothing."""

import json
import shutil
import subprocess

from . import bed as beds

DAYS = "3650"
# name -> subject. The name and organisation of the subject decide a program's permissions.
CLIENTS = {
    "admin": "/O=system:masters/CN=admin",
    "kwok": "/O=system:masters/CN=kwok",
    "kubelet-client": "/O=system:masters/CN=kube-apiserver",
    "front-proxy-client": "/CN=front-proxy-client",
    "kube-controller-manager": "/CN=system:kube-controller-manager",
    "kube-scheduler": "/CN=system:kube-scheduler",
    "kube-proxy": "/CN=system:kube-proxy",
    "coredns": "/O=system:masters/CN=coredns",
    "kubelet": "/O=system:nodes/CN=system:node:real-0",
}
SERVERS = {
    "kube-apiserver": f"IP:127.0.0.1,IP:{beds.API_SERVICE_IP},IP:{beds.NODE_IP},DNS:localhost,"
                      "DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc,"
                      "DNS:kubernetes.default.svc.cluster.local",
    "kubelet-serving": f"IP:{beds.NODE_IP},DNS:real-0",
}
WITH_KUBECONFIG = ("admin", "kwok", "kube-controller-manager", "kube-scheduler", "kube-proxy",
                   "coredns", "kubelet")


def make(bed):
    if bed.pki.exists():
        return
    part = bed.pki.with_name("pki.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True, mode=0o700)
    _certificate(part, "ca", "/CN=testbed-ca", [
        "-addext", "basicConstraints=critical,CA:TRUE",
        "-addext", "keyUsage=critical,keyCertSign,cRLSign,digitalSignature"])
    issued = ["-CA", str(part / "ca.crt"), "-CAkey", str(part / "ca.key")]
    for name, subject in CLIENTS.items():
        _certificate(part, name, subject, issued + _usage("clientAuth"))
    for name, alternatives in SERVERS.items():
        _certificate(part, name, f"/CN={name}", issued + _usage("serverAuth")
                     + ["-addext", f"subjectAltName={alternatives}"])
    _openssl("genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048",
             "-out", part / "service-accounts.key")
    _openssl("pkey", "-in", part / "service-accounts.key", "-pubout",
             "-out", part / "service-accounts.pub")
    for name in WITH_KUBECONFIG:
        text = json.dumps(_kubeconfig(bed, name), indent=1)
        beds.write_whole(part / f"{name}.kubeconfig", text, mode=0o600)
    part.rename(bed.pki)


def _usage(usage):
    return ["-addext", "basicConstraints=critical,CA:FALSE",
            "-addext", f"extendedKeyUsage={usage}"]


def _certificate(directory, name, subject, options):
    _openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
             "-days", DAYS, "-subj", subject, "-keyout", directory / f"{name}.key",
             "-out", directory / f"{name}.crt", *options)


def _openssl(*arguments):
    # The machine's own configuration would add extensions a second time, so this one has none.
    config = b"[req]\ndistinguished_name=dn\n[dn]\n"
    if arguments[0] == "req":
        arguments += ("-config", "/dev/stdin")
    answer = subprocess.run(["openssl", *map(str, arguments)], input=config, capture_output=True,
                            check=False)
    if answer.returncode != 0:
        raise beds.BedError(f"openssl {arguments[0]} failed:\n{answer.stderr.decode()}")


def _kubeconfig(bed, name):
    """Returns a kubeconfig in JSON, which is valid YAML."""
    return {
        "apiVersion": "v1", "kind": "Config", "current-context": f"testbed-{bed.name}",
        "clusters": [{"name": "testbed", "cluster": {
            "server": bed.server, "certificate-authority": str(bed.pki / "ca.crt")}}],
        "users": [{"name": name, "user": {
            "client-certificate": str(bed.pki / f"{name}.crt"),
            "client-key": str(bed.pki / f"{name}.key")}}],
        "contexts": [{"name": f"testbed-{bed.name}",
                      "context": {"cluster": "testbed", "user": name}}],
    }
