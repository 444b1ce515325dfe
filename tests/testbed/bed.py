# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""One test bed: its name, its directory below build/testbed, its ports and its options."""

import hashlib
import json
import os
import pathlib
import re
import socket

from . import cache

ROOT = pathlib.Path(__file__).resolve().parents[2]
BEDS = ROOT / "build/testbed"
# The longest path below a bed is a unix socket, and Linux allows it 107 bytes.
NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,18}[a-z0-9])?")

# Linux gives ports from 32768 on to connections and to listeners on port 0. This range is below.
# Each bed has a block of ports. The search for a block begins elsewhere for each directory, because
# clones do not see each other's beds.
FIRST_PORT, PORTS, BLOCK = 20000, 10000, 10
PORT_NAMES = ("etcd", "etcd-peer", "kube-apiserver", "kube-controller-manager", "kube-scheduler",
              "kwok")

# Addresses inside each bed.
SERVICE_CIDR, API_SERVICE_IP = "10.96.0.0/16", "10.96.0.1"
FAKE_POD_CIDR, REAL_POD_CIDR = "10.244.0.0/16", "10.251.0.0/24"
# The address of the bridge that replaces a machine's network in a bed with real pods.
NODE_IP = "10.250.0.1"


class BedError(RuntimeError):
    """An error whose text names the problem and the fix for the user."""


class Bed:
    def __init__(self, name="default", beds=BEDS):
        if not NAME.fullmatch(name):
            raise BedError(f"'{name}' is no name for a test bed: up to 20 of a-z, 0-9 and '-'")
        self.name = name
        self.directory = pathlib.Path(beds).resolve() / name
        self.pki = self.directory / "pki"
        self.logs = self.directory / "logs"
        self.bin = self.directory / "bin"
        self.audit_log = self.logs / "audit.log"
        self._state = self.directory / "bed.json"
        self.ports = {}
        self.with_pods = False
        self.read()

    def read(self):
        """Reads the state that an earlier `up` has written. Returns False without one."""
        if not self._state.exists():
            return False
        state = json.loads(self._state.read_text(encoding="utf-8"))
        self.ports, self.with_pods = state["ports"], state["with_pods"]
        return True

    def write(self):
        write_whole(self._state, json.dumps(
            {"name": self.name, "ports": self.ports, "with_pods": self.with_pods}, indent=1))

    @property
    def kubeconfig(self):
        """The kubeconfig of the bed's administrator."""
        return self.pki / "admin.kubeconfig"

    @property
    def server(self):
        return f"https://127.0.0.1:{self.ports['kube-apiserver']}"

    @property
    def network_namespace(self):
        """The file of the network namespace of a bed with real pods. All its programs and their
        clients run in there. The file keeps the namespace alive without a process."""
        return self.directory / "network"

    @property
    def lock_file(self):
        return self.directory.with_name(f"{self.name}.lock")

    def lock(self):
        return cache.file_lock(self.lock_file, f"works on the test bed '{self.name}'")

    def environment(self):
        """Returns the environment of programs that use this bed."""
        return os.environ | {
            "KUBECONFIG": str(self.kubeconfig),
            # Beds use ports again, so kubectl's cache about a server must go with the bed.
            "KUBECACHEDIR": str(self.directory / "kubectl-cache"),
            "PATH": f"{self.bin}:{os.environ.get('PATH', os.defpath)}"}

    def command(self, arguments):
        """Returns the command that runs these arguments in the bed's network."""
        if not self.with_pods:
            return [str(a) for a in arguments]
        return ["nsenter", f"--net={self.network_namespace}", "--", *map(str, arguments)]

    def choose_ports(self):
        """Chooses free ports, and reserves them for this bed by writing its state."""
        with cache.file_lock(cache.directory() / "ports.lock", "chooses ports"):
            taken = {port for state in self.directory.parent.glob("*/bed.json")
                     for port in json.loads(state.read_text(encoding="utf-8"))["ports"].values()}
            blocks = PORTS // BLOCK
            start = int(hashlib.sha256(str(self.directory).encode()).hexdigest(), 16)
            for i in range(blocks):
                first = FIRST_PORT + (start + i) % blocks * BLOCK
                block = range(first, first + BLOCK)
                if taken.isdisjoint(block) and all(map(is_free, block)):
                    self.ports = dict(zip(PORT_NAMES, block))
                    self.write()
                    return
        raise BedError(f"no {BLOCK} ports in a row are free from {FIRST_PORT} to "
                       f"{FIRST_PORT + PORTS - 1}: take test beds down, see build/testbed")


def is_free(port):
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def write_whole(path, text, mode=0o644):
    """Writes a file. After a crash it has its old or its new content."""
    part = path.with_name(path.name + ".part")
    part.parent.mkdir(parents=True, exist_ok=True)
    part.write_text(text, encoding="utf-8")
    part.chmod(mode)
    os.rename(part, path)


def all_beds(beds=BEDS):
    return [Bed(file.parent.name, beds) for file in sorted(pathlib.Path(beds).glob("*/bed.json"))]
