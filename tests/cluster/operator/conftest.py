# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
import pathlib
import sys

import pytest

from testbed.namespace import RESTRICTED

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from installed import BUILD, MODEL, READY_S, ROLLING, ROOT, SYSTEM, router  # noqa: E402

# Images of the manifests, and those of the build tree.
IMAGES = {"sightline-operator:0.1.0": "sightline-operator:testbed",
          "sightline:0.1.0": "sightline:testbed", "nats:2.15.1": "nats:testbed"}


@pytest.fixture(scope="session")
def operator(pods_bed, tmp_path_factory):
    """The operator, installed as the documentation says; its log stands below a failure of it."""
    manifests = pods_bed.kubectl("kustomize", ROOT / "config/default")
    for name, ours in IMAGES.items():
        assert name in manifests
        manifests = manifests.replace(f"{name}\n", f"{ours}\n")
    file = tmp_path_factory.mktemp("operator") / "operator.yaml"
    file.write_text(manifests)
    pods_bed.kubectl("apply", "-f", file)
    pods_bed.kubectl("-n", SYSTEM, "rollout", "status", "deployment/sightline-operator",
                     "--timeout=120s")
    yield pods_bed
    print(pods_bed.kubectl("-n", SYSTEM, "logs", "deployment/sightline-operator", "--tail=100"))


@pytest.fixture
def home(operator, make_namespace):
    """A namespace with the model's files."""
    namespace = make_namespace(labels=RESTRICTED)
    namespace.mount_directory("models", BUILD / "models" / MODEL)
    return namespace


@pytest.fixture
def demo(home):
    """A router that is Ready, and a namespace for it."""
    home.apply(router(ROLLING))
    home.wait("mmr/demo", "Ready", READY_S)
    return home
