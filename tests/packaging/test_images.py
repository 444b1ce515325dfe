# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Tests the images as OCI archives. They have the right files. Their programs run from a read-only
root. Their lists of parts name every library that a process maps. The same build gives the same
image."""

import json
import os
import pathlib
import re
import signal
import subprocess
import tarfile

import pytest
from helm import ROOT
from nats_server import free_port
from nowhere import KUBECONFIG
from watching import wait_for

NAMES = ("sightline", "sightline-operator")
BUILD = pathlib.Path(os.environ.get("SL_BUILD", ROOT / "build/release"))
SYFT = ROOT / "build/venv/bin/syft"
TAG = "1.2.3-test"


def make(out):
    subprocess.run([ROOT / "hack/image", "--build", BUILD, "--out", out, "--tag", TAG, "--trees"],
                   check=True, capture_output=True)
    return out


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return make(tmp_path_factory.mktemp("images"))


def blob(archive, digest):
    return archive.extractfile(f"blobs/{digest.replace(':', '/')}")


def config_and_files(path):
    with tarfile.open(path) as archive:
        index = json.load(archive.extractfile("index.json"))["manifests"][0]
        manifest = json.load(blob(archive, index["digest"]))
        config = json.load(blob(archive, manifest["config"]["digest"]))
        with tarfile.open(fileobj=blob(archive, manifest["layers"][0]["digest"])) as layer:
            return index, config, {entry.name: entry for entry in layer.getmembers()}


@pytest.mark.parametrize("name", NAMES)
def test_an_image_has_a_program_a_user_and_no_shell(made, name):
    index, config, files = config_and_files(made / f"{name}.tar")
    assert index["annotations"]["io.containerd.image.name"] == f"{name}:{TAG}"
    assert config["config"]["User"] == "65532:65532"
    assert config["config"]["Entrypoint"] == [f"/usr/local/bin/{name}"]
    assert config["config"]["Labels"]["org.opencontainers.image.version"] == TAG
    programs = [path for path, entry in files.items() if entry.isfile() and entry.mode & 0o111
                and ".so" not in path]
    assert programs == [f"./usr/local/bin/{name}"]
    assert all(entry.uid == entry.gid == entry.mtime == 0 for entry in files.values())
    assert not any(entry.mode & 0o022 for path, entry in files.items() if path != "./tmp")
    assert "./etc/ssl/certs/ca-certificates.crt" in files
    for needed in ("LICENSE", "NOTICE"):
        assert f"./usr/share/doc/sightline/{needed}" in files
    packages = [path for path in files if re.fullmatch(r"\./var/lib/dpkg/status\.d/[^.]+", path)]
    assert len(packages) > 5


@pytest.mark.parametrize("name", NAMES)
def test_the_same_build_gives_the_same_image(made, tmp_path, name):
    assert (make(tmp_path) / f"{name}.tar").read_bytes() == (made / f"{name}.tar").read_bytes()


def parts_of(made, name, folder):
    """Returns {package: version} as a scanner finds them in the archive."""
    target = folder / f"{name}.spdx.json"
    subprocess.run([SYFT, "scan", f"oci-archive:{made}/{name}.tar", "-o", f"spdx-json={target}"],
                   check=True, capture_output=True, env={**os.environ,
                                                         "SYFT_CHECK_FOR_APP_UPDATE": "false"})
    packages = json.loads(target.read_text())["packages"]
    return {one["name"]: one.get("versionInfo", "") for one in packages}


def confined(tree, command):
    """Returns a command that runs in a read-only root, as the image's user, without
    capabilities."""
    script = ('mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && '
              'mount -t proc proc "$0/proc" && '
              'exec unshare --root "$0" --setgid 65532 --setuid 65532 "$@"')
    return ["unshare", "--mount", "sh", "-c", script, tree, *command]


@pytest.fixture
def root_of(made, tmp_path):
    """Returns the image's files, with directories for the mounts of a runtime."""
    def of(name):
        tree = made / name / "root"
        for place in ("proc", "model"):
            (tree / place).mkdir(exist_ok=True)
        return tree
    return of


def commands(name):
    port = str(free_port())
    if name == "sightline":
        return ["/usr/local/bin/sightline", "simulate", "--engines", "1", "--model-path", "/model",
                "--served-model-name", "demo", "--base-port", port]
    return ["/usr/local/bin/sightline-operator", "check", "--timeout", "60s", "--kubeconfig",
            "/model/kubeconfig"]


@pytest.mark.parametrize("name", NAMES)
def test_confined_program_runs_and_scanner_names_its_libraries(made, root_of, tmp_path, name):
    if os.geteuid() != 0:
        pytest.fail("needs root, to make a root of its own for the program")
    tree = root_of(name)
    for source in (BUILD / "models/tiny-qwen2-vl").iterdir():
        if source.is_file():
            (tree / "model" / source.name).write_bytes(source.read_bytes())
    (tree / "model/kubeconfig").write_text(KUBECONFIG)
    process = subprocess.Popen(confined(tree, commands(name)),
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                               start_new_session=True)
    try:
        pid = wait_for(lambda: pid_of(name, tree), 20, f"{name} runs")
        libraries = wait_for(lambda: mapped(pid), 20, "its libraries are mapped")
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
        assert re.search(r"^Uid:\t65532\t65532", status, re.M)
        assert re.search(r"^CapEff:\t0+$", status, re.M)
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait()
    assert len(libraries) > 8
    named = parts_of(made, name, tmp_path)
    assert named["sightline"] == TAG
    owners = {path.lstrip("./"): sums.name.removesuffix(".md5sums")
              for sums in (tree / "var/lib/dpkg/status.d").glob("*.md5sums")
              for path in re.findall(r"^\w+  (.*)$", sums.read_text(), re.M)}
    for library in libraries:
        owner = owners[library.removeprefix(str(tree)).lstrip("/")]
        assert named.get(owner), library


def pid_of(name, tree):
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            is_ours = os.readlink(entry / "root") == str(tree)
        except OSError:
            continue
        if is_ours and (entry / "cmdline").read_bytes().split(b"\0")[0].endswith(name.encode()):
            return entry.name
    return None


def mapped(pid):
    """Returns the shared libraries that the process has mapped, or None before libc is mapped."""
    text = pathlib.Path(f"/proc/{pid}/maps").read_text()
    found = {line.split(maxsplit=5)[5] for line in text.splitlines()
             if len(line.split(maxsplit=5)) == 6}
    found = {path for path in found if ".so" in path}
    return found if any("libc.so" in path for path in found) else None


def test_containerfile_copies_files_without_run(made):
    lines = (ROOT / "Containerfile").read_text().splitlines()
    used = [line.split()[0] for line in lines if line and not line.startswith("#")]
    assert used == ["ARG", "FROM", "COPY", "USER", "WORKDIR", "ENTRYPOINT"]
    for name in NAMES:
        entrypoint = made / name / "root/usr/local/bin/entrypoint"
        assert os.readlink(entrypoint) == name
