# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Programs whose output no process reads: they continue to serve, and they end after SIGTERM."""

import contextlib
import fcntl
import http.client
import json
import os
import re
import signal
import subprocess
import threading

import pytest
from fake_engine import FakeEngine, answer_ok
from stack import MODELS, SLOWDOWN, Program, Stack, post

REQUESTS = 5000
CLIENTS = 4
PIPE_BYTES = 4096
BODY = json.dumps({"model": "demo", "prompt": [1, 2, 3], "max_tokens": 1})


def small_pipe():
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    return reader, writer


def ask(port, count, statuses):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20 * SLOWDOWN)
    for _ in range(count):
        connection.request("POST", "/v1/completions", BODY, {"content-type": "application/json"})
        answer = connection.getresponse()
        answer.read()
        statuses.append(answer.status)


def ask_often(port):
    """Returns the statuses of REQUESTS requests over a few connections."""
    statuses = []
    clients = [threading.Thread(target=ask, args=(port, REQUESTS // CLIENTS, statuses),
                                daemon=True) for _ in range(CLIENTS)]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    return statuses


def dropped_lines(stack):
    return int(re.search(r"^sightline_log_dropped_lines_total (\d+)", stack.router_metrics(),
                         re.MULTILINE).group(1))


@contextlib.contextmanager
def unread_router(build, logs, reader_is):
    """A router with a small pipe for its log, and the pipe's reading end."""
    engines = ["--instant"]
    reader, writer = small_pipe()
    with open(reader, "rb", buffering=0) as log, \
            Stack(build, engines=1, logs=logs, engine_flags=engines, router_stderr=writer,
                  router_flags=["--drain-timeout", "10s", "--log-level", "debug"]) as stack:
        os.close(writer)
        if reader_is == "closed":
            log.close()
        yield stack, log


@pytest.mark.parametrize("reader_is", ["stopped", "closed"])
def test_router_with_an_unread_log_serves_and_ends_in_time(build, logs, reader_is):
    with unread_router(build, logs, reader_is) as (stack, _):
        assert ask_often(stack.port) == [200] * REQUESTS
        assert stack.worker_states()[0]["state"] == "ready"
        if reader_is == "closed":
            assert dropped_lines(stack) > REQUESTS
        stack.router.process.send_signal(signal.SIGTERM)
        assert stack.router.process.wait(10 * SLOWDOWN) == 0


def test_log_counts_the_dropped_lines_when_it_is_read_again(build, logs):
    with unread_router(build, logs, "stopped") as (stack, log):
        lines = []

        def read():
            for line in log:
                lines.append(line.decode())

        while dropped_lines(stack) == 0:
            assert set(ask_often(stack.port)) == {200}
        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        stack.wait_until(lambda: any(re.search(r"warning \d+ lines? (was|were) dropped$", line)
                                     for line in lines))
        missing = dropped_lines(stack)
        post(stack.port, BODY, path="/v1/completions", headers={"x-request-id": "read-again"})
        stack.wait_until(lambda: any("request_id=read-again" in line for line in lines))
        assert dropped_lines(stack) == missing
        told = sum(int(m.group(1)) for m in
                   (re.search(r"(\d+) lines? (was|were) dropped$", line) for line in lines) if m)
        assert told == missing
        stack.router.process.send_signal(signal.SIGTERM)
        assert stack.router.process.wait(10 * SLOWDOWN) == 0
        reader.join()
        assert "drained" in lines[-1] or "drained" in "".join(lines[-5:])


@pytest.mark.parametrize("program", ["serve", "simulate"])
def test_program_with_unread_output_starts_and_ends(build, logs, program):
    reader, writer = small_pipe()
    os.set_blocking(writer, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(writer, b"x" * PIPE_BYTES)
    os.set_blocking(writer, True)
    arguments = [build / "bin/sightline", program, "--port", "0", "--admin-port", "0",
                 "--selection-port", "0", "--model-path", build / MODELS / "qwen2-vl",
                 "--worker", "url=http://127.0.0.1:1"]
    if program == "simulate":
        arguments = [build / "bin/sightline", program, "--instant", "--engines", "4",
                     "--base-port", "0", "--events-base-port", "0", "--replay-base-port", "0"]
    process = subprocess.Popen([str(a) for a in arguments], stdout=writer, stderr=writer)
    os.close(writer)
    stack = Stack(build, engines=0, logs=logs)
    # Its threads show that it runs, because its output is lost.
    stack.router = Program(["true"], logs / "none.log")
    names = f"/proc/{process.pid}/task"
    waits_for_signals = "sl-signals"
    stack.wait_until(lambda: any(
        open(f"{names}/{task}/comm").read().strip() == waits_for_signals
        for task in os.listdir(names)))
    process.send_signal(signal.SIGTERM)
    assert process.wait(20 * SLOWDOWN) == 0
    os.close(reader)


# Restores the default action of SIGHUP, which the tests may have inherited as ignored.
HEARS_HANGUPS = ["env", "--default-signal=HUP"]


def hangup_until(stack, condition):
    stack.router.process.send_signal(signal.SIGHUP)
    stack.wait_until(condition)


def test_sighup_reloads_the_configuration_file(build, logs):
    real = logs / "elsewhere" / "real.yaml"
    real.parent.mkdir(parents=True, exist_ok=True)
    file = logs / "router.yaml"
    file.unlink(missing_ok=True)
    file.symlink_to(real)
    with FakeEngine("a", answer_ok) as a, FakeEngine("b", answer_ok) as b:
        def write(engine):
            real.write_text(f"workers:\n  - name: {engine.worker['name']}\n"
                            f"    url: {engine.worker['url']}\n")

        write(a)
        with Stack(build, workers=[], logs=logs,
                   ready_states=("unverified",), router_prefix=HEARS_HANGUPS,
                   router_flags=["--config", file]) as stack:
            hangup_until(stack, lambda: "it is unchanged" in stack.router.log())
            write(b)
            assert [w["name"] for w in stack.worker_states()] == ["a"]
            hangup_until(stack, lambda: [w["name"] for w in stack.worker_states()] == ["b"])
            real.write_text("workers:\n  - nonsense: 1\n")
            hangup_until(stack, lambda: 'config_reloads_total{result="refused"} 1'
                         in stack.router_metrics())
            assert [w["name"] for w in stack.worker_states()] == ["b"]


def test_sighup_without_a_configuration_file_ends_the_router(build, logs):
    with FakeEngine("a", answer_ok) as engine, \
            Stack(build, workers=[engine.worker], ready_states=("unverified",), logs=logs,
                  router_prefix=HEARS_HANGUPS) as stack:
        stack.router.process.send_signal(signal.SIGHUP)
        assert stack.router.process.wait(20 * SLOWDOWN) == 0
        assert "drained" in stack.router.log()


def test_router_under_nohup_survives_sighup(build, logs):
    with FakeEngine("a", answer_ok) as engine, \
            Stack(build, workers=[engine.worker], ready_states=("unverified",), logs=logs,
                  router_prefix=["nohup"]) as stack:
        stack.router.process.send_signal(signal.SIGHUP)
        assert post(stack.port, BODY, path="/v1/completions").status == 200
        assert "stopping" not in stack.router.log()
