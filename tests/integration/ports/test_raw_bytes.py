# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Sends the same hostile bytes to every port of every process. One HTTP server serves all ports."""

import contextlib
import re
import socket
import time

import pytest
from empty_api_server import EmptyApiServer
from fake_engine import FakeEngine, answer_ok
from nats_server import free_port
from stack import SLOWDOWN, Program, Stack

PORTS = ["client", "admin", "selection", "agent", "operator"]
HEALTH = {"client": "/health", "selection": "/health"}
# A path that accepts a body without a token, for each port that has one.
TAKES_BODY = {"client": "/v1/chat/completions", "admin": "/v1/explain", "selection": "/select"}
HEADER_TIMEOUT_S = 10


class Ports:
    """The ports of a router, an agent and an operator. Finds the program of a port by its name."""

    def __init__(self):
        self.of = {}
        self.programs = {}

    def add(self, program, **ports):
        for name, port in ports.items():
            self.of[name] = port
            self.programs[name] = program

    def connect(self, name):
        return socket.create_connection(("127.0.0.1", self.of[name]), timeout=60 * SLOWDOWN)

    def send(self, name, data):
        """Returns all that comes back until the end of the connection."""
        with self.connect(name) as connection:
            with contextlib.suppress(OSError):  # the program may answer and close early
                connection.sendall(data)
            return read(connection)

    def status(self, name, data):
        return status_of(self.send(name, data))

    def health(self, name):
        return HEALTH.get(name, "/healthz")

    def is_well(self, name):
        answer = self.send(name, request("GET", self.health(name), "Connection: close"))
        return status_of(answer) == 200 and self.programs[name].process.poll() is None

    def peak_bytes(self, name):
        pid = self.programs[name].process.pid
        with open(f"/proc/{pid}/status", encoding="utf-8") as status:
            return next(int(line.split()[1]) << 10 for line in status if line.startswith("VmHWM"))


def read(connection):
    answer = b""
    with contextlib.suppress(ConnectionError):
        while piece := connection.recv(65536):
            answer += piece
    return answer


def status_of(answer):
    return int(answer.split(b" ", 2)[1]) if answer.startswith(b"HTTP/1.1 ") else answer


def request(method, path, *fields, body=b""):
    lines = [f"{method} {path} HTTP/1.1", "Host: x", *fields, "", ""]
    return "\r\n".join(lines).encode() + body


@pytest.fixture(scope="module")
def ports(build, shared_logs):
    logs = shared_logs / "ports"
    logs.mkdir(parents=True, exist_ok=True)
    found = Ports()
    with contextlib.ExitStack() as programs:
        api_server = programs.enter_context(EmptyApiServer())
        (logs / "kubeconfig").write_text(api_server.kubeconfig)
        engine = programs.enter_context(FakeEngine("a", answer_ok))
        stack = programs.enter_context(Stack(
            build, workers=[engine.worker], ready_states=("unverified",), logs=logs,
            router_flags=["--selection-port", "0"]))
        selection = next(line for line in stack.router.lines if line.startswith("selection: "))
        found.add(stack.router, client=stack.port, admin=stack.admin_port,
                  selection=int(selection.rsplit(":", 1)[1]))

        def start(name, arguments):
            program = Program([build.resolve() / "bin" / arguments[0], *arguments[1:]],
                              logs / f"{name}.log")
            programs.callback(program.stop)
            admin = program.wait_for(r"^ready: admin http://127.0.0.1:(\d+)")
            found.add(program, **{name: int(admin.group(1))})

        start("agent", ["sightline", "agent", "--nats", f"nats://127.0.0.1:{free_port()}",
                        "--model-path", stack.model_path, "--served-model-name", stack.name,
                        "--worker", f"name=a,url={engine.worker['url']}", "--admin-port", 0])
        start("operator", ["sightline-operator", "--kubeconfig", logs / "kubeconfig",
                           "--admin-host", "127.0.0.1", "--admin-port", 0,
                           "--leader-elect=false"])
        yield found


@pytest.fixture(params=PORTS)
def port(request, ports):
    yield request.param
    assert ports.is_well(request.param)


def chunked(size):
    return f"{size}\r\nabcdef\r\n0\r\n\r\n".encode()


@pytest.mark.parametrize("size", ["-1", "-2", "0x5", "fffffffffffffffff", ""])
def test_program_refuses_a_malformed_chunk_and_keeps_serving(ports, port, size):
    for path in {ports.health(port), TAKES_BODY.get(port, ports.health(port))}:
        method = "POST" if path == TAKES_BODY.get(port) else "GET"
        data = request(method, path, "Transfer-Encoding: chunked", body=chunked(size))
        assert ports.status(port, data) in (400, 413), path


