# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Objects that the API server must refuse. Each is one change of an object that it accepts.
Each has the field that the answer must name, and a part of the answer's text about the fix."""

import copy
import dataclasses
import re

GONE = object()
ROUTER = {
    "apiVersion": "sightline.dev/v1alpha1", "kind": "MultimodalRouter",
    "metadata": {"name": "demo"}, "spec": {
        "model": {"name": "demo", "source": {"pvc": {"claimName": "models"}}},
        "pools": [{"name": "engines", "template": {"image": "vllm:1"}}]}}
POOL = {
    "apiVersion": "sightline.dev/v1alpha1", "kind": "MultimodalRouterPool",
    "metadata": {"name": "demo-engines"},
    "spec": {"router": "demo", "pool": "engines", "replicas": 2, "minReplicas": 1,
             "maxReplicas": 4}}
OUTSIDE = {"name": "outside", "endpoints": [{"name": "e1", "url": "http://10.0.0.1:8000"}]}
THEIRS = {"name": "theirs", "selector": {"matchLabels": {"app": "vllm"}}}


def engines(**members):
    return {"name": "engines", "template": {"image": "vllm:1"}} | members


@dataclasses.dataclass(frozen=True)
class Refusal:
    name: str
    change: dict
    says: str
    at: str
    of: dict = None
    is_update: bool = False

    def object(self):
        return changed(self.of, self.change)


def changed(thing, change):
    """Returns a copy with these values at these places, such as spec.pools[0].role."""
    thing = copy.deepcopy(thing)
    for place, value in change.items():
        *path, last = [int(part) if part.isdigit() else part
                       for part in re.findall(r"[^.\[\]]+", place)]
        holder = thing
        for part in path:
            holder = holder[part] if isinstance(part, int) else holder.setdefault(part, {})
        if value is GONE:
            del holder[last]
        else:
            holder[last] = value
    return thing


def refused(name, change, says, at=None, **more):
    """`at`: the field in the answer, if it is not the changed one."""
    return Refusal(name, change, says, at or next(iter(change)), **({"of": ROUTER} | more))


def refused_update(name, change, says, at=None):
    """A refused update of an object that exists."""
    return refused(name, change, says, at, is_update=True)



LONG = "a" * 41
OWN = "spec.pools[0].template"

OBJECTS = [
    refused("a name of 41 characters", {"metadata.name": LONG}, "must have at most 40 characters"),
    refused("a name that begins with a digit", {"metadata.name": "3d"}, "begin with a letter"),
    refused("a name with a dot", {"metadata.name": "a.b"}, "must be letters, digits and hyphens"),
    refused("fewer GPUs than ranks", {f"{OWN}.gpus": 1, f"{OWN}.parallelism.tensor": 2},
            "must be at least tensor x pipeline x data"),
    refused("a field that does not exist", {"spec.blockSize": 16}, "unknown field"),
    refused("a misspelt field of a pool", {"spec.pools[0].replica": 1}, "unknown field"),
    refused("no spec", {"spec": GONE}, "Required value"),
    refused("no model", {"spec.model": GONE}, "Required value"),
    refused("no pools", {"spec.pools": GONE}, "Required value"),
    refused("an empty list of pools", {"spec.pools": []}, "should have at least 1 items"),
    refused("17 pools", {"spec.pools": [engines(name=f"p{i}") for i in range(17)]},
            "must have at most 16 items"),
    refused("a log level of another program", {"spec.logLevel": "trace"},
            'supported values: "debug", "info", "warn", "error"'),
    refused("no image between the quotes", {"spec.image": ""}, "should be at least 1 chars long"),
    refused("a pull policy that does not exist", {"spec.imagePullPolicy": "Sometimes"},
            'supported values: "Always", "IfNotPresent", "Never"'),
    refused("a pull secret with a capital letter", {"spec.imagePullSecrets": [{"name": "Reg"}]},
            "must be the name of a Secret", "spec.imagePullSecrets[0].name"),
    refused("the same pull secret twice",
            {"spec.imagePullSecrets": [{"name": "reg"}, {"name": "reg"}]}, "Duplicate value",
            "spec.imagePullSecrets[1]"),
    refused("17 pull secrets", {"spec.imagePullSecrets": [{"name": f"r{i}"} for i in range(17)]},
            "must have at most 16 items"),
    refused("a restart of 65 characters", {"spec.restart": "a" * 65},
            "may not be more than 64 bytes"),
    refused("a version of 65 characters", {"spec.version": "a" * 65},
            "may not be more than 64 bytes"),
    refused("a text in place of a boolean", {"spec.suspend": "yes"},
            "must be of type boolean"),
    refused("suspended and paused together", {"spec.suspend": True, "spec.rollout.paused": True},
            "Set rollout.paused to false first"),
    refused("a negative number of evicted pods", {"spec.disruption.maxUnavailable": -1},
            "should be greater than or equal to 0"),
    refused("network policies that are text", {"spec.networkPolicy.enabled": "on"},
            "must be of type boolean"),
]

