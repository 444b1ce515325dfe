# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Runs the commands of the documentation that need no cluster. It replaces only ports, directories
and values of the reader."""

import contextlib
import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess

import documented
import nats_secrets
import pytest
from helm import ROOT
from nats_server import free_port
from stack import Program, Stack
from watching import wait_for

BUILD = pathlib.Path(os.environ.get("SL_BUILD", ROOT / "build/release"))
MODEL = BUILD / "models/qwen2-vl"
ANY_PORTS = ["--port", "0", "--admin-port", "0"]
# Debian installs nats-server in /usr/sbin, which is not in every user's PATH.
DAEMONS = {"PATH": f"{os.environ['PATH']}:/usr/sbin"}
READY = r"ready: http://[^:]+:(\d+)/v1 \(admin http://[^:]+:(\d+)\)"


@pytest.fixture(scope="module", autouse=True)
def runs():
    made = documented.Runs(pathlib.Path(__file__))
    yield made
    made.check()


def shell(command, folder=ROOT, **environment):
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", command], cwd=folder, text=True,
                          capture_output=True, env={**os.environ, **DAEMONS, **environment},
                          check=False)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


def program(command, log, *more):
    """Starts the command as it is written, but with the program of the build."""
    words = shlex.split(command.removesuffix("&"))
    if words[0].endswith("sightline"):
        words[0] = BUILD / "bin/sightline"
    else:
        words[0] = shutil.which(words[0], path=DAEMONS["PATH"])
    return Program([*words, *more], log)


@contextlib.contextmanager
def stopped_after(*programs):
    try:
        yield
    finally:
        for one in programs:
            one.stop()


@pytest.fixture
def engine(tmp_path):
    """Starts a simulated engine, and yields the fields of its worker."""
    with contextlib.ExitStack() as ends:
        stack = Stack(BUILD, engines=1, logs=tmp_path / "logs",
                      served_model_name="Qwen/Qwen2.5-VL-7B-Instruct")
        ends.callback(stack.stop)
        stack.start_engines()
        yield stack.workers[0]


def port_of(url):
    return url.rpartition(":")[2]


def workers(stack, admin_port):
    return json.loads(stack.get(admin_port, "/v1/workers")[1])


def test_one_process_serves_an_engine(runs, engine, tmp_path):
    command = runs.take("README.md", "build/release/bin/sightline serve", {
        "DIR": MODEL, "8101": port_of(engine["url"]), "5557": port_of(engine["events"]),
        "5657": port_of(engine["replay"])})
    router = program(command, tmp_path / "serve.log", *ANY_PORTS)
    with stopped_after(router):
        port = router.wait_for(READY).group(1)
        body = json.dumps({"model": "Qwen/Qwen2.5-VL-7B-Instruct", "max_tokens": 2, "stream": True,
                           "messages": [{"role": "user", "content": "Hello"}]})
        said = shell(runs.take("README.md", "curl", {"8000": port, "{...}": body}))
        assert "data: [DONE]" in said


def test_curl_pushes_a_list_of_workers(runs, tmp_path):
    token = tmp_path / "token"
    token.write_text("secret-of-a-router")
    with Stack(BUILD, engines=0, workers=[], logs=tmp_path / "logs", ready_states=(),
               router_flags=["--admin-token-file", token]) as stack:
        said = shell(runs.take("docs/api.md", "curl -X PUT", {"9090": stack.admin_port}),
                     TOKEN="secret-of-a-router")
        assert json.loads(said)["generation"] == 12
        wait_for(lambda: {one["name"] for one in workers(stack, stack.admin_port)} == {"w0", "w1"})


def test_curl_reserves_and_releases_a_worker(runs, tmp_path):
    port = free_port()
    with Stack(BUILD, engines=1, logs=tmp_path / "logs",
               router_flags=["--selection-port", port]):
        told = json.loads(shell(runs.take("docs/api.md", "curl -s localhost", {"8092": port})))
        at = {"8092": port, "router-1f…9a.1.0": told["reservation"]}
        shell(runs.take("docs/api.md", "curl -s -X POST", at))
        shell(runs.take("docs/api.md", "curl -s -X DELETE", at))


def test_a_router_follows_an_agent(runs, tmp_path):
    with contextlib.ExitStack() as ends:
        stack = Stack(BUILD, engines=1, logs=tmp_path / "logs", served_model_name="m")
        ends.callback(stack.stop)
        stack.start_engines()
        nats_port = free_port()
        nats = program(runs.take("docs/replication.md", "nats-server"), tmp_path / "nats.log",
                       "--port", nats_port)
        ends.callback(nats.stop, signal.SIGINT)
        texts = {"4222": nats_port, "DIR": MODEL, "8101": port_of(stack.workers[0]["url"])}
        agent = program(runs.take("docs/replication.md", "sightline agent", texts),
                        tmp_path / "agent.log", "--admin-port", "0")
        ends.callback(agent.stop)
        router = program(runs.take("docs/replication.md", "sightline serve", texts),
                         tmp_path / "serve.log", *ANY_PORTS)
        ends.callback(router.stop)
        admin = router.wait_for(READY).group(2)
        wait_for(lambda: [one["state"] for one in workers(stack, int(admin))] == ["ready"])


def test_nats_server_accepts_the_two_tenants_configuration(runs, tmp_path):
    """The page shows the configuration as a file."""
    block = next("\n".join(lines) for _, lines in
                 documented.blocks(ROOT / "docs/replication.md") if "nats-server.conf" in lines[0])
    runs.take("docs/replication.md", "(# nats-server.conf")
    authority = nats_secrets.make_authority(tmp_path, "ca")
    for name, path in (("server.pem", authority), ("ca.pem", authority),
                       ("server.key", authority.with_suffix(".key"))):
        block = block.replace(f"/etc/nats/{name}", str(path))
    assert "/etc" not in block
    (tmp_path / "nats.conf").write_text(block)
    shell("nats-server -c nats.conf -t", tmp_path, RED_PASSWORD="a", BLUE_PASSWORD="b")


def test_hack_image_writes_images(runs, tmp_path):
    shell(runs.take("docs/install.md", "hack/image --out", {"build/images": tmp_path}))
    assert (tmp_path / "sightline-operator.tar").exists()


def test_one_suite_and_one_directory_run_alone(runs):
    command = runs.take("CONTRIBUTING.md", "cmake --build")
    assert re.search(r"\[  PASSED  \] \d+ tests", shell(command))
    assert shell(runs.take("CONTRIBUTING.md", "make lint", {"make lint": "make -o setup lint"}))
