# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Runs the operator of the build tree as a process beside a bed, with the rights of config/default.
Tests can kill it at any point, and put a proxy between it and the API server."""

import json
import os
import signal
import subprocess

from .bed import ROOT, write_whole
from .installation import INSTALLED, SYSTEM

WORKLOADS = ("Deployment", "PodDisruptionBudget")
ACCOUNT, TOKEN_DURATION = "sightline-operator", "24h"
IMAGES = ("--router-image=sightline:testbed", "--nats-image=nats:testbed")
ENDS_S = 60


def install(commands):
    """Applies the kinds and the rights, but no workloads. `commands` is a Commands of the bed."""
    rendered = commands.kubectl("kustomize", ROOT / INSTALLED)
    rest = "---\n".join(document for document in rendered.split("---\n")
                        if not any(f"\nkind: {kind}\n" in f"\n{document}" for kind in WORKLOADS))
    commands.kubectl("apply", "--server-side", "-f", "-", given=rest)
    commands.kubectl("wait", "--for=condition=Established", "--timeout=60s", "crd", "--all")


def write_kubeconfig(commands, server, name="operator"):
    """Writes a kubeconfig of the operator's service account for this address, and returns it."""
    bed = commands.bed
    token = bed.pki / f"{name}.token"
    write_whole(token, commands.kubectl("-n", SYSTEM, "create", "token", ACCOUNT, "--duration",
                                        TOKEN_DURATION), mode=0o600)
    file = bed.pki / f"{name}.kubeconfig"
    write_whole(file, json.dumps({
        "apiVersion": "v1", "kind": "Config", "current-context": "bed",
        "clusters": [{"name": "bed", "cluster": {
            "server": server, "certificate-authority": str(bed.pki / "ca.crt")}}],
        "users": [{"name": "operator", "user": {"tokenFile": str(token)}}],
        "contexts": [{"name": "bed", "context": {"cluster": "bed", "user": "operator"}}]}))
    return file


class LocalOperator:
    """Runs one process at a time. All processes append to one log file."""

    def __init__(self, program, kubeconfig, log, *flags):
        self._command = [str(program), "--kubeconfig", str(kubeconfig), "--admin-host", "127.0.0.1",
                         "--admin-port", "0", "--lease-namespace", SYSTEM, *IMAGES, *flags]
        self.log = log
        self._process = None

    def start(self):
        with open(self.log, "ab") as log:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env={"PATH": os.defpath})
        return self

    def kill(self):
        """Kills the process without notice. It may have ended already."""
        self._process.send_signal(signal.SIGKILL)

    def wait(self):
        """Waits for its end and returns its status."""
        return self._process.wait(ENDS_S)

    def is_running(self):
        return self._process is not None and self._process.poll() is None

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        if self.is_running():
            self._process.terminate()
            try:
                self.wait()
            except subprocess.TimeoutExpired:
                self.kill()
                self.wait()
