# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Tests which objects the chart renders for which values. UPDATE_GOLDENS=1 make test-packaging
writes the rendered objects as the new goldens."""

import json
import os
import pathlib
import subprocess

import pytest
import yaml
from helm import (CHART, CI, MONITORING, ROOT, Refused, by_place, default_values, objects_of,
                  place)

GOLDEN = pathlib.Path(__file__).resolve().parent / "golden"
UPDATE = bool(os.environ.get("UPDATE_GOLDENS"))
# A golden has only the metadata of these. Other tests compare their text with its source.
COPIED = ("CustomResourceDefinition", "ConfigMap", "PrometheusRule")


def golden_of(objects):
    shown = []
    for one in objects:
        if one["kind"] in COPIED:
            metadata = {key: value for key, value in one["metadata"].items()}
            one = {"apiVersion": one["apiVersion"], "kind": one["kind"], "metadata": metadata}
        shown.append(one)
    return yaml.safe_dump_all(sorted(shown, key=place), sort_keys=True, width=100)


def test_helm_lint_accepts_every_example(helm):
    for values in CI:
        said = helm.run("lint", "--strict", CHART, "--values", values)
        assert "[ERROR]" not in said and "[WARNING]" not in said, f"{values.name}: {said}"


@pytest.mark.parametrize("values", CI, ids=lambda path: path.name.removesuffix("-values.yaml"))
def test_an_example_renders_its_golden(helm, values):
    apis = [argument for api in MONITORING for argument in ("--api-versions", api)]
    rendered = golden_of(helm.objects("--values", values, *apis))
    golden = GOLDEN / f"{values.name.removesuffix('-values.yaml')}.yaml"
    if UPDATE:
        golden.write_text(rendered, encoding="utf-8")
    assert rendered == golden.read_text(encoding="utf-8")


def test_examples_and_goldens_match():
    assert len(CI) >= 12
    assert {one.stem for one in GOLDEN.glob("*.yaml")} == {
        one.name.removesuffix("-values.yaml") for one in CI}


def test_chart_renders_monitoring_objects_for_existing_kinds(helm):
    kinds = {one["kind"] for one in helm.objects()}
    assert not kinds & {"PodMonitor", "PrometheusRule"}
    kinds = {one["kind"] for one in helm.objects("--api-versions", MONITORING[0])}
    assert "PodMonitor" in kinds and "PrometheusRule" not in kinds


def test_chart_has_the_projects_kinds(helm4):
    copies = {path.name: path.read_bytes() for path in (CHART / "files/crds").iterdir()}
    ours = {path.name: path.read_bytes() for path in (ROOT / "crds").glob("sightline.dev_*.yaml")}
    assert copies == ours, "cp crds/sightline.dev_*.yaml charts/sightline/files/crds/"
    for one in helm4.objects():
        if one["kind"] == "CustomResourceDefinition":
            assert one["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}
            plural = one["metadata"]["name"].partition(".")[0]
            source = yaml.safe_load(ours[f"sightline.dev_{plural}.yaml"])
            assert one["spec"] == source["spec"]


def test_chart_has_the_projects_version():
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    cmake = (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")
    assert chart["version"] == chart["appVersion"]
    assert f"project(sightline VERSION {chart['version']} " in cmake


# Labels and annotations that only helm's installation has.
HELMS_OWN = ("app.kubernetes.io/instance", "app.kubernetes.io/version",
             "app.kubernetes.io/managed-by", "helm.sh/chart", "helm.sh/resource-policy")
# Other differences of config/default and the chart: helm needs the namespace before a release, and
# only the chart has a test, boards and rules.
ONLY_IN_CONFIG = {"Namespace -/sightline-system"}
ONLY_IN_CHART = {"Pod sightline-system/sightline-operator-check"}
# Flags that the chart sets to the operator's own defaults (docs/operator.md).
DEFAULTS = {"--lease-name=sightline-operator", "--lease-duration=15s", "--renew-deadline=10s",
            "--retry-period=2s", "--admin-port=8080", "--log-level=info"}


def without_helms_own(thing):
    if isinstance(thing, list):
        return [without_helms_own(one) for one in thing]
    if not isinstance(thing, dict):
        return thing
    kept = {key: without_helms_own(value) for key, value in thing.items() if key not in HELMS_OWN}
    return {key: value for key, value in kept.items()
            if not (key in ("labels", "annotations") and value == {})}


def comparable(objects):
    made = by_place(without_helms_own(objects))
    for one in made.values():
        one["metadata"].pop("labels", None)
        if one["kind"] == "Deployment":
            one["spec"]["template"]["metadata"].pop("labels")
            container = one["spec"]["template"]["spec"]["containers"][0]
            container["args"] = [flag for flag in container["args"] if flag not in DEFAULTS]
        for subject in one.get("subjects", []):
            subject.pop("namespace", None)
        if "rules" in one and one["metadata"]["name"] != "sightline-admin":
            one["rules"] = sorted(one["rules"], key=json.dumps)
    return made


def test_kustomize_makes_the_same_objects(helm4, kubectl):
    kustomized = subprocess.run([kubectl, "kustomize", ROOT / "config/default"], text=True,
                                capture_output=True, check=True).stdout
    ours = comparable(objects_of(kustomized))
    charts = comparable(helm4.objects(values={"dashboards": {"enabled": False}}))
    assert ours.keys() - charts.keys() == ONLY_IN_CONFIG
    assert charts.keys() - ours.keys() == ONLY_IN_CHART
    for name in ours.keys() & charts.keys():
        assert ours[name] == charts[name], name


def leaves(value, path=()):
    """Yields every path in values.yaml with a scalar, a list or an empty map, and its value."""
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from leaves(inner, (*path, key))
    else:
        yield path, value


# Changed values of leaves, where the automatic change would be refused or have no effect.
OTHER = {
    "image.digest": "sha256:" + "a" * 64, "routerImage.digest": "sha256:" + "a" * 64,
    "natsImage.digest": "sha256:" + "a" * 64, "downloadImage.digest": "sha256:" + "a" * 64,
    "image.pullPolicy": "Always", "imagePullSecrets": [{"name": "secret"}],
    "watchNamespaces": ["team"], "log.level": "debug", "log.format": "json",
    "leaderElection.leaseDuration": "20s", "leaderElection.renewDeadline": "12s",
    "leaderElection.retryPeriod": "3s",
    "podDisruptionBudget.minAvailable": "50%", "podDisruptionBudget.maxUnavailable": 2,
    "networkPolicy.from": [{"podSelector": {}}], "networkPolicy.apiServerPorts": [8443],
    "metrics.podMonitor.enabled": True, "metrics.podMonitor.interval": "15s",
    "alerts.enabled": True, "tolerations": [{"operator": "Exists"}],
    "topologySpreadConstraints": [{"maxSkew": 1}], "extraArgs": ["--poll-interval=9s"],
    "extraEnv": [{"name": "A", "value": "b"}], "affinity": {"nodeAffinity": {}},
    "resources.requests.cpu": "60m", "runAsUser": 1000,
}
# Other values that a value needs to have an effect.
BESIDE = {
    "networkPolicy.enabled": {},
    "networkPolicy.": {"networkPolicy": {"enabled": True}},
    "metrics.podMonitor.enabled": {},
    "metrics.podMonitor.": {"metrics": {"podMonitor": {"enabled": True}}},
    "alerts.enabled": {},
    "alerts.": {"alerts": {"enabled": True}},
    "downloadImage.": {"downloadImage": {"repository": "tools"}},
    "leaderElection.enabled": {"replicaCount": 1},
}

# Other values that must change too, because helm refuses the combination otherwise.
WITH = {"podDisruptionBudget.minAvailable": {"podDisruptionBudget": {"maxUnavailable": ""}}}


def other(path, value):
    name = ".".join(path)
    if name in OTHER:
        return OTHER[name]
    if name == "alerts.disabled":
        return first_alert()
    if name == "alerts.thresholds":
        return first_threshold()
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, str):
        return "other"
    assert value == {}, f"{name} needs a line in OTHER"
    return {"example.com/key": "other"}


def first_alert():
    for path in sorted((CHART / "alerts").glob("*.yaml")):
        return [yaml.safe_load(path.read_text(encoding="utf-8"))["groups"][0]["rules"][0]["alert"]]
    return []


def first_threshold():
    names = yaml.safe_load((CHART / "alert-thresholds.yaml").read_text(encoding="utf-8"))
    return {sorted(names)[0]: 0.123} if names else {}


def merged(one, two):
    both = dict(one)
    for key, value in two.items():
        inner = both.get(key)
        both[key] = merged(inner, value) if isinstance(inner, dict) else value
    return both


def at(path, value):
    for key in reversed(path):
        value = {key: value}
    return value


LEAVES = list(leaves(default_values()))


@pytest.mark.parametrize("path, value", LEAVES, ids=[".".join(path) for path, _ in LEAVES])
def test_each_value_changes_the_rendered_objects(helm4, path, value):
    name = ".".join(path)
    beside = next((values for prefix, values in BESIDE.items() if name.startswith(prefix)), {})
    before = helm4.text(values=beside)
    changed = merged(merged(beside, WITH.get(name, {})), at(path, other(path, value)))
    assert helm4.text(values=changed) != before


# Texts that YAML parses as another type or as its own syntax, unless they are quoted.
ODD = ("yes", "12", "0x10", "null", "a: b", "!t x", "#c", "{{ .Release.Name }}", "x\n  y: true",
       "it's", 'a"b', "a\tb")
EVERYTHING = {"dashboards": {"enabled": True}, "networkPolicy": {"enabled": True},
              "metrics": {"podMonitor": {"enabled": True}}, "alerts": {"enabled": True},
              "downloadImage": {"repository": "tools"}}
TEXTS = [path for path, value in LEAVES if isinstance(value, str)]


def texts(value):
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from texts(inner)
    elif isinstance(value, str):
        yield value


@pytest.mark.parametrize("path", TEXTS, ids=".".join)
def test_helm_renders_or_refuses_odd_texts(helm4, path):
    count = len(helm4.objects(values=EVERYTHING))
    for odd in ODD:
        try:
            objects = helm4.objects(values=merged(EVERYTHING, at(path, odd)))
        except Refused:
            continue
        assert len(objects) == count, odd
        assert any(odd in text for one in objects for text in texts(one)), odd


def test_names_of_digits_remain_strings(helm4):
    values = {**EVERYTHING, "watchNamespaces": ["12"], "fullnameOverride": "34",
              "serviceAccount": {"name": "56"}}
    told = helm4.run("template", "78", CHART, "--namespace", "90", "--values", "-",
                     given=json.dumps(values))
    metadata = [one["metadata"] for one in objects_of(told)]
    assert {one.get("namespace") for one in metadata} == {None, "12", "90"}
    assert all(isinstance(value, str) for one in metadata
               for value in (one["name"], *one.get("labels", {}).values()))
    for one in objects_of(told):
        for subject in one.get("subjects", ()):
            assert (subject["name"], subject["namespace"]) == ("56", "90")
        if "roleRef" in one:
            assert one["roleRef"]["name"].startswith("34")
