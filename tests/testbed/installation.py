# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""The product installed in a bed with real pods, as docs/operator.md says, of the build tree."""

import re

from .bed import ROOT

SYSTEM = "sightline-system"
INSTALLED = "config/default"
# Images that the manifests name, and those that `hack/testbed images` loads.
IMAGES = {"sightline-operator": "sightline-operator:testbed", "sightline": "sightline:testbed",
          "nats": "nats:testbed"}
READY_S = 120


def with_own_images(manifests):
    """They are named by themselves (image: NAME:TAG) and in flags (--router-image=NAME:TAG)."""
    for name, ours in IMAGES.items():
        manifests, found = re.subn(rf"(?<=[ =]){name}:[\w.-]+$", ours, manifests, flags=re.M)
        assert found, f"the manifests name no image {name}"
    return manifests


def install(kubectl):
    """`kubectl(*arguments, given=None)` takes a text as standard input. Returns when it runs."""
    manifests = with_own_images(kubectl("kustomize", ROOT / INSTALLED))
    kubectl("apply", "-f", "-", given=manifests)
    kubectl("-n", SYSTEM, "rollout", "status", "deployment/sightline-operator",
            f"--timeout={READY_S}s")
