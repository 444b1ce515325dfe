# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""A namespace of a running bed for one test, with what a test does in it.

    with Namespace(bed, "routes") as namespace:
        namespace.apply(pod("web"), service("web"))
        namespace.wait("pod/web", "Ready")

What is in it goes with it. While a test fails, `describe_all()` says what happened there."""

import contextlib
import itertools
import json
import os
import re
import shutil
import socket
import subprocess
import time

from . import network
from .api import Api
from .resources import Resources

WAIT_S = 60
POLL_S = 0.2
PAUSE_PER_LOOK = 2  # times as long as the look took
LOG_LINES = 40
PODS_SHOWN = 12
RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}

# Of several that run tests in one bed, as pytest-xdist names them.
PROCESS = os.environ.get("PYTEST_XDIST_WORKER", "")

_numbers = itertools.count(1)
_alive = []


def describe_all():
    """[(title, text)] of all namespaces that are there, of this process."""
    return [(f"namespace {one.name}", one.describe()) for one in _alive]


class Namespace:
    def __init__(self, bed, title, labels=None):
        """`title` may be any words, such as a test's name."""
        words = re.sub(r"[^a-z0-9]+", "-", title.lower().removeprefix("test_")).strip("-")
        self.name = f"{words[:30].strip('-')}-{PROCESS}{next(_numbers)}"
        self.bed = bed
        self._resources = Resources(bed, self.name)
        self._labels = labels or {}
        self._volumes = []

    def __enter__(self):
        _alive.append(self)
        self.apply({"apiVersion": "v1", "kind": "Namespace",
                    "metadata": {"name": self.name, "labels": self._labels}})
        # Until then, pods are refused.
        self.until(lambda: self.read("/serviceaccounts/default"), "it has its service account")
        return self

    def __exit__(self, *_):
        _alive.remove(self)
        # Pods first, as their graces may be long; nobody waits for the rest of the clearing up. A
        # test may have ended the bed.
        with contextlib.suppress(AssertionError):
            self._resources.delete("pods", grace_s=1)
            self._resources.delete("namespace", self.name)
            for volume in self._volumes:
                self._resources.delete("persistentvolume", volume)

    def begin(self, program, *arguments, **options):
        """kubectl or helm in this namespace, or anything else that takes -n, as a process that goes
        on; it sees the bed's network."""
        command = self.bed.command([shutil.which(program, path=self.bed.bin) or program,
                                    "-n", self.name, *arguments])
        return subprocess.Popen(command, env=self.bed.environment(), text=True, **options)

    def _run(self, program, arguments, given=None):
        process = self.begin(program, *arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE)
        output, errors = process.communicate(None if given is None else json.dumps(given))
        return process.returncode, output, errors

    def _must(self, program, arguments, given=None):
        status, output, errors = self._run(program, arguments, given)
        if status != 0:
            raise AssertionError(f"{program} {' '.join(map(str, arguments))}: {errors or output}")
        return output

    def try_kubectl(self, *arguments, given=None):
        """(status, output, errors). `given`, an object, is its standard input."""
        return self._run("kubectl", arguments, given)

    def kubectl(self, *arguments, given=None):
        """Its output. An error unless it ends well."""
        return self._must("kubectl", arguments, given)

    def helm(self, *arguments):
        return self._must("helm", arguments)

    def apply(self, *things):
        for thing in things:
            self._resources.apply(thing)

    def get(self, *arguments):
        """The object or list, as `kubectl get`. A plain question ("pods", "pod", "web" or "pods",
        "-l", "app=web") takes no kubectl: most are asked many times."""
        match arguments:
            case (str(kind),) if kind.isalpha():
                return self._resources.get(kind)
            case (str(kind), "-l", str(labels)) if kind.isalpha():
                return self._resources.get(kind, labels=labels)
            case (str(kind), str(name)) if kind.isalpha():
                return self._resources.get(kind, name)
        return json.loads(self.kubectl("get", "-o", "json", *arguments))

    def read(self, path):
        """As get(), at once and by the core API's path below this namespace; None if there is
        none."""
        with network.inside(self.bed):
            return Api(self.bed).get(f"/api/v1/namespaces/{self.name}{path}")

    def wait(self, resource, condition, seconds=WAIT_S):
        """Until it has the condition ("Ready"), or what else `kubectl wait --for` knows
        ("delete", "jsonpath=…")."""
        if re.fullmatch("[A-Z][A-Za-z]*", condition):
            condition = f"condition={condition}"
        names = resource if isinstance(resource, (list, tuple)) else [resource]
        self.kubectl("wait", f"--for={condition}", f"--timeout={seconds}s", *names)

    def until(self, is_so, what, seconds=WAIT_S):
        """The first true value of is_so()."""
        deadline = time.monotonic() + seconds
        while True:
            began = time.monotonic()
            value = is_so()
            if value:
                return value
            if time.monotonic() > deadline:
                raise AssertionError(
                    f"in {self.name}, after {seconds} s it is not so that {what}: {value!r}")
            # A look that took long on a busy machine would otherwise be begun again almost without
            # a pause, and keep the machine busy.
            time.sleep(max(POLL_S, PAUSE_PER_LOOK * (time.monotonic() - began)))

    def exec(self, pod, *command):
        """What the command says in the pod (NAME, or NAME -c CONTAINER)."""
        return self.kubectl("exec", *pod.split(), "--", *command)

    @contextlib.contextmanager
    def forward(self, resource, port):
        """A connection to the port of a pod or Service through the API server, as by
        kubectl port-forward."""
        process = self.begin("kubectl", "port-forward", resource, f":{port}",
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        try:
            line = process.stdout.readline()
            match = re.match(r"Forwarding from 127\.0\.0\.1:(\d+)", line)
            if match is None:
                raise AssertionError(f"kubectl port-forward {resource}: {line}")
            place = ("127.0.0.1", int(match[1]))
            with network.inside(self.bed):
                connection = socket.create_connection(place, timeout=WAIT_S)
            with connection:
                yield connection
        finally:
            process.kill()
            process.communicate()

    def mount_directory(self, claim, directory):
        """A claim by which pods mount a directory of this machine, which pods that may not name a
        path themselves can do. /run and /var/log are not the machine's there."""
        volume = f"{self.name}-{claim}"
        self._volumes.append(volume)
        modes, storage = ["ReadWriteMany"], {"storage": "1Gi"}
        self.apply(
            {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": volume},
             "spec": {"accessModes": modes, "capacity": storage, "storageClassName": "",
                      "hostPath": {"path": str(directory), "type": "Directory"},
                      "claimRef": {"namespace": self.name, "name": claim}}},
            {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": claim},
             "spec": {"accessModes": modes, "storageClassName": "", "volumeName": volume,
                      "resources": {"requests": storage}}})

    def describe(self):
        """What is there, what happened and what the pods said."""
        parts = [self._said("get", "all,pvc,pdb", "-o", "wide"),
                 self._said("get", "events", "--sort-by=.metadata.creationTimestamp", "-o",
                            "custom-columns=AT:.metadata.creationTimestamp,WHY:.reason,"
                            "WHAT:.message,OF:.involvedObject.name")]
        pods = []
        with contextlib.suppress(AssertionError, ValueError):
            pods = [pod["metadata"]["name"] for pod in self.get("pods")["items"]]
        parts += [f"log of {pod}:\n" + self._said(
            "logs", pod, "--all-containers", "--prefix", "--ignore-errors",
            f"--tail={LOG_LINES}") for pod in pods[:PODS_SHOWN]]
        return "\n".join(parts)

    def _said(self, *arguments):
        _, output, errors = self.try_kubectl(*arguments)
        return output + errors
