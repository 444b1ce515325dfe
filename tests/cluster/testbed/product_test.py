# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Runs the images of the build tree as the operator runs them: no root user, no writable root file
system, a model from a claim, behind Services."""

import json
import os
import pathlib

from testbed import pods
from testbed.namespace import RESTRICTED

MODEL = "tiny-qwen2-vl"
PORTS = {"engine": 8101, "events": 5557, "replay": 5657, "client": 8000, "admin": 9090,
         "nats": 4222, "monitor": 8222}
QUESTION = json.dumps({"model": "demo", "max_tokens": 4, "messages": [
    {"role": "user", "content": "Name a fruit."}]})


def of_product(name, image, command, probe):
    path, port = probe
    return pods.pod(
        name, {
            "name": name, "image": image, "imagePullPolicy": "IfNotPresent", "args": command,
            "securityContext": pods.RESTRICTED,
            "readinessProbe": {"httpGet": {"path": path, "port": PORTS[port]}, "periodSeconds": 1},
            "volumeMounts": [{"name": "model", "mountPath": "/model", "readOnly": True}]},
        securityContext={"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
        automountServiceAccountToken=False, enableServiceLinks=False,
        volumes=[{"name": "model", "persistentVolumeClaim": {"claimName": "model"}}])


def service(name, *ports, **spec):
    return pods.service(name, ports=[{"name": p, "port": PORTS[p]} for p in ports], **spec)


def test_router_engine_and_nats_serve_from_pods(make_namespace):
    build = pathlib.Path(os.environ.get("SL_BUILD", "build/release")).resolve()
    namespace = make_namespace(labels=RESTRICTED)
    namespace.mount_directory("model", build / "models" / MODEL)
    of_model = ["--model-path", "/model", "--served-model-name", "demo"]
    engine = f"tcp://engine.{namespace.name}"
    namespace.apply(
        of_product("engine", "sightline:testbed",
                   ["simulate", "--engines", "1", "--host", "0.0.0.0", *of_model],
                   ("/health", "engine")),
        service("engine", "engine", "events", "replay", clusterIP="None"),
        of_product("router", "sightline:testbed",
                   ["serve", "--host", "0.0.0.0", "--admin-host", "0.0.0.0", *of_model, "--worker",
                    f"name=w0,url=http://engine.{namespace.name}:{PORTS['engine']},"
                    f"events={engine}:{PORTS['events']},replay={engine}:{PORTS['replay']}"],
                   ("/readyz", "admin")),
        service("router", "client", "admin"),
        of_product("nats", "nats:testbed", ["-m", str(PORTS["monitor"])], ("/healthz", "monitor")),
        pods.pod("client", pods.container("client", securityContext=pods.RESTRICTED),
                 securityContext={"runAsNonRoot": True, "seccompProfile": {
                     "type": "RuntimeDefault"}}))
    namespace.wait(["pod/engine", "pod/router", "pod/nats", "pod/client"], "Ready")
    said = pods.fetch(namespace, "client", f"http://router:{PORTS['admin']}/readyz")
    assert said
    answer = json.loads(namespace.exec(
        "client", "curl", "-sS", "-m", "20", "-H", "content-type: application/json", "-d", QUESTION,
        f"http://router:{PORTS['client']}/v1/chat/completions"))
    assert answer["usage"]["completion_tokens"] == 4
    assert "[ROUTING] Best: worker" in namespace.kubectl("logs", "router")
