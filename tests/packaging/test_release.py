# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Tests when hack/release refuses a release."""

import re
import shutil
import subprocess

import pytest
from helm import ROOT

FILES = ("CMakeLists.txt", "CHANGELOG.md", "charts/sightline/Chart.yaml",
         "config/manager/deployment.yaml", "docs/install.md", "hack/release", "hack/oci.py",
         "hack/product_files.py")
VERSION = re.search(r"sightline VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text())[1]


class Tree:
    """A separate repository with the files that hack/release reads."""

    def __init__(self, folder):
        self.folder = folder
        for name in FILES:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
        self.git("init", "--quiet")
        self.commit()

    def git(self, *arguments):
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@example.com",
                        *arguments], cwd=self.folder, check=True, capture_output=True)

    def commit(self):
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", "x")

    def change(self, name, old, new):
        path = self.folder / name
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))

    def check(self, version=VERSION):
        """Returns the error text of hack/release --check, or an empty text."""
        run = subprocess.run([self.folder / "hack/release", "--check", version], text=True,
                             capture_output=True)
        assert (run.returncode != 0) == bool(run.stderr)
        return run.stderr


@pytest.fixture
def tree(tmp_path):
    return Tree(tmp_path)


def test_the_version_of_the_tree_can_be_released(tree):
    assert tree.check() == ""


def test_release_refuses_a_tree_with_changes(tree):
    (tree.folder / "new").touch()
    assert "the tree has changes" in tree.check()


def test_release_refuses_a_released_or_lower_version(tree):
    tree.git("tag", f"v{VERSION}")
    assert "is out already" in tree.check()
    tree.git("tag", "v99.0.0")
    assert "v99.0.0 is out already" in tree.check()


def test_release_refuses_a_version_missing_in_files(tree):
    assert "CMakeLists.txt has another version" in tree.check("98.0.0")
    tree.change("config/manager/deployment.yaml", f"operator:{VERSION}", "operator:0.0.1")
    tree.commit()
    assert "config/manager/deployment.yaml has another version" in tree.check()


def test_release_refuses_a_version_without_changelog_entry(tree):
    text = (tree.folder / "CHANGELOG.md").read_text()
    (tree.folder / "CHANGELOG.md").write_text(text[:text.index(f"## {VERSION}")]
                                              + f"## {VERSION}\n\n## 0.0.9\n\n- Old.\n")
    tree.commit()
    assert f"CHANGELOG.md says nothing below '## {VERSION}'" in tree.check()


@pytest.mark.parametrize("wrong", ["", "1", "1.2", "v1.2.3", "1.2.3-rc1", "latest"])
def test_release_refuses_an_invalid_version(tree, wrong):
    assert "give three numbers" in tree.check(wrong)