MODEL = [
    refused("a model without a name", {"spec.model.name": GONE}, "Required value"),
    refused("a model's name with a space", {"spec.model.name": "my model"},
            "must begin with a letter or digit"),
    refused("a model's name of 254 characters", {"spec.model.name": "a" * 254},
            "may not be more than 253 bytes"),
    refused("an empty source", {"spec.model.source": {}},
            "give exactly one of uri, pvc and image"),
    refused("two sources", {"spec.model.source.uri": "hf://a/b"},
            "give exactly one of uri, pvc and image", "spec.model.source"),
    refused("a download from anywhere", {"spec.model.source": {"uri": "https://a.example/b"}},
            "must be hf://ORGANISATION/MODEL", "spec.model.source.uri"),
    refused("a claim without a name", {"spec.model.source.pvc.claimName": GONE},
            "Required value"),
    refused("a claim's name with a slash", {"spec.model.source.pvc.claimName": "models/qwen"},
            "must be the name of a claim"),
    refused("a folder from the root", {"spec.model.source.pvc.path": "/models"},
            "must be a relative path"),
    refused("a folder outside the claim", {"spec.model.source.pvc.path": "a/../../b"},
            "must stay inside the volume, without .."),
    refused("a folder with a space in an image",
            {"spec.model.source": {"image": {"reference": "m:1", "path": "a b"}}},
            "must be a relative path", "spec.model.source.image.path"),
    refused("a folder outside the image",
            {"spec.model.source": {"image": {"reference": "m:1", "path": "a/.."}}},
            "must stay inside the image, without ..", "spec.model.source.image.path"),
    refused("an image of a model without a reference", {"spec.model.source": {"image": {}}},
            "Required value", "spec.model.source.image.reference"),
    refused("a pull policy of a model's image that does not exist",
            {"spec.model.source": {"image": {"reference": "m:1", "pullPolicy": "Once"}}},
            'supported values: "Always", "IfNotPresent", "Never"',
            "spec.model.source.image.pullPolicy"),
    refused("a revision with a space", {"spec.model.revision": "of today"},
            "must begin with a letter or digit"),
    refused("a revision of 129 characters", {"spec.model.revision": "a" * 129},
            "may not be more than 128 bytes"),
    refused("a token's Secret without a name", {"spec.model.tokenSecret": {}}, "Required value",
            "spec.model.tokenSecret.name"),
    refused("a token's Secret with a capital letter", {"spec.model.tokenSecret": {"name": "Hub"}},
            "must be the name of a Secret", "spec.model.tokenSecret.name"),
    refused("a key of a Secret with a slash",
            {"spec.model.tokenSecret": {"name": "hub", "key": "a/b"}},
            "must be a key of the Secret", "spec.model.tokenSecret.key"),
    refused("a maximum prompt length of 0", {"spec.model.maxModelLen": 0},
            "should be greater than or equal to 1"),
    refused("a chat template without a ConfigMap", {"spec.model.chatTemplate": {"key": "a"}},
            "Required value", "spec.model.chatTemplate.configMap"),
    refused("a ConfigMap with an underscore",
            {"spec.model.chatTemplate.configMap": "chat_template"},
            "must be the name of a ConfigMap"),
    refused("a key of a ConfigMap that is empty",
            {"spec.model.chatTemplate": {"configMap": "a", "key": ""}},
            "must be a key of the ConfigMap", "spec.model.chatTemplate.key"),
]

