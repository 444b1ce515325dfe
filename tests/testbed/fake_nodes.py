# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Nodes without a machine: kwok reports their status, and stages set the status of their pods."""

from . import bed as beds
from . import binaries

NAMES = ("fake-0", "fake-1", "fake-2")
ANNOTATION = ("kwok.x-k8s.io/node", "fake")
SELECTOR = "=".join(ANNOTATION)
TAINT = "testbed/fake"
ROOM = {"cpu": "64", "memory": "512Gi", "pods": "110", "nvidia.com/gpu": "8"}

# With annotations a pod can become ready later ("5s"), complete or crash.
DELAY = """\
  delay:
    durationMilliseconds: 0
    durationFrom:
      expressionFrom: '.metadata.annotations["testbed/ready-after"]'
"""
UNLESS_CRASHING = """\
    - key: '.metadata.annotations["testbed/run"]'
      operator: 'NotIn'
      values:
      - 'crash'
"""
FATES = """\
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata:
  name: testbed-complete
spec:
  resourceRef: {apiGroup: v1, kind: Pod}
  selector:
    matchAnnotations: {testbed/run: complete}
    matchExpressions:
    - {key: .metadata.deletionTimestamp, operator: DoesNotExist}
    - {key: .status.phase, operator: In, values: [Running]}
  next:
    statusTemplate: |
      {{ $now := Now }}
      containerStatuses:
      {{ range .spec.containers }}
      - image: {{ .image | Quote }}
        name: {{ .name | Quote }}
        ready: false
        restartCount: 0
        started: false
        state:
          terminated:
            exitCode: 0
            finishedAt: {{ $now | Quote }}
            reason: Completed
            startedAt: {{ $now | Quote }}
      {{ end }}
      phase: Succeeded
---
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata:
  name: testbed-crash
spec:
  resourceRef: {apiGroup: v1, kind: Pod}
  selector:
    matchAnnotations: {testbed/run: crash}
    matchExpressions:
    - {key: .metadata.deletionTimestamp, operator: DoesNotExist}
    - {key: .status.phase, operator: In, values: [Pending]}
  next:
    statusTemplate: |
      {{ $now := Now }}
      conditions:
      - lastTransitionTime: {{ $now | Quote }}
        status: "True"
        type: Initialized
      - lastTransitionTime: {{ $now | Quote }}
        status: "False"
        type: Ready
      - lastTransitionTime: {{ $now | Quote }}
        status: "False"
        type: ContainersReady
      containerStatuses:
      {{ range .spec.containers }}
      - image: {{ .image | Quote }}
        name: {{ .name | Quote }}
        ready: false
        restartCount: 3
        started: false
        lastState:
          terminated:
            exitCode: 137
            finishedAt: {{ $now | Quote }}
            reason: OOMKilled
            startedAt: {{ $now | Quote }}
        state:
          waiting:
            message: back-off 40s restarting failed container
            reason: CrashLoopBackOff
      {{ end }}
      phase: Running
      startTime: {{ $now | Quote }}
"""


def stages_file(bed):
    return bed.directory / "stages.yaml"


def write_stages(bed):
    directory = binaries.stages()
    texts = {file.stem: file.read_text(encoding="utf-8") for file in directory.glob("*.yaml")}
    before, spec_next, after = texts["pod-ready"].partition("  next:\n")
    if not before.endswith("      - 'True'\n") or not spec_next:
        raise beds.BedError("kwok's stage pod-ready has another form than is known here")
    texts["pod-ready"] = before + UNLESS_CRASHING + DELAY + spec_next + after
    beds.write_whole(stages_file(bed), "\n---\n".join([*texts.values(), FATES]))


def make(api, is_alone):
    """Makes the fake nodes. Beside a real node they have a taint, so other pods go to that node."""
    for i, name in enumerate(NAMES):
        api.apply(f"/api/v1/nodes/{name}", {
            "apiVersion": "v1", "kind": "Node",
            "metadata": {
                "name": name, "annotations": dict([ANNOTATION]),
                "labels": {"type": "kwok", "kubernetes.io/hostname": name,
                           "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
                           "topology.kubernetes.io/zone": f"zone-{i}"}},
            "spec": {} if is_alone else {"taints": [{"key": TAINT, "effect": "NoSchedule"}]},
            "status": {"capacity": ROOM, "allocatable": ROOM}})


def are_ready(api):
    nodes = api.get("/api/v1/nodes?labelSelector=type%3Dkwok") or {"items": []}
    return len(nodes["items"]) >= len(NAMES) and all(map(is_ready, nodes["items"]))


def is_ready(node):
    return any(condition["type"] == "Ready" and condition["status"] == "True"
               for condition in node["status"].get("conditions", []))
