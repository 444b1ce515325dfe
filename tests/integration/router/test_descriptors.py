# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""The router at its limit of open files: it continues to serve, and blames no other process."""

import contextlib
import http.client
import json
import os
import resource
import socket
import stat

import pytest
from fake_engine import FakeEngine, answer_ok, router
from stack import MODELS, SLOWDOWN

BODY = {"model": "demo", "messages": [{"role": "user", "content": "hello"}], "max_tokens": 4}
OPEN_FILES = 200
QUICK = ["--fleet-probe-interval", "100ms", "--drain-timeout", "2s"]


@pytest.fixture
def limited(build, tmp_path):
    """A build whose programs may open few files."""
    program = tmp_path / "bin/sightline"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nulimit -n {OPEN_FILES}\nexec "{build}/bin/sightline" "$@"\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    (tmp_path / MODELS).symlink_to(build / MODELS)
    return tmp_path


def states(stack):
    return {w["state"] for w in stack.worker_states()}


def probes_of(stack, engine):
    """Waits until the router has probed the engine a few more times."""
    before = engine.probes
    stack.wait_until(lambda: engine.probes > before + 3)


class Probed(FakeEngine):
    probes = 0

    def quiet_answers(self):
        self.probes += 1
        return super().quiet_answers()


def ask(connection):
    connection.request("POST", "/v1/chat/completions", json.dumps(BODY))
    answer = connection.getresponse()
    return answer.status, dict(answer.getheaders()), answer.read()


def hold(held, stack, sent):
    """Opens a connection to the client port, sends these bytes, and keeps it open."""
    connection = held.enter_context(socket.create_connection(("127.0.0.1", stack.port)))
    with contextlib.suppress(OSError):  # the router may have refused it already
        connection.sendall(sent)


def test_many_clients_leave_descriptors_for_engines_and_admin_port(limited, logs):
    engines = [Probed(name, answer_ok) for name in "ab"]
    flags = [*QUICK, "--header-timeout", "300s"]
    with contextlib.ExitStack() as held, router(limited, logs, *engines, flags=flags) as stack:
        assert "open files" in stack.router.log()
        for _ in range(2 * OPEN_FILES):
            hold(held, stack, b"GET /half")  # not idle, so the router does not close it
        stack.wait_until(lambda: stack.router_count(
            'sightline_limit_hits_total{limit="connections-max"}') > OPEN_FILES)
        for engine in engines:
            probes_of(stack, engine)
        assert states(stack) == {"unverified"}
        open_files = len(os.listdir(f"/proc/{stack.router.process.pid}/fd"))
        assert open_files < OPEN_FILES - 16
        with socket.create_connection(("127.0.0.1", stack.port)) as refused:
            refused.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
            answer = refused.makefile("rb").read().lower()
        assert answer.startswith(b"http/1.1 503 ") and b"\r\nretry-after: 1\r\n" in answer
        # The router must also end in time with these connections. The stack's end checks that.


def test_idle_clients_make_room_for_others(limited, logs):
    engine = Probed("a", answer_ok)
    with contextlib.ExitStack() as held, router(limited, logs, engine, flags=QUICK) as stack:
        for _ in range(OPEN_FILES):
            hold(held, stack, b"")
        for _ in range(20):
            asking = http.client.HTTPConnection("127.0.0.1", stack.port, timeout=20 * SLOWDOWN)
            assert ask(asking)[0] == 200
            asking.close()
        for _ in range(OPEN_FILES):  # on the admin port too
            held.enter_context(socket.create_connection(("127.0.0.1", stack.admin_port)))
        assert stack.get(stack.admin_port, "/healthz")[0] == 200
        assert ask(http.client.HTTPConnection("127.0.0.1", stack.port))[0] == 200
        assert stack.router_count('sightline_limit_hits_total{limit="connections-max"}') == 0


def test_router_without_descriptors_blames_no_worker_and_recovers(build, logs):
    engines = [Probed(name, answer_ok) for name in "ab"]
    with router(build, logs, *engines, flags=[*QUICK, "--io-threads", "1"]) as stack:
        pid = stack.router.process.pid
        first = http.client.HTTPConnection("127.0.0.1", stack.port, timeout=20 * SLOWDOWN)
        assert stack.call("GET", stack.port, "/health")[0] == 200
        first.connect()
        first.request("GET", "/health")
        assert first.getresponse().read() == b""
        before = resource.prlimit(pid, resource.RLIMIT_NOFILE, (3, before_hard(pid)))
        status, headers, body = ask(first)
        assert (status, headers["retry-after"]) == (503, "1"), body
        assert "open-files" in json.loads(body)["error"]["message"]
        waiting = http.client.HTTPConnection("127.0.0.1", stack.port, timeout=20 * SLOWDOWN)
        waiting.request("GET", "/health")
        stack.wait_until(lambda: "cannot accept" in stack.router.log())
        scrape = http.client.HTTPConnection("127.0.0.1", stack.admin_port, timeout=20 * SLOWDOWN)
        scrape.request("GET", "/healthz")
        resource.prlimit(pid, resource.RLIMIT_NOFILE, before)
        assert scrape.getresponse().status == 200
        assert waiting.getresponse().status == 200
        first.close()  # this idle connection made room for the waiting one
        assert ask(first)[0] == 200
        assert stack.router_count('sightline_limit_hits_total{limit="open-files"}') >= 1
        assert "requests fail" not in stack.router.log()
        # The router logs few lines about it, even if it lasts long.
        assert stack.router.log().count("cannot accept") < 5


def before_hard(pid):
    return resource.prlimit(pid, resource.RLIMIT_NOFILE)[1]