BLOCKS = [
    refused("blocks of no tokens", {"spec.kv.blockSize": 0},
            "should be greater than or equal to 1"),
    refused("blocks of 8193 tokens", {"spec.kv.blockSize": 8193},
            "should be less than or equal to 8192"),
    refused("a block size that is text", {"spec.kv.blockSize": "16"}, "must be of type integer"),
    refused("a block size that is no whole number", {"spec.kv.blockSize": 16.5},
            "must be of type int32"),
    refused("a hash seed that is no number", {"spec.kv.hashSeed": "random"},
            "must be a number of 0 to 4294967295"),
    refused("a hash seed that Python does not take", {"spec.kv.hashSeed": "4294967296"},
            "must be a number of 0 to 4294967295"),
    refused("a hash seed for TensorRT-LLM",
            {"spec.kv.hashSeed": "7", "spec.pools[0].backend": "trtllm"},
            "hashSeed has no meaning for a trtllm pool. Leave it out"),
    refused("events that are guessed", {"spec.kv.events": "Guessed"},
            'supported values: "Exact", "Approximate"'),
    refused("a pool with blocks of its own", {"spec.pools[0].blockSize": 32},
            "Change kv.blockSize, or leave it out here", "spec.pools"),
]

IMAGES = [
    refused("audio", {"spec.multimodal.modalities": ["image", "audio"]},
            'supported values: "image"', "spec.multimodal.modalities[1]"),
    refused("images twice", {"spec.multimodal.modalities": ["image", "image"]},
            "must name each modality once"),
    refused("a processor's setting that is text", {"spec.multimodal.processor.max_pixels": "1M"},
            "must be of type integer"),
    refused("33 settings of a processor",
            {"spec.multimodal.processor": {f"s{i}": i for i in range(33)}},
            "must have at most 32 items"),
    refused("a negative number of images", {"spec.multimodal.imagesMax": -1},
            "should be greater than or equal to 0"),
    refused("an image's size as a word", {"spec.multimodal.imageBytesMax": "20MB"},
            "must be a size of 1Ki to 1Gi, for example 20Mi"),
    refused("images of two gibibytes", {"spec.multimodal.imageBytesMax": "2Gi"},
            "must be a size of 1Ki to 1Gi, for example 20Mi"),
    refused("a time without its unit", {"spec.multimodal.fetch.connectTimeout": "5"},
            "must be a duration of 10ms to 1h, for example 5s"),
    refused("a download timeout of 0", {"spec.multimodal.fetch.timeout": "0s"},
            "must be a duration of 10ms to 1h, for example 20s"),
    refused("a time of two units", {"spec.multimodal.fetch.timeout": "1m30s"},
            "must be a duration of 10ms to 1h, for example 20s"),
    refused("21 redirects", {"spec.multimodal.fetch.redirectsMax": 21},
            "should be less than or equal to 20"),
    refused("no downloads at all", {"spec.multimodal.fetch.downloadsMax": 0},
            "should be greater than or equal to 1"),
    refused("images sent as paths", {"spec.multimodal.forward": "Path"},
            'supported values: "Bytes", "URL"'),
]

