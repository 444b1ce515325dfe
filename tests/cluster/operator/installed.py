# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""A router made by an installed operator, as its tests and its clients see it."""

import contextlib
import http.client
import json
import os
import pathlib
import sys
import threading
import time

from testbed import network

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "hack"))

from pictures import image_part, png, text_part  # noqa: E402

BUILD = pathlib.Path(os.environ.get("SL_BUILD", ROOT / "build/release")).resolve()
MODEL = "tiny-qwen2-vl"
SYSTEM = "sightline-system"
READY_S = 180
ROLLING = {"rollout": {"maxSurge": 1, "maxUnavailable": 0}}
# What a namespace has by itself.
OF_EVERY_NAMESPACE = {"configmap/kube-root-ca.crt", "serviceaccount/default"}


def router(spec=None):
    return {"apiVersion": "sightline.dev/v1alpha1", "kind": "MultimodalRouter",
            "metadata": {"name": "demo"}, "spec": {
                "model": {"name": "demo", "source": {"pvc": {"claimName": "models"}}},
                "pools": [{"name": "engines", "backend": "simulator", "replicas": 2,
                           "template": {}}]} | (spec or {})}


def ask(home, seed):
    """(status, overlap as "X/Y") of a picture's question through the client Service."""
    address = home.get("service", "demo")["spec"]["clusterIP"]
    parts = [image_part(png(448, 448, seed=seed)), text_part("What is shown?")]
    body = json.dumps({"model": "demo", "max_tokens": 4,
                       "messages": [{"role": "user", "content": parts}]})
    with network.inside(home.bed):
        connection = http.client.HTTPConnection(address, 8000, timeout=30)
        with contextlib.closing(connection):
            connection.request("POST", "/v1/chat/completions", body,
                               {"content-type": "application/json"})
            answer = connection.getresponse()
            answer.read()
    return answer.status, answer.getheader("x-sightline-overlap", "")


def status(home):
    return home.get("mmr", "demo").get("status", {})


def condition(home, kind):
    return next((f"{one['status']} {one['reason']}" for one in status(home).get("conditions", [])
                 if one["type"] == kind), None)


def names(home):
    """kind/name of all that is there."""
    kinds = "all,configmap,secret,serviceaccount,pdb,networkpolicy,hpa,mmr,mmrp"
    listed = home.kubectl("get", kinds, "-o", "name").split()
    return {name.lower() for name in listed} - OF_EVERY_NAMESPACE


@contextlib.contextmanager
def client(home):
    """Asks without a pause; a list of what it was answered, each status with its time."""
    answers, is_over = [], threading.Event()

    def run():
        while not is_over.is_set():
            try:
                code = ask(home, len(answers) % 5)[0]
            except OSError as error:
                code = repr(error)
            answers.append((code, time.monotonic()))

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield answers
    finally:
        is_over.set()
        thread.join()


def failed(answers):
    return [code for code, _ in answers if code != 200]
