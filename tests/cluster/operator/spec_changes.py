# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Specs that a router must reach, and return from. Each is one change of the smallest spec."""

import dataclasses

from testbed.pods import RESTRICTED, container

ENGINES = {"name": "engines", "backend": "simulator", "replicas": 1, "template": {}}
BASE = {"model": {"name": "demo", "source": {"pvc": {"claimName": "models"}}},
        "frontend": {"replicas": 1}, "router": {"replicas": 1}, "pools": [ENGINES],
        "rollout": {"maxSurge": 1, "maxUnavailable": 0, "drainTimeout": "5s"}}
# Engines that the operator does not run: see specs_test.py.
THEIRS = {"name": "theirs", "backend": "simulator", "selector": {
    "matchLabels": {"app": "engine"}, "port": 8101, "eventsPort": 5557, "replayPort": 5657}}
OUTSIDE = {"name": "outside", "backend": "simulator", "endpoints": [
    {"name": "engine", "url": "http://engine:8101", "events": "tcp://engine:5557",
     "replay": "tcp://engine:5657"}]}
SIDECAR = container("beside", securityContext=RESTRICTED)
FRONTENDS = "deployment/demo-{revision}-frontend"
ROUTERS = "deployment/demo-{revision}-router"
WORKERS = "deployment/demo-{revision}-engines"
LIVE = "configmap/demo-{revision}-live"
POD = "spec/template/spec"
CONTAINER = f"{POD}/containers/0"


@dataclasses.dataclass(frozen=True)
class Change:
    """`spec` is merged into the smallest spec as a JSON merge patch. Each of `shows` has an object,
    a place in it, and the value there or a part of its text. None means that the object is gone."""
    name: str
    spec: dict
    shows: list
    ready: str = "True AsWanted"
    conditions: dict = dataclasses.field(default_factory=dict)
    keeps_pods: bool = False


def merged(thing, patch):
    """Applies a JSON merge patch."""
    made = dict(thing)
    for name, value in patch.items():
        if value is None:
            made.pop(name, None)
        elif isinstance(value, dict):
            made[name] = merged(made.get(name) or {}, value)
        else:
            made[name] = value
    return made


def live(name, spec, *shows, **more):
    return Change(name, spec, [shows], keeps_pods=True, **more)


def engines(**members):
    return {"pools": [ENGINES | members]}


LIVE_CHANGES = [
    live("another policy", {"router": {"policy": "round-robin"}},
         LIVE, "data/router.yaml", '"policy":"round-robin"'),
    live("other weights",
         {"router": {"weights": {"overlapCredit": "0.5", "decodeLoadScale": "2"}}},
         LIVE, "data/router.yaml", '"overlap_credit":0.5'),
    live("another request timeout", {"router": {"requestTimeout": "5m"}},
         LIVE, "data/router.yaml", '"request_timeout":"5m"'),
    live("another log level", {"logLevel": "debug"}, LIVE, "data/log-level", "debug"),
    live("limits of images",
         {"multimodal": {"imagesMax": 8, "imageBytesMax": "1500k", "forward": "URL", "fetch": {
             "timeout": "5s", "connectTimeout": "500ms", "redirectsMax": 0, "downloadsMax": 4}}},
         LIVE, "data/frontend.yaml", '"image_bytes_max":1500000'),
    live("fewer requests at the same time", {"frontend": {"concurrentRequestsMax": 100}},
         LIVE, "data/frontend.yaml", '"concurrent_requests_max":100'),
    live("a roll-out that ends old workers first", {"rollout": {"strategy": "Recreate"}},
         WORKERS, "spec/strategy", {"type": "Recreate"}),
    live("a blue-green roll-out with a longer deadline",
         {"rollout": {"strategy": "BlueGreen", "progressDeadline": "1h"}},
         WORKERS, "spec/progressDeadlineSeconds", 3600),
    live("a roll-out that is paused", {"rollout": {"paused": True}},
         WORKERS, "spec/replicas", 1, conditions={"Progressing": "False Paused"}),
    live("no evictions at all", {"disruption": {"maxUnavailable": 0}},
         "poddisruptionbudget/demo-{revision}-frontend", "spec/maxUnavailable", 0),
    live("no network policies", {"networkPolicy": {"enabled": False}},
         "networkpolicy/demo-frontend", "", None),
    live("a Service on every node, with annotations",
         {"frontend": {"service": {"type": "NodePort", "annotations": {"example/team": "a"}}}},
         "service/demo", "metadata/annotations", {"example/team": "a"}),
    live("a balanced Service on another port",
         {"frontend": {"service": {"type": "LoadBalancer", "port": 80}}},
         "service/demo", "spec/type", "LoadBalancer"),
]

SIZES = [
    Change("two of each",
           {"frontend": {"replicas": 2}, "router": {"replicas": 2}} | engines(replicas=2),
           [(FRONTENDS, "spec/replicas", 2), (ROUTERS, "spec/replicas", 2),
            (WORKERS, "spec/replicas", 2),
            ("poddisruptionbudget/demo-{revision}-engines", "spec/maxUnavailable", 1)]),
    Change("workers that an autoscaler scales",
           {"pools": [{"name": "engines", "backend": "simulator", "template": {},
                       "autoscaling": {"minReplicas": 1, "maxReplicas": 3}}]},
           [("multimodalrouterpool/demo-engines", "spec", {
               "router": "demo", "pool": "engines", "replicas": 1, "minReplicas": 1,
               "maxReplicas": 3})]),
    Change("a second pool",
           {"pools": [ENGINES, {"name": "more", "backend": "simulator", "template": {}}]},
           [("deployment/demo-{revision}-more", "spec/replicas", 1)]),
    Change("workers for each part of a request",
           {"pools": [{"name": role, "role": role, "backend": "simulator", "template": {}}
                      for role in ("prefill", "decode", "encode")]},
           [(WORKERS, "", None), ("deployment/demo-{revision}-encode", "spec/replicas", 1)]),
    Change("as many frontends as the load asks for",
           {"frontend": {"replicas": None, "autoscaling": {"maxReplicas": 2}}},
           [("horizontalpodautoscaler/demo-{revision}-frontend", "spec/maxReplicas", 2)]),
    Change("suspended", {"suspend": True}, [(WORKERS, "spec/replicas", 0)],
           ready="False Suspended", conditions={"Progressing": "False Suspended"}),
]