TRANSFER = [
    refused("a transfer that does not exist", {"spec.transfer.mode": "rdma"},
            'supported values: "disabled", "shm", "nixl"'),
    refused("shared memory without its mode", {"spec.transfer.shm": {}},
            "belongs to mode shm only. Leave it out"),
    refused("nixl without its mode", {"spec.transfer": {"mode": "shm", "nixl": {}}},
            "belongs to mode nixl only. Leave it out", "spec.transfer.nixl"),
    refused("shared memory to SGLang",
            {"spec.transfer.mode": "shm", "spec.pools[0].backend": "sglang"},
            "only vllm and simulator pools can receive images in this mode. "
            "Set transfer.mode to disabled"),
    refused("shared memory to workers of others",
            {"spec.transfer.mode": "shm", "spec.pools": [engines(), THEIRS]},
            "only pools with a template can receive images in this mode. "
            "Set transfer.mode to disabled"),
    refused("shared memory as a word",
            {"spec.transfer": {"mode": "shm", "shm": {"size": "much"}}},
            "must be a size, for example 8Gi or 500M", "spec.transfer.shm.size"),
    refused("a miss that is ignored",
            {"spec.transfer": {"mode": "shm", "shm": {"onMiss": "Ignore"}}},
            'supported values: "Reprocess", "Fail"', "spec.transfer.shm.onMiss"),
    refused("a transport that does not exist",
            {"spec.transfer": {"mode": "nixl", "nixl": {"backend": "TCP"}}},
            'supported values: "UCX", "LIBFABRIC"', "spec.transfer.nixl.backend"),
]

FRONTEND = [
    refused("frontends by number and by load",
            {"spec.frontend": {"replicas": 2, "autoscaling": {"maxReplicas": 4}}},
            "give replicas or autoscaling, not both", "spec.frontend.autoscaling"),
    refused("a negative number of frontends", {"spec.frontend.replicas": -1},
            "should be greater than or equal to 0"),
    refused("frontends by load without a limit", {"spec.frontend.autoscaling": {}},
            "Required value", "spec.frontend.autoscaling.maxReplicas"),
    refused("more frontends at least than at most",
            {"spec.frontend.autoscaling": {"minReplicas": 5, "maxReplicas": 4}},
            "must be at most maxReplicas, which is 4", "spec.frontend.autoscaling.minReplicas"),
    refused("no CPU at all as the target",
            {"spec.frontend.autoscaling": {"maxReplicas": 4, "targetCPUPercent": 0}},
            "should be greater than or equal to 1", "spec.frontend.autoscaling.targetCPUPercent"),
    refused("a Service by another name", {"spec.frontend.service.type": "ExternalName"},
            'supported values: "ClusterIP", "LoadBalancer", "NodePort"'),
    refused("a port above all ports", {"spec.frontend.service.port": 65536},
            "should be less than or equal to 65535"),
    refused("an annotation that is a number", {"spec.frontend.service.annotations": {"a": 1}},
            "must be of type string", "spec.frontend.service.annotations.a"),
    refused("no requests at the same time", {"spec.frontend.concurrentRequestsMax": 0},
            "should be greater than or equal to 1"),
    refused("memory as a word", {"spec.frontend.resources.limits": {"memory": "lots"}},
            "must be quantities of 0 or more by resource, for example 500m, 2Gi or 1"),
    refused("negative CPU", {"spec.frontend.resources.requests": {"cpu": -1}},
            "must be quantities of 0 or more by resource, for example 500m, 2Gi or 1"),
    refused("more memory asked for than allowed",
            {"spec.frontend.resources": {"requests": {"memory": "2Gi"},
                                         "limits": {"memory": "1Gi"}}},
            "must be at most the limits", "spec.frontend.resources.requests"),
    refused("a pod template that is text", {"spec.frontend.podTemplate": "mine"},
            "must be of type object"),
]