@pytest.mark.parametrize("field", [
    "Content-Length: -1", "Content-Length: +1", "Content-Length: 1, 1",
    "Content-Length: 18446744073709551616", "Content-Length: 1\r\nContent-Length: 2",
    "Content-Length: 1\r\nTransfer-Encoding: chunked", "Transfer-Encoding: chunked, chunked",
    "X-A: b\r\n folded", "X-A: b\r\n\tfolded", "X A: b", "Host: y", "X-A: b\0c"])
def test_program_refuses_an_ambiguous_header(ports, port, field):
    status = ports.status(port, request("GET", ports.health(port), field))
    assert status == (501 if field.startswith("Transfer") else 400)


@pytest.mark.parametrize("host", ["a b/..\\", "u:p@evil#x", "a/b", "[::1", "x:99999999", "a\"b"])
def test_program_refuses_a_malformed_host(ports, port, host):
    data = f"GET {ports.health(port)} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()
    assert ports.status(port, data) == 400


@pytest.mark.parametrize("data, status", [
    (b"\x16\x03\x01\x02\x00\x01\x00\x01\r\n\r\n", 400),
    (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
    (b"GET /healthz HTTP/1.1\r\n\r\n", 400),
    (request("GET", "/" + "x" * 10_000), 414),
    (request("GET", "/", *[f"X-{i}: y" for i in range(200)]), 431),
    (request("GET", "/%zz", "Connection: close"), 400),
    (request("GET", "/no-such-path", "Connection: close"), 404)])
def test_program_refuses_requests_outside_its_api(ports, port, data, status):
    seen = ports.status(port, data)
    # The selection API does not decode paths that it does not know.
    assert seen == (404 if port == "selection" and b"%zz" in data else status)


def test_program_refuses_an_endless_header_without_keeping_it(ports, port):
    before = ports.peak_bytes(port)
    with ports.connect(port) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nX: ")
        with contextlib.suppress(OSError):
            for _ in range(64):
                connection.sendall(b"a" * (1 << 20))
        answer = read(connection)
    assert status_of(answer) == 431
    assert ports.peak_bytes(port) - before < 16 << 20


@pytest.mark.parametrize("name", ["admin", "agent", "operator"])
def test_program_refuses_an_unexpected_body_before_it_arrives(ports, name):
    data = request("GET", "/healthz", "Expect: 100-continue", f"Content-Length: {63 << 20}")
    assert ports.status(name, data) == 413


@pytest.mark.parametrize("path", ["/v1/workers", "/v1/settings"])
@pytest.mark.parametrize("framing", [f"Content-Length: {63 << 20}", "Transfer-Encoding: chunked"])
def test_router_refuses_a_push_without_token_before_its_body(ports, path, framing):
    answer = ports.send("admin", request("PUT", path, "Expect: 100-continue", framing))
    assert status_of(answer) == 403
    answer = ports.send("admin", request("PUT", path, framing, "Authorization: Bearer wrong"))
    assert status_of(answer) == 403


@pytest.mark.parametrize("framing", [f"Content-Length: {47 << 20}", "Transfer-Encoding: chunked"])
@pytest.mark.parametrize("name, path, status", [
    *[(name, "/no-such-path", 404) for name in PORTS], ("client", "/health", 405),
    ("client", "/v1/models/demo", 405), ("client", "/v1/chat/completions/batch", 404),
    ("client", "/v1/chat//completions", 400), ("selection", "/served", 404)])
def test_program_refuses_a_wrong_path_before_the_body(ports, name, path, status, framing):
    answer = ports.send(name, request("POST", path, "Expect: 100-continue", framing))
    assert status_of(answer) == status


def test_selection_port_answers_head_like_get(ports):
    for path in ("/health", "/served", "/workers", "/loads"):
        answers = [ports.send("selection", request(method, path, "Connection: close"))
                   for method in ("GET", "HEAD")]
        assert [status_of(answer) for answer in answers] == [200, 200], path
        assert answers[1].endswith(b"\r\n\r\n") and b"content-length: " in answers[1].lower()


def test_program_answers_pipelined_requests_in_order(ports, port):
    health = ports.health(port)
    answer = ports.send(port, request("GET", health) + request("GET", "/no-such-path") +
                        request("HEAD", health) + request("GET", health, "Connection: close"))
    assert list(map(int, re.findall(rb"HTTP/1\.1 (\d{3}) ", answer))) == [200, 404, 200, 200]


def test_program_ends_a_slow_header_with_408(ports):
    begun = time.monotonic()
    with contextlib.ExitStack() as held:
        slow = {name: held.enter_context(ports.connect(name)) for name in PORTS}
        for connection in slow.values():
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHos")
        for name, connection in slow.items():
            assert status_of(read(connection)) == 408, name
    assert time.monotonic() - begun > HEADER_TIMEOUT_S - 1
    assert all(ports.is_well(name) for name in PORTS)


def test_idle_connections_block_no_other_client(ports, port):
    with contextlib.ExitStack() as held:
        for _ in range(200):
            held.enter_context(ports.connect(port))
        assert ports.is_well(port)
