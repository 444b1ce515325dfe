# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""The parts of a test bed, without a cluster."""

import json
import multiprocessing
import os
import pathlib
import re
import signal
import subprocess
import sys
import tarfile
import time

import pytest

from testbed import cache, checks, images, processes, product_images, toolchain
from testbed.bed import Bed


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("SIGHTLINE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def _note(part, notes):
    with open(notes, "a", encoding="utf-8") as file:
        file.write(f"{os.getpid()}\n")
    part.write_text("made")


def test_one_of_several_processes_makes_a_shared_file(own_cache, tmp_path):
    notes = tmp_path / "notes"
    fork = multiprocessing.get_context("fork")
    workers = [fork.Process(target=cache.once, args=("thing", lambda part: _note(part, notes)))
               for _ in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0] * 8
    assert len(notes.read_text().splitlines()) == 1
    assert (own_cache / "thing").read_text() == "made"


def test_an_interrupted_file_is_made_again(own_cache):
    def half(part):
        part.write_text("half")
        os.kill(os.getpid(), signal.SIGKILL)

    worker = multiprocessing.get_context("fork").Process(target=cache.once, args=("thing", half))
    worker.start()
    worker.join()
    assert worker.exitcode == -signal.SIGKILL
    assert not (own_cache / "thing").exists()
    assert cache.once("thing", lambda part: part.write_text("whole")).read_text() == "whole"
    assert [path.name for path in own_cache.iterdir()] == ["thing"]


def test_a_failed_attempt_leaves_no_file(own_cache):
    def fail(part):
        part.mkdir()
        raise RuntimeError("no")

    with pytest.raises(RuntimeError):
        cache.once("thing", fail)
    assert list(own_cache.iterdir()) == []


def test_a_dead_process_counts_as_dead_before_it_is_reaped():
    child = subprocess.Popen(["true"])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert processes.start_of(child.pid) is None
    child.wait()


def test_another_start_time_means_another_process():
    own = processes.start_of(os.getpid())
    assert processes.Process(os.getpid(), own, "test").is_alive()
    assert not processes.Process(os.getpid(), own - 1, "test").is_alive()


def test_kill_finds_children_and_leaves_other_beds_alone(tmp_path):
    ours, other = Bed("ours", tmp_path), Bed("ours-too", tmp_path)
    for bed in (ours, other):
        bed.directory.mkdir()
        processes.start(bed, "sleep", ["sh", "-c", "sleep 1000 & exec sleep 1000"])
    deadline = time.monotonic() + 20
    while len(processes.of_bed(ours.directory)) < 2 or processes.find(
            other.directory, "sleep") is None:
        assert time.monotonic() < deadline
    processes.kill_all(lambda: processes.of_bed(ours.directory))
    assert processes.of_bed(ours.directory) == []
    assert processes.of_bed(other.directory)
    processes.kill_all(lambda: processes.of_bed(other.directory))


def test_beds_have_separate_ports_below_the_ephemeral_range(tmp_path):
    beds = [Bed(f"bed-{i}", tmp_path) for i in range(20)]
    for bed in beds:
        bed.choose_ports()
    ports = [port for bed in beds for port in bed.ports.values()]
    assert len(set(ports)) == len(ports)
    assert all(20000 <= port < 30000 for port in ports)
    assert Bed("bed-0", tmp_path).ports == beds[0].ports


@pytest.mark.parametrize("text, want", [
    ("go1.26.0", True), ("go1.26.8", True), ("go1.27rc1", True), ("go2.0", True),
    ("go1.25.9", False), ("go1.3", False), ("devel", False), ("", False), (None, False)])
def test_toolchain_recognises_a_new_enough_go(text, want):
    assert toolchain.is_new_enough(text) is want


def test_toolchain_installs_go_where_it_is_missing_or_old(tmp_path, monkeypatch):
    old = tmp_path / "bin/go"
    old.parent.mkdir()
    old.write_text("#!/bin/sh\necho go1.19.8\n")
    old.chmod(0o755)
    monkeypatch.setenv("PATH", f"{old.parent}:{os.environ['PATH']}")
    made = []

    def install(part):
        made.append(part)
        program = part / "go/bin/go"
        program.parent.mkdir(parents=True)
        program.write_text("#!/bin/sh\necho go1.26.6\n")
        program.chmod(0o755)

    monkeypatch.setattr(toolchain, "_install", install)
    assert toolchain.version(toolchain.go()) == "go1.26.6"
    assert toolchain.go() == toolchain.go()
    assert len(made) == 1


@pytest.mark.parametrize("name, want", [
    ("sightline:dev", "docker.io/library/sightline:dev"), ("a/b", "docker.io/a/b:latest"),
    ("localhost/a:1", "localhost/a:1"), ("r:5000/a", "r:5000/a:latest")])
def test_an_image_has_the_name_that_the_kubelet_requests(name, want):
    assert images.qualified(name) == want


def layer_of(archive):
    """Returns the image's configuration and the names of its files."""
    with tarfile.open(archive) as outer:
        def blob(digest):
            return outer.extractfile("blobs/sha256/" + digest.split(":")[1])

        index = json.load(outer.extractfile("index.json"))
        manifest = json.load(blob(index["manifests"][0]["digest"]))
        config = json.load(blob(manifest["config"]["digest"]))["config"]
        with tarfile.open(fileobj=blob(manifest["layers"][0]["digest"])) as layer:
            return config, layer.getnames()


def test_a_program_image_has_its_libraries_and_no_root_user(tmp_path):
    program = pathlib.Path(os.path.realpath("/bin/ls"))
    image = product_images.Image("ls:testbed", [program], ["ls", "-l"])
    config, names = layer_of(product_images.archive(image))
    assert any("/libc.so" in name for name in names)
    assert any("ld-linux" in name for name in names)
    assert "./usr/local/bin/ls" in names
    assert (config["User"], config["Entrypoint"]) == ("65532:65532", ["ls", "-l"])


def test_an_image_is_made_once_for_each_content(tmp_path):
    program = tmp_path / "program"
    image = product_images.Image("own:testbed", [program], ["program"])
    made = []
    for text in ("one", "one", "two"):
        program.write_text(f"#!/bin/sh\necho {text}\n")
        made.append(product_images.archive(image))
    assert made[0] == made[1] != made[2]
    os.utime(made[0], (0, 0))
    assert product_images.archive(image) == made[2]
    assert not made[0].exists(), "an image that was unused for a day stays"


def test_product_images_are_those_of_built_programs(tmp_path):
    def names():
        return [image.name for image in product_images.of_build(tmp_path)]

    assert names() == ["nats:testbed", "client:testbed"]
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/sightline-operator").touch()
    assert names()[0] == "sightline-operator:testbed"


def test_check_names_what_is_missing_and_the_fix(monkeypatch):
    monkeypatch.setattr(checks, "needs", lambda: iter([
        checks.Need("a thing", checks.CONTROL_PLANE, lambda: True, "buy it"),
        checks.Need("another", checks.PODS, lambda: False, "build it")]))
    said = []
    assert checks.check(said.append) is False
    assert [line.split() for line in said[1::2]] == [
        ["ok", "a", "thing"], ["MISSING", "another", "fix:", "build", "it"]]
    assert checks.lacking() == [("another", "build it")]


def test_last_line_counts_the_tests_that_were_not_run():
    root = pathlib.Path(__file__).resolve().parents[3]
    answer = subprocess.run(
        [sys.executable, "-m", "pytest", "-c", "tests/pytest.ini", "tests/cluster/testbed",
         "-k", "pull_policy or image_has_the_name"], cwd=root,
        env=os.environ | {"TESTBED_PODS": "off"}, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stdout
    last = answer.stdout.splitlines()[-1]
    assert re.fullmatch(r"\d+ of \d+ not run: TESTBED_PODS=off", last), answer.stdout