WITHIN = [
    Change("pods with labels, a sidecar, a toleration and a variable",
           {"frontend": {
               "resources": {"requests": {"cpu": "50m"}, "limits": {"memory": "1Gi"}},
               "podTemplate": {
                   "metadata": {"labels": {"team": "a"}, "annotations": {"example/of": "b"}},
                   "spec": {"containers": [SIDECAR]}}},
            "router": {"podTemplate": {"spec": {
                "tolerations": [{"key": "dedicated", "operator": "Exists"}],
                "containers": [{"name": "router", "env": [
                    {"name": "SIGHTLINE_IO_THREADS", "value": "2"}]}]}}}},
           [(FRONTENDS, f"{POD}/containers/1/name", "beside"),
            (FRONTENDS, "spec/template/metadata/labels/team", "a"),
            (ROUTERS, f"{POD}/tolerations", [{"key": "dedicated", "operator": "Exists"}])]),
    Change("workers with everything that a template has",
           {"model": {"maxModelLen": 4096}} | engines(template={
               "args": ["--prefill-tokens-per-s", "20000"],
               "env": [{"name": "TZ", "value": "UTC"}],
               "parallelism": {"data": 2}, "sharedMemory": "1Gi", "startupTimeout": "5m",
               "resources": {"limits": {"memory": "2Gi"}},
               "podTemplate": {"spec": {
                   "volumes": [{"name": "scraps", "emptyDir": {}}],
                   "containers": [{"name": "worker", "volumeMounts": [
                       {"name": "scraps", "mountPath": "/scraps"}]}]}}}),
           [(WORKERS, f"{CONTAINER}/args", "20000"), (WORKERS, f"{CONTAINER}/args", "4096"),
            (WORKERS, f"{CONTAINER}/env", '{"name":"TZ","value":"UTC"}'),
            (WORKERS, f"{CONTAINER}/args", "--data-parallel-size"),
            (WORKERS, f"{CONTAINER}/startupProbe/failureThreshold", 30),
            (WORKERS, f"{CONTAINER}/volumeMounts", "/scraps")]),
    Change("a longer drain and a longer stale time",
           {"rollout": {"drainTimeout": "6s"}, "router": {"staleAfter": "10s"}},
           [(WORKERS, f"{POD}/terminationGracePeriodSeconds", 21),
            (ROUTERS, f"{CONTAINER}/args", "10s")]),
    Change("a restart", {"restart": "today"},
           [(one, "spec/template/metadata/annotations/sightline.dev~1restart", "today")
            for one in (FRONTENDS, ROUTERS, WORKERS, "statefulset/demo-nats")]),
    Change("images that are never pulled",
           {"imagePullPolicy": "Never", "imagePullSecrets": [{"name": "registry"}]},
           [(ROUTERS, f"{POD}/imagePullSecrets", [{"name": "registry"}]),
            (FRONTENDS, f"{CONTAINER}/imagePullPolicy", "Never")]),
]

REVISIONS = [
    Change("other blocks", {"kv": {"blockSize": 32}}, [(WORKERS, f"{CONTAINER}/args", '"32"')]),
    Change("other files, settings and hashes of the model",
           {"model": {"revision": "r2"}, "kv": {"hashSeed": "7"},
            "multimodal": {"processor": {"max_pixels": 200704}}},
           [("configmap/demo-specs", "data/accepted.json", '"processor":{"max_pixels":200704}')]),
    Change("approximate events, and no images",
           {"kv": {"events": "Approximate"}, "multimodal": {"modalities": []}},
           [("configmap/demo-specs", "data/accepted.json", '"modalities":[]')]),
    Change("a chat template in place of the model's",
           {"model": {"chatTemplate": {"configMap": "chat", "key": "chat.jinja"}}},
           [(WORKERS, f"{POD}/volumes", "-template"),
            ("configmap/demo-{revision}-template", "data/chat_template.jinja", "m.content")]),
    Change("images through shared memory", {"transfer": {"mode": "shm", "shm": {"size": "1Gi"}}},
           [("configmap/demo-specs", "data/accepted.json", '"mode":"shm"')],
           conditions={"TransferReady": "False NotImplemented"}),
    Change("images through nixl", {"transfer": {"mode": "nixl"}},
           [("configmap/demo-specs", "data/accepted.json", '"mode":"nixl"')],
           conditions={"TransferReady": "False NotImplemented"}),
]

FOREIGN = [
    Change("an engine that is found by its label", {"pools": [ENGINES, THEIRS]},
           [("deployment/demo-{revision}-agents", "spec/replicas", 1)]),
    Change("an engine that is named as an endpoint", {"pools": [ENGINES, OUTSIDE]},
           [("configmap/demo-{revision}-agents", "data/agents.yaml", "http://engine:8101")]),
    Change("only workers that others run", {"pools": [THEIRS]}, [(WORKERS, "", None)]),
    Change("three servers of NATS", {"nats": {"managed": {"replicas": 3}}},
           [("statefulset/demo-nats", "spec/replicas", 3)]),
]