ROUTERS = [
    refused("33 routers", {"spec.router.replicas": 33}, "should be less than or equal to 32"),
    refused("a policy that does not exist", {"spec.router.policy": "fastest"},
            'supported values: "kv", "least-loaded", "round-robin", "random"'),
    refused("a weight that is a number", {"spec.router.weights.overlapCredit": 0.5},
            "must be of type string"),
    refused("a credit above ten", {"spec.router.weights.overlapCredit": "11"},
            "must be a decimal number of 0 to 10, for example 0.75"),
    refused("a negative credit", {"spec.router.weights.hostCredit": "-1"},
            "must be a decimal number of 0 to 10, for example 0.75"),
    refused("a credit as a word", {"spec.router.weights.diskCredit": "half"},
            "must be a decimal number of 0 to 10, for example 0.75"),
    refused("a weight of prefill as a fraction", {"spec.router.weights.prefillLoadScale": "1/2"},
            "must be a decimal number of 0 to less than 1000, for example 1.5"),
    refused("a weight of decode of a thousand", {"spec.router.weights.decodeLoadScale": "1000"},
            "must be a decimal number of 0 to less than 1000, for example 1.5"),
    refused("a stale time below the minimum", {"spec.router.staleAfter": "1s"},
            "must be a duration of 2s to 1h, for example 5s"),
    refused("requests of two days", {"spec.router.requestTimeout": "48h"},
            "must be a duration of 100ms to 24h, for example 10m"),
    refused("CPU of a router as a word", {"spec.router.resources.requests": {"cpu": "one"}},
            "must be quantities of 0 or more by resource, for example 500m, 2Gi or 1"),
    refused("negative memory of a router",
            {"spec.router.resources.limits": {"memory": "-1Gi"}},
            "must be quantities of 0 or more by resource, for example 500m, 2Gi or 1"),
    refused("more CPU asked for a router than allowed",
            {"spec.router.resources": {"requests": {"cpu": 2}, "limits": {"cpu": "500m"}}},
            "must be at most the limits", "spec.router.resources.requests"),
]

POOLS = [
    refused("only workers that prefill", {"spec.pools[0].role": "prefill"},
            "give a pool of role aggregated, or both a prefill and a decode pool", "spec.pools"),
    refused("only workers that encode", {"spec.pools[0].role": "encode"},
            "give a pool of role aggregated, or both a prefill and a decode pool", "spec.pools"),
    refused("workers that do all beside those that decode",
            {"spec.pools": [engines(), engines(name="d", role="decode")]},
            "Use one kind or the other"),
    refused("a role that does not exist", {"spec.pools[0].role": "draft"},
            'supported values: "aggregated", "prefill", "decode", "encode"'),
    refused("an engine that does not exist", {"spec.pools[0].backend": "tgi"},
            'supported values: "vllm", "sglang", "trtllm", "simulator"'),
    refused("encoding by SGLang",
            {"spec.pools": [engines(), engines(name="e", role="encode", backend="sglang")]},
            "only vllm and simulator pools can be of role encode", "spec.pools[1].role"),
    refused("two pools of one name", {"spec.pools": [engines(), engines()]}, "Duplicate value",
            "spec.pools[1]"),
    refused("a pool without a name", {"spec.pools[0].name": GONE}, "Required value"),
    refused("a pool's name with a capital letter", {"spec.pools[0].name": "GPU"},
            "must be lower case letters, digits and hyphens"),
    refused("a pool's name of 16 characters", {"spec.pools[0].name": "a" * 16},
            "may not be more than 15 bytes"),
    refused("a pool by the name of another part", {"spec.pools[0].name": "frontend"},
            "is the name of another part of the object. Use another name"),
    refused("a pool without a template", {"spec.pools[0].template": GONE},
            "give exactly one of template", "spec.pools[0]"),
    refused("a pool that is made and found",
            {"spec.pools[0].selector": {"matchLabels": {"app": "vllm"}}},
            "give exactly one of template", "spec.pools[0]"),
    refused("a pool that is found twice", {"spec.pools": [THEIRS | OUTSIDE]},
            "give exactly one of template", "spec.pools[0]"),
    refused("workers by number and by load",
            {"spec.pools[0]": engines(replicas=2, autoscaling={"maxReplicas": 4})},
            "give replicas or autoscaling, not both", "spec.pools[0].autoscaling"),
    refused("more workers at least than at most",
            {"spec.pools[0].autoscaling": {"minReplicas": 3, "maxReplicas": 2}},
            "must be at most maxReplicas, which is 2", "spec.pools[0].autoscaling.minReplicas"),
    refused("workers by load without a limit", {"spec.pools[0].autoscaling": {}},
            "Required value", "spec.pools[0].autoscaling.maxReplicas"),
    refused("1001 workers", {"spec.pools[0].replicas": 1001},
            "should be less than or equal to 1000"),
    refused("a number of workers that others run", {"spec.pools": [THEIRS | {"replicas": 2}]},
            "only a pool with a template has replicas. Scale these workers where they are made",
            "spec.pools[0]"),
    refused("workers of others by load",
            {"spec.pools": [OUTSIDE | {"autoscaling": {"maxReplicas": 2}}]},
            "only a pool with a template has replicas. Scale these workers where they are made",
            "spec.pools[0]"),
    refused("a selector of every pod", {"spec.pools": [{"name": "a", "selector": {}}]},
            "Required value", "spec.pools[0].selector.matchLabels"),
    refused("a selector of no labels",
            {"spec.pools": [{"name": "a", "selector": {"matchLabels": {}}}]},
            "should have at least 1 properties", "spec.pools[0].selector.matchLabels"),
    refused("a label with a space",
            {"spec.pools": [{"name": "a", "selector": {"matchLabels": {"app": "my engine"}}}]},
            "must be labels of pods", "spec.pools[0].selector.matchLabels"),
    refused("an engine's port of 0",
            {"spec.pools": [{"name": "a", "selector": {"matchLabels": {"app": "a"}, "port": 0}}]},
            "should be greater than or equal to 1", "spec.pools[0].selector.port"),
    refused("an empty list of engines", {"spec.pools": [OUTSIDE | {"endpoints": []}]},
            "should have at least 1 items", "spec.pools[0].endpoints"),
]


