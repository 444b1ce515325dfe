# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""A namespace of a running bed for one test, with the actions of a test in it.

    with Namespace(bed, "routes") as namespace:
        namespace.apply(pod("web"), service("web"))
        namespace.wait("pod/web", "Ready")

At its end, the namespace and its objects are deleted. After a failure, `describe_all()` returns the
state and events of the namespaces."""

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
PAUSE_PER_LOOK = 2  # times the duration of a look
LOG_LINES = 40
PODS_SHOWN = 12
RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}

# The name that pytest-xdist gives this process. Several processes may run tests in one bed.
PROCESS = os.environ.get("PYTEST_XDIST_WORKER", "")

_numbers = itertools.count(1)
_alive = []


def describe_all():
    """Returns [(title, text)] of all existing namespaces of this process."""
    return [(f"namespace {one.name}", one.describe()) for one in _alive]


class Namespace:
    def __init__(self, bed, title, labels=None):
        """`title` may be any text, for example the name of a test."""
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
        # The API server refuses pods until the service account exists.
        self.until(lambda: self.read("/serviceaccounts/default"), "it has its service account")
        return self

    def __exit__(self, *_):
        _alive.remove(self)
        # Deletes pods first, because their grace periods may be long, and waits for no deletion.
        # A test may have ended the bed.
        with contextlib.suppress(AssertionError):
            self._resources.delete("pods", grace_s=1)
            self._resources.delete("namespace", self.name)
            for volume in self._volumes:
                self._resources.delete("persistentvolume", volume)

    def begin(self, program, *arguments, **options):
        """Starts kubectl, helm or another program that takes -n in this namespace. It runs in the
        bed's network. Does not wait for its end."""
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
        """Runs kubectl and returns (status, output, errors). `given` is an object for its standard
        input."""
        return self._run("kubectl", arguments, given)

    def kubectl(self, *arguments, given=None):
        """Runs kubectl and returns its output. Raises an error unless the status is 0."""
        return self._must("kubectl", arguments, given)

    def helm(self, *arguments):
        return self._must("helm", arguments)

    def apply(self, *things):
        for thing in things:
            self._resources.apply(thing)

    def get(self, *arguments):
        """Returns the object or list that `kubectl get` prints. Calls like get("pods"),
        get("pod", "web") and get("pods", "-l", "app=web") need no kubectl, as tests repeat them."""
        match arguments:
            case (str(kind),) if kind.isalpha():
                return self._resources.get(kind)
            case (str(kind), "-l", str(labels)) if kind.isalpha():
                return self._resources.get(kind, labels=labels)
            case (str(kind), str(name)) if kind.isalpha():
                return self._resources.get(kind, name)
        return json.loads(self.kubectl("get", "-o", "json", *arguments))

    def read(self, path):
        """Like get(), but takes a path of the core API below this namespace, and needs no
        discovery. Returns None if the object does not exist."""
        with network.inside(self.bed):
            return Api(self.bed).get(f"/api/v1/namespaces/{self.name}{path}")

    def wait(self, resource, condition, seconds=WAIT_S):
        """Waits until the resource has the condition ("Ready"). `condition` may also be another
        value of `kubectl wait --for` ("delete", "jsonpath=…")."""
        if re.fullmatch("[A-Z][A-Za-z]*", condition):
            condition = f"condition={condition}"
        names = resource if isinstance(resource, (list, tuple)) else [resource]
        self.kubectl("wait", f"--for={condition}", f"--timeout={seconds}s", *names)

    def until(self, is_so, what, seconds=WAIT_S):
        """Waits for a true value of is_so() and returns it."""
        deadline = time.monotonic() + seconds
        while True:
            began = time.monotonic()
            value = is_so()
            if value:
                return value
            if time.monotonic() > deadline:
                raise AssertionError(
                    f"in {self.name}, after {seconds} s it is not so that {what}: {value!r}")
            # A slow look means a busy machine. A short pause would keep it busy.
            time.sleep(max(POLL_S, PAUSE_PER_LOOK * (time.monotonic() - began)))

    def exec(self, pod, *command):
        """Returns the output of the command in the pod (NAME, or NAME -c CONTAINER)."""
        return self.kubectl("exec", *pod.split(), "--", *command)

    @contextlib.contextmanager
    def forward(self, resource, port):
        """Connects to the port of a pod or Service with `kubectl port-forward`, through the API
        server."""
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
        """Makes a claim for a directory of this machine. With it, pods that may not use hostPath
        can mount the directory. On the node, /run and /var/log are not the machine's."""
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
        """Returns the namespace's objects, its events and the logs of its pods."""
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
