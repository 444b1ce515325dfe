# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""What the router decides from a request's header, before it accepts the body."""

import contextlib
import json
import re
import socket
import threading

import pytest
from fake_engine import FakeEngine, answer_ok, router
from stack import SLOWDOWN, post

CHAT = "/v1/chat/completions"
BODY = json.dumps({"model": "demo", "max_tokens": 1,
                   "messages": [{"role": "user", "content": "a"}]}).encode()
LARGE_BYTES = 63 << 20


def connect(stack):
    return socket.create_connection(("127.0.0.1", stack.port), timeout=60 * SLOWDOWN)


def head(path, *fields, length=len(BODY)):
    lines = [f"POST {path} HTTP/1.1", "Host: x", f"Content-Length: {length}", *fields, "", ""]
    return "\r\n".join(lines).encode()


def read(connection):
    """Returns all that comes until the end of the connection."""
    answer = b""
    while piece := connection.recv(65536):
        answer += piece
    return answer


class Busy:
    """An engine that answers no request until `go` is set."""

    def __init__(self):
        self.go = threading.Event()
        self.engine = FakeEngine("busy", self.behave)

    def behave(self, connection, request):
        self.go.wait(60 * SLOWDOWN)
        return answer_ok(connection, request)


@contextlib.contextmanager
def full_router(build, logs, requests):
    """Yields (router, its engine) while as many requests run as the limit permits."""
    busy = Busy()
    with router(build, logs, busy.engine, flags=["--concurrent-requests-max", requests]) as stack:
        running = [threading.Thread(target=post, args=(stack.port, BODY)) for _ in range(requests)]
        for thread in running:
            thread.start()
        try:
            stack.wait_until(lambda: len(busy.engine.requests) == requests)
            yield stack, busy
        finally:
            busy.go.set()
            for thread in running:
                thread.join()


@pytest.mark.parametrize("path, route", [
    (CHAT, "chat_completions"), ("/v1/completions", "completions"), ("/v1/embeddings", "other")])
def test_router_refuses_a_request_over_the_limit_before_its_body(build, logs, path, route):
    with full_router(build, logs, 1) as (stack, _), connect(stack) as connection:
        connection.sendall(head(path, "Expect: 100-continue", "Origin: http://page",
                                length=LARGE_BYTES))
        answer = read(connection)
        assert answer.startswith(b"HTTP/1.1 503 "), answer
        fields, _, text = answer.lower().partition(b"\r\n\r\n")
        for field in (b"retry-after: 1", b"connection: close", b"x-request-id: ",
                      b"access-control-allow-origin: "):
            assert field in fields, answer
        assert "concurrent-requests-max" in json.loads(text)["error"]["message"]
        assert stack.router_count(
            f'sightline_requests_total{{route="{route}",code="503"}}') == 1
        assert stack.router_count(
            'sightline_limit_hits_total{limit="concurrent-requests-max"}') == 1


def test_unfinished_bodies_do_not_count_as_running_requests(build, logs):
    busy = Busy()
    busy.go.set()
    flags = ["--concurrent-requests-max", "2"]
    with router(build, logs, busy.engine, flags=flags) as stack, contextlib.ExitStack() as held:
        slow = [held.enter_context(connect(stack)) for _ in range(10)]
        for connection in slow:
            connection.sendall(head(CHAT, "Expect: 100-continue"))
            assert connection.recv(65536).startswith(b"HTTP/1.1 100 ")
            connection.sendall(BODY[:5])
        for connection in slow[:5]:
            connection.close()
        assert post(stack.port, BODY).status == 200
        for connection in slow[5:]:
            connection.sendall(BODY[5:])
            assert connection.recv(65536).startswith(b"HTTP/1.1 200 ")


def test_router_checks_the_limit_again_after_a_late_body(build, logs):
    with contextlib.ExitStack() as held:
        busy = Busy()
        stack = held.enter_context(
            router(build, logs, busy.engine, flags=["--concurrent-requests-max", "1"]))
        late = held.enter_context(connect(stack))
        late.sendall(head(CHAT, "Expect: 100-continue"))
        assert late.recv(65536).startswith(b"HTTP/1.1 100 ")
        running = threading.Thread(target=post, args=(stack.port, BODY))
        running.start()
        held.callback(running.join)
        held.callback(busy.go.set)
        stack.wait_until(lambda: len(busy.engine.requests) == 1)
        late.sendall(BODY)
        assert late.recv(65536).startswith(b"HTTP/1.1 503 ")
        # The router has read the body, so the connection can carry the next request.
        busy.go.set()
        running.join()
        stack.wait_until(lambda: stack.router_count("sightline_requests_active") == 0)
        late.sendall(head(CHAT) + BODY)
        assert late.recv(65536).startswith(b"HTTP/1.1 200 ")


def test_connection_stays_open_after_a_refused_whole_request(build, logs):
    with full_router(build, logs, 1) as (stack, _), connect(stack) as connection:
        last = b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
        connection.sendall(head("/no-such-path") + BODY + head("/health") + BODY +
                           head(CHAT) + BODY + last)
        answer = read(connection)
        assert re.findall(rb"HTTP/1\.1 (\d{3}) ", answer) == [b"404", b"405", b"503", b"200"]