def endpoint(member, value):
    return {"spec.pools": [changed(OUTSIDE, {f"endpoints[0].{member}": value})]}


def at_endpoint(member):
    return f"spec.pools[0].endpoints[0].{member}"


ENDPOINTS = [
    refused("257 engines outside",
            {"spec.pools": [{"name": "a", "endpoints": [
                {"name": f"e{i}", "url": "http://a:1"} for i in range(257)]}]},
            "must have at most 256 items", "spec.pools[0].endpoints"),
    refused("an engine outside without a URL", endpoint("url", GONE), "Required value",
            at_endpoint("url")),
    refused("an engine's name with an underscore", endpoint("name", "gpu_1"),
            "must be lower case letters, digits and hyphens", at_endpoint("name")),
    refused("an engine behind TLS", endpoint("url", "https://a:1"), "must be http://HOST:PORT",
            at_endpoint("url")),
    refused("an engine's URL with a path", endpoint("url", "http://a:1/v1"), "without a path",
            at_endpoint("url")),
    refused("events without a port", endpoint("events", "tcp://a"), "must be tcp://HOST:PORT",
            at_endpoint("events")),
    refused("a replay by HTTP", endpoint("replay", "http://a:1"), "must be tcp://HOST:PORT",
            at_endpoint("replay")),
    refused("two engines of one name",
            {"spec.pools": [OUTSIDE | {"endpoints": OUTSIDE["endpoints"] * 2}]},
            "Duplicate value", "spec.pools[0].endpoints[1]"),
]

TEMPLATES = [
    refused("an engine without an image", {f"{OWN}.image": GONE},
            "is required for an engine. Only the simulator has a default"),
    refused("a pull policy of an engine that does not exist", {f"{OWN}.imagePullPolicy": "Daily"},
            'supported values: "Always", "IfNotPresent", "Never"'),
    refused("129 arguments", {f"{OWN}.args": ["-v"] * 129}, "must have at most 128 items"),
    refused("an argument that is a number", {f"{OWN}.args": [1]}, "must be of type string",
            f"{OWN}.args[0]"),
    refused("a variable without a name", {f"{OWN}.env": [{"value": "1"}]}, "Required value",
            f"{OWN}.env[0].name"),
    refused("a variable that begins with a digit", {f"{OWN}.env": [{"name": "1A"}]},
            "not begin with a digit", f"{OWN}.env[0].name"),
    refused("a variable of two values",
            {f"{OWN}.env": [{"name": "A", "value": "1", "valueFrom": {"fieldRef": {
                "fieldPath": "metadata.name"}}}]},
            "give value or valueFrom, not both", f"{OWN}.env[0]"),
    refused("one variable twice", {f"{OWN}.env": [{"name": "A"}, {"name": "A"}]},
            "Duplicate value", f"{OWN}.env[1]"),
    refused("65 GPUs of one worker", {f"{OWN}.gpus": 65}, "should be less than or equal to 64"),
    refused("no ranks at all", {f"{OWN}.parallelism.tensor": 0},
            "should be greater than or equal to 1"),
    refused("shared memory with a space", {f"{OWN}.sharedMemory": "8 Gi"},
            "must be a size, for example 8Gi or 500M"),
    refused("a startup timeout of 0", {f"{OWN}.startupTimeout": "0s"},
            "must be a duration of 1s to 168h, for example 30m"),
    refused("GPUs as a word", {f"{OWN}.resources.limits": {"nvidia.com/gpu": "all"}},
            "must be quantities of 0 or more by resource, for example 500m, 2Gi or 1"),
    refused("memory of an engine with two units", {f"{OWN}.resources.requests": {"memory": "1GiB"}},
            "must be quantities of 0 or more by resource, for example 500m, 2Gi or 1"),
    refused("more GPUs asked for than allowed",
            {f"{OWN}.resources": {"requests": {"nvidia.com/gpu": 2},
                                  "limits": {"nvidia.com/gpu": "1"}}},
            "must be at most the limits", f"{OWN}.resources.requests"),
]

