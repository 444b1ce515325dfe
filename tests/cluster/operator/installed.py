# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""A router made by an installed operator, as the tests and its clients see it."""

import collections
import contextlib
import http.client
import json
import os
import pathlib
import re
import sys
import threading
import time

from testbed import installation, network, pods

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "hack"))

from pictures import image_part, png, text_part  # noqa: E402

BUILD = pathlib.Path(os.environ.get("SL_BUILD", ROOT / "build/release")).resolve()
MODEL = "tiny-qwen2-vl"

# Pods may take this long to start on a busy machine.
READY_S = 600
PORT, ADMIN_PORT = 8000, 9090
SYSTEM = installation.SYSTEM
OPERATOR = "deployment/sightline-operator"
ROLLING = {"rollout": {"maxSurge": 1, "maxUnavailable": 0}}
# Kubernetes makes these in each namespace.
OF_EVERY_NAMESPACE = {"configmap/kube-root-ca.crt", "serviceaccount/default"}


def router(spec=None):
    return {"apiVersion": "sightline.dev/v1alpha1", "kind": "MultimodalRouter",
            "metadata": {"name": "demo"}, "spec": {
                "model": {"name": "demo", "source": {"pvc": {"claimName": "models"}}},
                "pools": [{"name": "engines", "backend": "simulator", "replicas": 2,
                           "template": {}}]} | (spec or {})}


Answer = collections.namedtuple("Answer", "code overlap worker at")


def address_of(home):
    """Returns the address of the client Service."""
    return home.get("service", "demo")["spec"]["clusterIP"]


def exchange(home, address, port, method, path, body=None):
    """Sends a request. Returns (answer, its body)."""
    with network.inside(home.bed):
        connection = http.client.HTTPConnection(address, port, timeout=30)
        with contextlib.closing(connection):
            connection.request(method, path, body, {"content-type": "application/json"})
            answer = connection.getresponse()
            return answer, answer.read()


def wait_until_answered(home):
    """Waits until the client Service answers. A node applies changes of a Service with a delay."""
    def is_answered():
        with contextlib.suppress(OSError, http.client.HTTPException):
            return exchange(home, address_of(home), PORT, "GET", "/health")[0].status == 200

    home.until(is_answered, "its Service answers", READY_S)


def wait_until_serves(home):
    """Waits until the router is Ready and its client Service answers."""
    home.wait("mmr/demo", "Ready", READY_S)
    wait_until_answered(home)


def picture(seed):
    """Returns the body of a question about an image."""
    parts = [image_part(png(448, 448, seed=seed)), text_part("What is shown?")]
    return json.dumps({"model": "demo", "max_tokens": 4,
                       "messages": [{"role": "user", "content": parts}]})


def send(home, address, body):
    """Sends a chat request. The code of a failed one includes the text of the error."""
    answer, said = exchange(home, address, PORT, "POST", "/v1/chat/completions", body)
    code = answer.status if answer.status == 200 else f"{answer.status} {said.decode()}"
    return Answer(code, answer.getheader("x-sightline-overlap", ""),
                  answer.getheader("x-sightline-worker", ""), time.monotonic())


def spread_pictures(home, workers, first=0):
    """Asks about new images until each worker has had one. Returns {seed: {its worker}}."""
    asked = {}

    def all_were_asked():
        seed = first + len(asked)
        answer = send(home, address_of(home), picture(seed))
        assert answer.code == 200
        assert seed > 0 or answer.overlap.startswith("0/"), answer
        asked[seed] = {answer.worker}
        return set.union(*asked.values()) == workers

    home.until(all_were_asked, f"{workers} have all had a picture")
    return asked


def ask(home, seed):
    """Asks about an image through the client Service. Returns (status, overlap as "X/Y")."""
    answer = send(home, address_of(home), picture(seed))
    return answer.code, answer.overlap


def admin(home, component):
    """Returns {pod: function of a path that reads its admin port}, without pods that end."""
    pods = home.get("pods", "-l", f"app.kubernetes.io/component={component}")["items"]

    def reader(address):
        return lambda path: exchange(home, address, ADMIN_PORT, "GET", path)[1].decode()

    return {pod["metadata"]["name"]: reader(pod["status"]["podIP"]) for pod in pods
            if "deletionTimestamp" not in pod["metadata"] and "podIP" in pod["status"]}


def metric(text, name):
    """Returns the sum over all label sets, or None if the metric is missing."""
    rows = re.findall(rf"^{name}(?:{{[^}}]*}})? (\S+)$", text, re.M)
    return sum(map(float, rows)) if rows else None


def status(home):
    return home.get("mmr", "demo").get("status", {})


def condition(home, kind):
    return next((f"{one['status']} {one['reason']}" for one in status(home).get("conditions", [])
                 if one["type"] == kind), None)


def says(home, kind, verdict, *words):
    """Whether a condition has this verdict ("False NameTaken"), and all words in its message."""
    return any(one["type"] == kind and f"{one['status']} {one['reason']}" == verdict
               and all(word in one["message"] for word in words)
               for one in status(home).get("conditions", []))


def names(home):
    """Returns kind/name of all objects in the namespace."""
    kinds = "all,configmap,secret,serviceaccount,pdb,networkpolicy,hpa,mmr,mmrp"
    listed = home.kubectl("get", kinds, "-o", "name").split()
    return {name.lower() for name in listed} - OF_EVERY_NAMESPACE


def evict(home, pod):
    """Evicts a pod like kubectl drain: again while the budget refuses, since it counts pods a
    moment after they are ready."""
    home.until(lambda: pods.evict(home, pod)[0] == 0, f"{pod} is evicted")


@contextlib.contextmanager
def away(operator):
    """Stops the operator for the duration of the block."""
    def scale(replicas):
        operator.kubectl("-n", SYSTEM, "scale", OPERATOR, f"--replicas={replicas}")

    scale(0)
    operator.kubectl("-n", SYSTEM, "wait", "--for=delete", "pod", "-l",
                     "app.kubernetes.io/name=sightline-operator", f"--timeout={READY_S}s")
    try:
        yield
    finally:
        scale(1)
        operator.kubectl("-n", SYSTEM, "rollout", "status", OPERATOR, f"--timeout={READY_S}s")


@contextlib.contextmanager
def client(home):
    """Sends requests without a pause, each on a new connection. Yields the list of answers. A
    failed request has the error in place of a status."""
    answers, is_over = [], threading.Event()
    address, bodies = address_of(home), [picture(seed) for seed in range(5)]

    def run():
        while not is_over.is_set():
            try:
                answer = send(home, address, bodies[len(answers) % len(bodies)])
            except (OSError, http.client.HTTPException) as error:
                answer = Answer(repr(error), "", "", time.monotonic())
            answers.append(answer)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield answers
    finally:
        is_over.set()
        thread.join()


def failed(answers):
    return [answer.code for answer in answers if answer.code != 200]
