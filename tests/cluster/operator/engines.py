# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Engines that the operator does not run: plain pods with a label of their own."""

from testbed import pods

PORTS = {"http": 8101, "events": 5557, "replay": 5657}
LABELS = {"serves": "demo"}


def pod(name, block_size=16):
    made = pods.pod(name, {
        "name": "engine", "image": "sightline:testbed", "imagePullPolicy": "Never",
        "args": ["simulate", "--engines", "1", "--host", "0.0.0.0", "--model-path", "/model",
                 "--served-model-name", "demo", "--block-size", str(block_size)],
        "securityContext": pods.RESTRICTED,
        "readinessProbe": {"httpGet": {"path": "/health", "port": PORTS["http"]},
                           "periodSeconds": 1},
        "volumeMounts": [{"name": "model", "mountPath": "/model", "readOnly": True}]},
        securityContext={"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
        volumes=[{"name": "model", "persistentVolumeClaim": {"claimName": "models"}}])
    made["metadata"]["labels"] |= LABELS
    return made


def deployment(name, replicas):
    made = pods.deployment(name, replicas)
    made["metadata"]["labels"] = LABELS
    template = pod(name)
    made["spec"]["template"] = {"metadata": {"labels": template["metadata"]["labels"]},
                                "spec": template["spec"]}
    return made


def service(name, **spec):
    """A Service for the pod of the same name."""
    return pods.service(name, ports=[{"name": port, "port": number}
                                     for port, number in PORTS.items()], **spec)


def by_label():
    """A pool that selects all of these engines."""
    return {"name": "theirs", "selector": {
        "matchLabels": LABELS, "port": PORTS["http"], "eventsPort": PORTS["events"],
        "replayPort": PORTS["replay"]}}


def by_place(**hosts):
    """A pool of the engines at these hosts, by the names that routers must use for them."""
    return {"name": "theirs", "endpoints": [
        {"name": name, "url": f"http://{host}:{PORTS['http']}",
         "events": f"tcp://{host}:{PORTS['events']}",
         "replay": f"tcp://{host}:{PORTS['replay']}"} for name, host in hosts.items()]}