MESSAGING = [
    refused("NATS neither managed nor external", {"spec.nats": {}},
            "give exactly one of managed and external"),
    refused("NATS both managed and external",
            {"spec.nats": {"managed": {}, "external": {"urls": ["nats://a:4222"]}}},
            "give exactly one of managed and external"),
    refused("two servers of NATS", {"spec.nats.managed.replicas": 2}, 'supported values: "1", "3"'),
    refused("memory of NATS as a word",
            {"spec.nats.managed.resources": {"limits": {"memory": "some"}}},
            "must be quantities of 0 or more by resource, for example 500m, 2Gi or 1",
            "spec.nats.managed.resources.limits"),
    refused("CPU of NATS as a word",
            {"spec.nats.managed.resources": {"requests": {"cpu": "some"}}},
            "must be quantities of 0 or more by resource, for example 500m, 2Gi or 1",
            "spec.nats.managed.resources.requests"),
    refused("more CPU asked for NATS than allowed",
            {"spec.nats.managed.resources": {"requests": {"cpu": 1}, "limits": {"cpu": "0.5"}}},
            "must be at most the limits", "spec.nats.managed.resources.requests"),
    refused("external NATS without a URL", {"spec.nats": {"external": {"urls": []}}},
            "should have at least 1 items", "spec.nats.external.urls"),
    refused("NATS by HTTP", {"spec.nats": {"external": {"urls": ["http://a:8222"]}}},
            "must be nats://HOST:PORT or tls://HOST:PORT", "spec.nats.external.urls[0]"),
    refused("a password in the URL of NATS",
            {"spec.nats": {"external": {"urls": ["nats://me:secret@a:4222"]}}},
            "Give credentials in credentialsSecret", "spec.nats.external.urls[0]"),
    refused("one URL of NATS twice",
            {"spec.nats": {"external": {"urls": ["nats://a:1", "nats://a:1"]}}},
            "Duplicate value", "spec.nats.external.urls[1]"),
    refused("credentials without a Secret",
            {"spec.nats": {"external": {"urls": ["nats://a:1"], "credentialsSecret": {}}}},
            "Required value", "spec.nats.external.credentialsSecret.name"),
]


def external(secret):
    return {"spec.nats": {"external": {"urls": ["tls://a:4222"]} | secret}}


SECRETS = [
    refused("a Secret of credentials with a space",
            external({"credentialsSecret": {"name": "my nats"}}), "must be the name of a Secret",
            "spec.nats.external.credentialsSecret.name"),
    refused("a key of credentials with a space",
            external({"credentialsSecret": {"name": "nats", "key": "a b"}}),
            "must be a key of the Secret", "spec.nats.external.credentialsSecret.key"),
    refused("a Secret of certificates that ends with a hyphen",
            external({"caSecret": {"name": "ca-"}}), "must be the name of a Secret",
            "spec.nats.external.caSecret.name"),
    refused("a key of certificates with a colon",
            external({"caSecret": {"name": "ca", "key": "a:b"}}),
            "must be a key of the Secret", "spec.nats.external.caSecret.key"),
]

