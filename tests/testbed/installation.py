# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Installs the product of the build tree in a bed with real pods, as docs/operator.md says."""

import re

from .bed import ROOT

SYSTEM = "sightline-system"
INSTALLED = "config/default"
# Names of images in the manifests, and the images that `hack/testbed images` loads for them.
IMAGES = {"sightline-operator": "sightline-operator:testbed", "sightline": "sightline:testbed",
          "nats": "nats:testbed"}
READY_S = 120


def with_own_images(manifests):
    """Replaces image names in fields (image: NAME:TAG) and flags (--router-image=NAME:TAG)."""
    for name, ours in IMAGES.items():
        manifests, found = re.subn(rf"(?<=[ =]){name}:[\w.-]+$", ours, manifests, flags=re.M)
        assert found, f"the manifests name no image {name}"
    return manifests


def install(kubectl):
    """Installs the operator and returns when it runs. `kubectl(*arguments, given=None)` runs
    kubectl with the text `given` as its standard input."""
    manifests = with_own_images(kubectl("kustomize", ROOT / INSTALLED))
    kubectl("apply", "-f", "-", given=manifests)
    kubectl("-n", SYSTEM, "rollout", "status", "deployment/sightline-operator",
            f"--timeout={READY_S}s")
