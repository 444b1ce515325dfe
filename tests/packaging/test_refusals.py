# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""helm refuses wrong values before it makes any object, and names the path of the value. helm 3 and
helm 4 use different words."""

import pytest
from helm import Refused, default_values

DIGEST = "sha256:" + "a" * 64
# (values, path of the wrong value, with dots)
WRONG = [
    # Unknown keys at every level.
    ({"imagee": {}}, "imagee"),
    ({"image": {"name": "a"}}, "image.name"),
    ({"routerImage": {"pullPolicy": "Always"}}, "routerImage.pullPolicy"),
    ({"natsImage": {"version": "2"}}, "natsImage.version"),
    ({"downloadImage": {"url": "a"}}, "downloadImage.url"),
    ({"imagePullSecrets": [{"secret": "a"}]}, "imagePullSecrets.0.secret"),
    ({"crds": {"kep": True}}, "crds.kep"),
    ({"leaderElection": {"enable": True}}, "leaderElection.enable"),
    ({"rbac": {"created": True}}, "rbac.created"),
    ({"serviceAccount": {"annotation": {}}}, "serviceAccount.annotation"),
    ({"podDisruptionBudget": {"min": 1}}, "podDisruptionBudget.min"),
    ({"networkPolicy": {"ingress": []}}, "networkPolicy.ingress"),
    ({"networkPolicy": {"from": [{"pods": {}}]}}, "networkPolicy.from.0.pods"),
    ({"metrics": {"serviceMonitor": {}}}, "metrics.serviceMonitor"),
    ({"metrics": {"podMonitor": {"label": {}}}}, "metrics.podMonitor.label"),
    ({"dashboards": {"label": {}}}, "dashboards.label"),
    ({"alerts": {"threshold": {}}}, "alerts.threshold"),
    ({"log": {"colour": "red"}}, "log.colour"),
    ({"resources": {"limit": {}}}, "resources.limit"),
    ({"extraEnv": [{"name": "A", "val": "b"}]}, "extraEnv.0.val"),
    # Wrong types.
    ({"replicaCount": "2"}, "replicaCount"),
    ({"replicaCount": 1.5}, "replicaCount"),
    ({"watchNamespaces": "team"}, "watchNamespaces"),
    ({"crds": True}, "crds"),
    ({"crds": {"enabled": "yes"}}, "crds.enabled"),
    ({"commonLabels": {"a": 1}}, "commonLabels.a"),
    ({"podAnnotations": {"a": True}}, "podAnnotations.a"),
    ({"nodeSelector": []}, "nodeSelector"),
    ({"tolerations": {}}, "tolerations"),
    ({"extraArgs": "--poll-interval=1s"}, "extraArgs"),
    ({"image": {"tag": 5}}, "image.tag"),
    ({"alerts": {"thresholds": {"errorsHigh": "5%"}}}, "alerts.thresholds.errorsHigh"),
    ({"metrics": {"podMonitor": {"enabled": "maybe"}}}, "metrics.podMonitor.enabled"),
    # Values out of range or malformed.
    ({"replicaCount": -1}, "replicaCount"),
    ({"replicaCount": 11}, "replicaCount"),
    ({"metrics": {"port": 80}}, "metrics.port"),
    ({"networkPolicy": {"apiServerPorts": [0]}}, "networkPolicy.apiServerPorts.0"),
    ({"networkPolicy": {"apiServerPorts": []}}, "networkPolicy.apiServerPorts"),
    ({"networkPolicy": {"from": [{}]}}, "networkPolicy.from.0"),
    ({"image": {"digest": "sha256:abc"}}, "image.digest"),
    ({"image": {"digest": DIGEST.upper()}}, "image.digest"),
    ({"image": {"repository": ""}}, "image.repository"),
    ({"image": {"repository": "Upper/Case"}}, "image.repository"),
    ({"image": {"registry": "http://registry.example"}}, "image.registry"),
    ({"image": {"tag": "a b"}}, "image.tag"),
    ({"image": {"pullPolicy": "Sometimes"}}, "image.pullPolicy"),
    ({"watchNamespaces": [""]}, "watchNamespaces.0"),
    ({"watchNamespaces": ["Team"]}, "watchNamespaces.0"),
    ({"watchNamespaces": ["a", "a"]}, "watchNamespaces"),
    ({"watchNamespaces": [f"n{i}" for i in range(65)]}, "watchNamespaces"),
    ({"leaderElection": {"leaseDuration": "soon"}}, "leaderElection.leaseDuration"),
    ({"leaderElection": {"leaseName": ""}}, "leaderElection.leaseName"),
    ({"serviceAccount": {"name": "a_b"}}, "serviceAccount.name"),
    ({"log": {"level": "loud"}}, "log.level"),
    ({"log": {"format": "yaml"}}, "log.format"),
    ({"extraArgs": ["poll-interval=1s"]}, "extraArgs.0"),
    ({"extraEnv": [{"value": "b"}]}, "extraEnv.0"),
    ({"podDisruptionBudget": {"maxUnavailable": "many"}}, "podDisruptionBudget.maxUnavailable"),
    # Values that contradict other values.
    ({"podDisruptionBudget": {"minAvailable": 2, "maxUnavailable": ""}},
     "podDisruptionBudget.minAvailable"),
    ({"podDisruptionBudget": {"minAvailable": "100%", "maxUnavailable": ""}},
     "podDisruptionBudget.minAvailable"),
    ({"podDisruptionBudget": {"minAvailable": 1}}, "podDisruptionBudget.minAvailable"),
    ({"podDisruptionBudget": {"maxUnavailable": ""}}, "podDisruptionBudget.maxUnavailable"),
    ({"leaderElection": {"enabled": False}}, "replicaCount"),
    ({"leaderElection": {"leaseDuration": "5s"}}, "leaderElection.leaseDuration"),
    ({"leaderElection": {"leaseDuration": "10000ms"}}, "leaderElection.leaseDuration"),
    ({"leaderElection": {"retryPeriod": "9s"}}, "leaderElection.renewDeadline"),
    ({"podLabels": {"app.kubernetes.io/name": "mine"}}, "podLabels"),
    ({"commonLabels": {"helm.sh/chart": "mine"}}, "commonLabels"),
    ({"dashboards": {"labels": {"app.kubernetes.io/instance": "a"}}}, "dashboards.labels"),
    ({"alerts": {"labels": {"app.kubernetes.io/version": "a"}}}, "alerts.labels"),
    ({"metrics": {"podMonitor": {"labels": {"app.kubernetes.io/name": "a"}}}},
     "metrics.podMonitor.labels"),
    ({"runAsUser": 0}, "runAsUser"),
    ({"runAsUser": "nobody"}, "runAsUser"),
    ({"alerts": {"disabled": ["SightlineDwon"]}}, "alerts.disabled.0"),
    ({"alerts": {"thresholds": {"errorHigh": 1}}}, "alerts.thresholds.errorHigh"),
]


def names(text, path):
    """Returns whether the message has the path, or the path of the map around it and the last key.
    helm 3 writes a.b.0, helm 4 writes at '/a/b/0', and templates write a.b[0]."""
    parts = path.split(".")
    indexed = ".".join(parts).replace(".0", "[0]")
    if any(f"{form}" in text for form in (f"- {path}:", f"'/{'/'.join(parts)}'", f"{indexed}:")):
        return True
    around = parts[:-1]
    is_around = not around or f"- {'.'.join(around)}:" in text or f"'/{'/'.join(around)}'" in text
    return is_around and (f"'{parts[-1]}'" in text or f" {parts[-1]} " in text)


@pytest.mark.parametrize("values, path", WRONG, ids=[f"{i}-{p}" for i, (_, p) in enumerate(WRONG)])
def test_helm_refuses_a_wrong_value_with_its_path(helm, values, path):
    with pytest.raises(Refused) as refused:
        helm.text(values=values)
    assert names(str(refused.value), path), str(refused.value)


def test_helm_accepts_a_numeric_tag_only_as_text(helm):
    with pytest.raises(Refused) as refused:
        helm.text("--set", "image.tag=5")
    assert names(str(refused.value), "image.tag")
    assert "sightline-operator:5\n" in helm.text("--set-string", "image.tag=5")


def test_wrong_values_reach_every_level():
    assert len(WRONG) >= 40
    for top, value in default_values().items():
        is_closed = isinstance(value, dict) and value and top not in ("nodeSelector",)
        unknown = any(top in values and path.startswith(top + ".") for values, path in WRONG)
        assert not is_closed or unknown, f"no wrong value below {top}"


def test_labels_and_annotations_accept_any_key(helm):
    free = {"team.example/cost-centre": "42", "app.kubernetes.io/part-of": "vision"}
    text = helm.text(values={
        "commonLabels": free, "podLabels": free, "podAnnotations": free, "nodeSelector": free,
        "serviceAccount": {"annotations": free}, "dashboards": {"labels": free},
        "alerts": {"labels": free}, "metrics": {"podMonitor": {"enabled": True, "labels": free}},
        "resources": {"limits": {"example.com/thing": 1}}})
    assert text.count("team.example/cost-centre") > 10


def test_a_parent_chart_may_pass_global_values(helm):
    helm.text(values={"enabled": True, "global": {"imageRegistry": "a", "deep": {"er": [1]}}})
