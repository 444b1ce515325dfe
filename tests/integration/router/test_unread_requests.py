# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Requests that the router passes without reading them, for example embeddings."""

import json
import socket
import threading

import pytest
from fake_engine import FakeEngine, response, router
from stack import post

EMBED = {"model": "demo", "input": "hello"}
PATH = "/v1/embeddings"
FILES = ["--passed-path", "/v1/files", "--passed-path", "/v1/files/*"]


def embedding(connection, _request):
    connection.sendall(response(200, '{"object":"list","data":[]}'))
    return True


def close_now(_connection, _request):
    return False


def state_of(stack, name):
    return {w["name"]: w["state"] for w in stack.worker_states()}[name]


def test_a_dead_worker_fails_no_request_and_is_avoided(build, logs):
    dead, alive = FakeEngine("dead", embedding), FakeEngine("alive", embedding)
    with router(build, logs, dead, alive, flags=["--fleet-probe-interval", "1h"]) as stack:
        dead.close()
        assert [post(stack.port, EMBED, path=PATH).status for _ in range(10)] == [200] * 10
        assert len(alive.requests) == 10
        assert state_of(stack, "dead") in ("suspect", "down")
        assert 'sightline_retries_total{worker="dead"' in stack.router_metrics()


def test_router_does_not_repeat_a_request_on_another_engine(build, logs):
    engines = [FakeEngine(name, close_now) for name in "ab"]
    with router(build, logs, *engines) as stack:
        answer = post(stack.port, EMBED, path=PATH)
        assert answer.status == 502
        assert sum(len(engine.requests) for engine in engines) == 1


def test_router_resends_only_a_get_after_a_kept_connection_closes(build, logs):
    def once(connection, request):
        return embedding(connection, request) if len(engine.requests) == 1 else False

    engine = FakeEngine("a", once)
    with router(build, logs, engine, flags=["--io-threads", "1", *FILES]) as stack:
        answers = [post(stack.port, EMBED, path="/v1/files").status for _ in range(2)]
        assert answers == [200, 502]
        assert len(engine.requests) == 2
        # A GET changes nothing, so the router tries it again on a new connection.
        engine.behave = embedding
        assert post(stack.port, EMBED, path=PATH).status == 200
        before = len(engine.requests)
        engine.behave = lambda connection, request: (
            len(engine.requests) > before + 1 and embedding(connection, request))
        assert stack.get(stack.port, "/v1/files/1")[0] == 200
        assert len(engine.requests) == before + 2


def test_closed_idle_connections_fail_no_request(build, logs):
    def answer_then_close(connection, request):
        embedding(connection, request)
        connection.shutdown(socket.SHUT_RDWR)
        closed.set()
        return False

    closed = threading.Event()
    engine = FakeEngine("a", answer_then_close)
    with router(build, logs, engine, flags=["--io-threads", "1", *FILES]) as stack:
        for _ in range(20):
            closed.clear()
            assert post(stack.port, EMBED, path="/v1/files").status == 200
            closed.wait()
        assert len(engine.requests) == 20


def test_passed_requests_over_the_concurrency_limit_get_503(build, logs):
    release = threading.Event()

    def slow(connection, request):
        release.wait()
        return embedding(connection, request)

    engine = FakeEngine("slow", slow)
    with router(build, logs, engine, flags=["--concurrent-requests-max", "2"]) as stack:
        waiting = [threading.Thread(target=post, args=(stack.port, EMBED, PATH), daemon=True)
                   for _ in range(2)]
        for thread in waiting:
            thread.start()
        stack.wait_until(lambda: len(engine.requests) == 2)
        answers = []
        one_more = threading.Thread(
            target=lambda: answers.append(post(stack.port, EMBED, path=PATH)), daemon=True)
        one_more.start()
        try:
            stack.wait_until(lambda: answers)
        finally:
            release.set()
        assert answers[0].status == 503 and answers[0].headers["retry-after"] == "1"
        assert "concurrent-requests-max" in json.loads(answers[0].body)["error"]["message"]
        for thread in waiting:
            thread.join()


PRIVATE_PICTURE = {"model": "demo", "messages": [{"role": "user", "content": [
    {"type": "image_url", "image_url": {"url": "http://169.254.169.254/x.png"}, "uuid": "same"}]}]}


def ask(port, target, body):
    """Sends this target unchanged. Returns the status, and the error message or the body."""
    payload = json.dumps(body).encode()
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        connection.sendall(f"POST {target} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n"
                           f"content-length: {len(payload)}\r\n\r\n".encode() + payload)
        answer = connection.makefile("rb").read()
    head, _, text = answer.partition(b"\r\n\r\n")
    status = int(head.split()[1])
    return status, (json.loads(text)["error"]["message"] if status >= 400 else text)


@pytest.mark.parametrize("target,want_status,want_message", [
    ("/v1/chat/completions", 400, "address"),
    ("/v1/chat/complet%69ons", 400, "address"),
    ("/v1/%63hat/completions?x=1", 400, "address"),
    ("http://engine/v1/chat/completions", 400, "address"),
    ("/v1/chat%2fcompletions", 400, "escaped slash"),
    ("/v1/x/../chat/completions", 400, "dot segment"),
    ("/v1//chat/completions", 400, "empty segment"),
    ("/v1/chat/completions#x", 400, "fragment"),
    ("/v1/chat/completions/", 404, "Remove the slash"),
    ("/v1/chat/completions/batch", 404, "batches"),
    ("/v1/Chat/Completions", 404, "not supported"),
    ("/v1/completions/render", 404, "not supported"),
])
def test_no_spelling_of_a_path_bypasses_the_router(build, logs, target, want_status,
                                                   want_message):
    engine = FakeEngine("a", embedding)
    with router(build, logs, engine) as stack:
        status, message = ask(stack.port, target, PRIVATE_PICTURE)
        assert (status, engine.requests) == (want_status, [])
        assert want_message in message


def test_engine_gets_the_path_as_the_router_matched_it(build, logs):
    engine = FakeEngine("a", embedding)
    with router(build, logs, engine) as stack:
        for target in ("http://x/v1/embeddings?a=%2f", "/v1/%65mbeddings?a=%2f"):
            assert ask(stack.port, target, EMBED)[0] == 200
        assert [path for _, path, _, _ in engine.requests] == ["/v1/embeddings?a=%2f"] * 2


def test_an_engines_own_address_does_not_reach_the_client(build, logs):
    locations = ["http://10.0.0.7:8000/v1/x", "//10.0.0.7/v1/x", "/v1/files/1"]

    def redirect(connection, _request):
        connection.sendall(b"HTTP/1.1 307 X\r\nlocation: " + locations[len(engine.requests) - 1]
                           .encode() + b"\r\ncontent-length: 0\r\n\r\n")
        return True

    engine = FakeEngine("a", redirect)
    with router(build, logs, engine, flags=FILES) as stack:
        answers = [post(stack.port, EMBED, path="/v1/files") for _ in locations]
        assert [a.status for a in answers] == [307] * 3
        assert [a.headers.get("location") for a in answers] == [None, None, "/v1/files/1"]
