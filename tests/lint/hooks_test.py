# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Tests the git hooks of hack/hooks."""

import subprocess
from pathlib import Path

import pytest

HOOKS = Path(__file__).resolve().parents[2] / "hack/hooks"


def status_of(tmp_path, message):
    path = tmp_path / "message"
    path.write_text(message)
    return subprocess.run([HOOKS / "commit-msg", path], capture_output=True, check=False).returncode


@pytest.mark.parametrize("message", [
    "Add a hook\n", "Add a hook\n\nBecause a subject is read most.\n", "A" * 72 + "\n",
    "Merge branch 'other' into main that has a very long name, longer than all other subjects\n",
    "Seed the draw\n"])
def test_commit_msg_accepts_a_plain_subject(message, tmp_path):
    assert status_of(tmp_path, message) == 0


@pytest.mark.parametrize("message", [
    "A" * 73 + "\n", "add a hook\n", "Add a hook.\n", "Add a hook\nand more\n"])
def test_commit_msg_rejects_other_subjects(message, tmp_path):
    assert status_of(tmp_path, message) == 1


def test_pre_commit_rejects_a_file_with_another_format(tmp_path):
    def git(*command):
        return subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@example.org",
                               "-c", f"core.hooksPath={HOOKS}", *command],
                              cwd=tmp_path, capture_output=True, check=False).returncode

    git("init", "-q")
    (tmp_path / ".clang-format").write_text("BasedOnStyle: Google\n")
    (tmp_path / "a.cc").write_text("int  a ;\n")
    git("add", "-A")
    assert git("commit", "-qm", "Add a file") == 1
    (tmp_path / "a.cc").write_text("int a;\n")
    git("add", "-A")
    assert git("commit", "-qm", "Add a file") == 0