ROLLOUT = [
    refused("an unknown strategy", {"spec.rollout.strategy": "Canary"},
            'supported values: "Rolling", "BlueGreen", "Recreate"'),
    refused("a roll-out that cannot move",
            {"spec.rollout": {"maxSurge": 0, "maxUnavailable": 0}},
            "maxSurge and maxUnavailable cannot both be 0", "spec.rollout.maxUnavailable"),
    refused("a surge in per cent", {"spec.rollout.maxSurge": "25%"}, "must be of type integer"),
    refused("a drain of two hours", {"spec.rollout.drainTimeout": "2h"},
            "must be a duration of 1s to 1h, for example 2m"),
    refused("a deadline of 0", {"spec.rollout.progressDeadline": "0s"},
            "must be a duration of 1s to 168h, for example 30m"),
    refused("a far too long deadline", {"spec.rollout.progressDeadline": "99999999999h"},
            "must be a duration of 1s to 168h, for example 30m"),
    refused("a deadline in days", {"spec.rollout.progressDeadline": "1d"},
            "must be a duration of 1s to 168h, for example 30m"),
    refused("an unknown mode of monitors", {"spec.monitoring.podMonitor": "Maybe"},
            'supported values: "Auto", "Enabled", "Disabled"'),
    refused("scrapes without a pause", {"spec.monitoring.interval": "0s"},
            "must be a duration of 1s to 1h, for example 30s"),
    refused("33 labels of monitors",
            {"spec.monitoring.labels": {f"l{i}": "a" for i in range(33)}},
            "must have at most 32 items"),
]

UPDATES = [
    refused_update("another name of the model", {"spec.model.name": "other"},
            "cannot be changed, because clients request this name. Make another MultimodalRouter"),
    refused_update("another role of a pool",
            {"spec.pools": [engines(role="prefill"), engines(name="d", role="decode")]},
            "cannot be changed. Add a pool of another name and remove this one",
            "spec.pools[0].role"),
    refused_update("another engine of a pool", {"spec.pools[0].backend": "sglang"},
            "cannot be changed. Add a pool of another name and remove this one"),
    refused_update("a block size that an update spoils", {"spec.kv.blockSize": 0},
            "should be greater than or equal to 1"),
    refused_update("a template that an update takes away", {"spec.pools[0].template": GONE},
            "give exactly one of template", "spec.pools[0]"),
]

SCALES = [
    refused("a pool object without its router", {"spec.router": GONE}, "Required value", of=POOL),
    refused("a pool object without its pool", {"spec.pool": GONE}, "Required value", of=POOL),
    refused("a pool object of a router with a long name", {"spec.router": LONG},
            "may not be more than 40 bytes", of=POOL),
    refused("a pool object of a pool without a name", {"spec.pool": ""},
            "should be at least 1 chars long", of=POOL),
    refused("a negative number of workers", {"spec.replicas": -1},
            "should be greater than or equal to 0", of=POOL),
    refused("more workers than autoscaling allows", {"spec.replicas": 5},
            "must be 1 to 4, as autoscaling of the pool says", of=POOL),
    refused("fewer workers than autoscaling allows", {"spec.replicas": 0},
            "must be 1 to 4, as autoscaling of the pool says", of=POOL),
    refused("a limit of no workers", {"spec.maxReplicas": 0},
            "should be greater than or equal to 1", of=POOL),
    refused("a pool object that goes to another router", {"spec.router": "other"},
            "router and pool cannot be changed", "spec", of=POOL, is_update=True),
    refused("a pool object that goes to another pool", {"spec.pool": "other"},
            "router and pool cannot be changed", "spec", of=POOL, is_update=True),
]

REFUSALS = (OBJECTS + MODEL + BLOCKS + IMAGES + TRANSFER + FRONTEND + ROUTERS + POOLS + ENDPOINTS
            + TEMPLATES + MESSAGING + SECRETS + ROLLOUT + UPDATES + SCALES)
