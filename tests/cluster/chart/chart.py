# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""The chart installed in a bed with the images of the build tree, and a Prometheus for it."""

import json
import pathlib
import re
import shutil

from testbed import network
from watching import Watch

ROOT = pathlib.Path(__file__).resolve().parents[3]
CHART = ROOT / "charts/sightline"
RELEASE, NAMESPACE = "sightline", "sightline-system"
KINDS = ("multimodalrouters.sightline.dev", "multimodalrouterpools.sightline.dev")
OURS = [f"--set={name}.tag=testbed" for name in ("image", "routerImage", "natsImage")]
OURS.append("--set=image.pullPolicy=Never")
WAIT = ["--wait", "--timeout=120s"]


def of_version(folder, version):
    """Returns a copy of the chart with another version."""
    made = folder / "sightline"
    shutil.copytree(CHART, made)
    text = (made / "Chart.yaml").read_text(encoding="utf-8")
    (made / "Chart.yaml").write_text(re.sub(r"(?m)^(version|appVersion): .*", rf"\1: {version}",
                                            text), encoding="utf-8")
    return made


class Installation:
    def __init__(self, helm, commands):
        self.helm = helm
        self.kubectl = commands.kubectl
        self.releases = []

    def install(self, *arguments, chart=CHART, release=RELEASE, namespace=NAMESPACE, **options):
        self.releases.append((release, namespace))
        return self.helm("install", release, chart, "--namespace", namespace,
                         "--create-namespace", *OURS, *WAIT, *arguments, **options)

    def upgrade(self, *arguments, chart=CHART):
        return self.helm("upgrade", RELEASE, chart, "--namespace", NAMESPACE, *OURS, *WAIT,
                         *arguments)

    def uninstall(self, release=RELEASE, namespace=NAMESPACE):
        self.releases.remove((release, namespace))
        return self.helm("uninstall", release, "--namespace", namespace, "--wait")

    def remove(self):
        """Removes the releases, and the kinds, which Helm keeps."""
        for release, namespace in list(self.releases):
            self.helm("uninstall", release, "--namespace", namespace, "--wait", check=False)
        self.kubectl("delete", "crd", "--ignore-not-found", "--timeout=60s", *KINDS)
        # An operator that lost its rights cannot give up its lease.
        self.kubectl("delete", "leases", "--all", "--namespace", NAMESPACE)


def sanitized(label):
    return re.sub(r"[^a-zA-Z0-9_]", "_", label)


def targets(kubectl):
    """Returns the targets that the Prometheus operator makes from the PodMonitors:
    job -> [(address, labels)]."""
    monitors = json.loads(kubectl("get", "podmonitors", "-A", "-o", "json"))["items"]
    pods = json.loads(kubectl("get", "pods", "-A", "-o", "json"))["items"]
    found = {}
    for monitor in monitors:
        meta, spec = monitor["metadata"], monitor["spec"]
        for pod in pods:
            labels = pod["metadata"].get("labels", {})
            if pod["metadata"]["namespace"] != meta["namespace"] or \
                    not spec["selector"]["matchLabels"].items() <= labels.items() or \
                    "podIP" not in pod["status"]:
                continue
            of_target = {"namespace": meta["namespace"], "pod": pod["metadata"]["name"]}
            of_target |= {sanitized(name): labels[name] for name in spec.get("podTargetLabels", ())
                          if name in labels}
            for endpoint in spec["podMetricsEndpoints"]:
                for container in pod["spec"]["containers"] + pod["spec"].get("initContainers", []):
                    for port in container.get("ports", []):
                        if port.get("name") == endpoint["port"]:
                            found.setdefault(f"{meta['namespace']}/{meta['name']}", []).append((
                                f"{pod['status']['podIP']}:{port['containerPort']}",
                                of_target | {"container": container["name"]}))
    return found


class ClusterWatch(Watch):
    """A Prometheus in the bed's network."""

    def __init__(self, commands, folder, **options):
        super().__init__(folder, targets(commands.kubectl), **options)
        self.bed = commands.bed

    def _start(self, *arguments):
        with network.inside(self.bed):
            super()._start(*arguments)

    def get(self, *arguments, **options):
        with network.inside(self.bed):
            return super().get(*arguments, **options)
