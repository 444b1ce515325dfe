# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""The exact answer that a client gets for each failure of an engine."""

import json
import re
import socket
import struct
import threading
import time

import pytest
from fake_engine import (
    FakeEngine,
    answer_ok,
    chunk,
    response,
    router,
    stream_head,
    token_event,
)
from stack import SLOWDOWN, post

BODY = {"model": "demo", "messages": [{"role": "user", "content": "hello"}], "max_tokens": 4}
STREAM = {**BODY, "stream": True}


def error_of(answer):
    return json.loads(answer.body)["error"]


def close_now(connection, _request):
    return False


def reset_now(connection, _request):
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    return False


def garbage(connection, _request):
    connection.sendall(b"\x16\x03\x01 this is not HTTP at all\r\n\r\n")
    return False


def status(code, body):
    def behave(connection, _request):
        connection.sendall(response(code, body))
        return True
    return behave


@pytest.mark.parametrize("failure", [close_now, reset_now, garbage, status(503, "busy"),
                                     status(502, "")])
def test_router_replaces_an_engine_that_fails_before_its_first_byte(build, logs, failure):
    # The engine that gets the first request fails it, so the other engine must answer.
    failed = []

    def fail_once(connection, request):
        if not failed:
            failed.append(1)
            return failure(connection, request)
        return answer_ok(connection, request)

    a, b = FakeEngine("a", fail_once), FakeEngine("b", fail_once)
    with router(build, logs, a, b) as stack:
        answer = post(stack.port, BODY)
        assert answer.status == 200
        assert json.loads(answer.body)["choices"][0]["message"]["content"] == "fine"
        assert len(a.requests) == 1 and len(b.requests) == 1
        assert a.requests[0][3] == b.requests[0][3]
        assert "sightline_retries_total{" in stack.router_metrics()


@pytest.mark.parametrize("failure,want_code", [(close_now, 502), (garbage, 502),
                                               (status(503, "busy"), 503),
                                               (status(502, "busy"), 502),
                                               (status(504, "busy"), 504)])
def test_without_another_engine_the_client_gets_one_clear_error(build, logs, failure, want_code):
    with router(build, logs, FakeEngine("only", failure)) as stack:
        answer = post(stack.port, BODY)
        assert answer.status == want_code
        error = error_of(answer)
        assert error["type"] == "TimeoutError" if want_code == 504 else "ServiceUnavailableError"
        assert error["code"] == want_code and error["param"] is None
        assert answer.headers.get("retry-after") == ("1" if want_code == 503 else None)
        assert "127.0.0.1" not in answer.body.decode()
        assert str(stack.workers[0]["url"]) not in answer.body.decode()


def test_router_sends_a_declined_request_to_four_engines(build, logs):
    engines = [FakeEngine(name, status(503, "busy")) for name in "abcde"]
    with router(build, logs, *engines) as stack:
        assert post(stack.port, BODY).status == 503
        assert sum(len(engine.requests) for engine in engines) == 4
        retries = re.findall(r"^sightline_retries_total\{.*\} (\d+)", stack.router_metrics(), re.M)
        assert sum(map(int, retries)) == 3


VLLM_BUSY = ('{"error":{"message":"The engine is at its limit, come back","type":'
             '"ServiceUnavailableError","param":null,"code":503}}')


def declined(body, *headers, content_type="application/json"):
    def behave(connection, _request):
        head = response(503, body, content_type).split(b"\r\n", 1)
        lines = "".join(f"{header}\r\n" for header in headers).encode()
        connection.sendall(head[0] + b"\r\n" + lines + head[1])
        return True
    return behave


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/embeddings"])
def test_the_text_of_an_engines_503_reaches_the_client(build, logs, path):
    engine = FakeEngine("only", declined(VLLM_BUSY, "retry-after: 17"))
    with router(build, logs, engine) as stack:
        answer = post(stack.port, BODY, path=path)
        assert (answer.status, answer.body.decode()) == (503, VLLM_BUSY)
        assert answer.headers["retry-after"] == "17"
        # Other text becomes the message of an error of that form, without addresses.
        engine.behave = declined(f"upstream 127.0.0.1:{engine.port} is\r\n down",
                                 "retry-after: 99999999999", content_type="text/plain")
        answer = post(stack.port, BODY, path=path)
        assert answer.status == 503 and answer.headers["retry-after"] == "3600"
        assert error_of(answer)["message"].endswith(": upstream [address] is down")
        assert error_of(answer)["code"] == 503
        engine.behave = declined(VLLM_BUSY.replace("limit", f"limit {engine.worker['url']}"))
        answer = post(stack.port, BODY, path=path)
        assert str(engine.port) not in answer.body.decode()
        assert answer.headers["retry-after"] == "1"
        assert error_of(answer)["message"].endswith("at its limit [address], come back")


def test_a_busy_engines_503_outranks_an_unreachable_engine(build, logs):
    busy, gone = FakeEngine("busy", declined(VLLM_BUSY, "retry-after: 5")), FakeEngine("gone", None)
    with router(build, logs, busy, gone, flags=["--fleet-probe-interval", "1h"]) as stack:
        gone.close()
        answer = post(stack.port, BODY)
        assert (answer.status, answer.headers["retry-after"]) == (503, "5")


def test_an_endless_503_text_delays_no_client(build, logs):
    release = threading.Event()

    def endless(connection, _request):
        connection.sendall(b"HTTP/1.1 503 X\r\nretry-after: 9\r\ncontent-length: 100\r\n\r\nhalf")
        release.wait(60 * SLOWDOWN)
        return False

    with router(build, logs, FakeEngine("only", endless)) as stack:
        answer = post(stack.port, BODY)
        release.set()
        assert (answer.status, answer.headers["retry-after"]) == (503, "9")


def test_router_uses_a_suspect_engine_if_there_is_no_other(build, logs):
    failed = threading.Event()
    release = threading.Event()
    failures = []

    def fail_twice(connection, request):
        if len(failures) == 2:
            return answer_ok(connection, request)
        failures.append(1)
        failed.set()
        return close_now(connection, request)

    class SlowToProbe(FakeEngine):
        def quiet_answers(self):
            # No probe ends, so the worker stays suspect.
            if failed.is_set():
                release.wait(60 * SLOWDOWN)
            return super().quiet_answers()

    patient = ["--fleet-probe-timeout", "60s"]
    with router(build, logs, SlowToProbe("only", fail_twice), flags=patient) as stack:
        # One failure may be the request's own fault.
        assert post(stack.port, {**BODY, "seed": 1}).status == 502
        assert stack.worker_states()[0]["state"] == "unverified"
        assert post(stack.port, {**BODY, "seed": 2}).status == 502
        assert stack.worker_states()[0]["state"] == "suspect"
        assert post(stack.port, BODY).status == 200
        assert stack.worker_states()[0]["state"] == "suspect"
        release.set()


def test_router_retries_a_refused_connection_and_avoids_the_worker(build, logs):
    a, b = FakeEngine("a", answer_ok), FakeEngine("b", answer_ok)
    with router(build, logs, a, b) as stack:
        a.close()
        for _ in range(6):
            assert post(stack.port, BODY).status == 200
        stack.wait_until(
            lambda: {w["name"]: w["state"] for w in stack.worker_states()}["a"]
            in ("suspect", "down")
        )
        assert len(b.requests) == 6


def test_a_silent_engine_causes_a_504_after_the_timeout(build, logs):
    release = threading.Event()

    def silent(_connection, _request):
        release.wait(20 * SLOWDOWN)
        return False

    quick = ["--fleet-request-timeout", "1s"]
    with router(build, logs, FakeEngine("only", silent), flags=quick) as stack:
        answer = post(stack.port, BODY)
        release.set()
        assert answer.status == 504
        assert error_of(answer)["type"] == "TimeoutError"


def test_an_engines_4xx_reaches_the_client_without_a_retry(build, logs):
    body = ('{"error":{"message":"max_tokens must be at least 1","type":"BadRequestError",'
            '"param":"max_tokens","code":400}}')
    a, b = FakeEngine("a", status(400, body)), FakeEngine("b", status(400, body))
    with router(build, logs, a, b) as stack:
        answer = post(stack.port, BODY)
        assert answer.status == 400
        assert answer.body.decode() == body
        assert len(a.requests) + len(b.requests) == 1
        assert {w["state"] for w in stack.worker_states()} == {"unverified"}


def test_an_engines_500_reaches_the_client_and_blames_no_worker(build, logs):
    body = ('{"error":{"message":"media host refused","type":"InternalServerError",'
            '"param":null,"code":500}}')
    with router(build, logs, FakeEngine("only", status(500, body))) as stack:
        for _ in range(3):
            answer = post(stack.port, BODY)
            assert answer.status == 500
            assert answer.body.decode() == body
        assert [w["state"] for w in stack.worker_states()] == ["unverified"]


def test_a_lost_engines_stream_ends_with_an_error_event(build, logs):
    def die_midstream(connection, _request):
        connection.sendall(stream_head() + chunk(token_event("one")) + chunk(token_event("two")))
        return False

    engines = [FakeEngine(name, die_midstream) for name in "ab"]
    with router(build, logs, *engines) as stack:
        answer = post(stack.port, STREAM)
        assert answer.status == 200
        assert len(answer.events) == 3
        assert b'"one"' in answer.events[0] and b'"two"' in answer.events[1]
        error = json.loads(answer.events[2])["error"]
        assert error["type"] == "ServiceUnavailableError" and error["code"] == 502
        assert b"[DONE]" not in answer.body


def until_close(connection, _request):
    connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
                       b"connection: close\r\n\r\n" + token_event("one").encode())
    return False


def half_an_event_at_the_end(connection, _request):
    connection.sendall(stream_head() + chunk(token_event("one")) + chunk('data: {"half')
                       + b"0\r\n\r\n")
    return True


@pytest.mark.parametrize("end", [until_close, half_an_event_at_the_end])
def test_a_stream_without_done_ends_with_an_error_event(build, logs, end):
    with router(build, logs, FakeEngine("only", end)) as stack:
        answer = post(stack.port, STREAM)
        assert answer.status == 200 and len(answer.events) == 2
        assert b'"one"' in answer.events[0]
        assert json.loads(answer.events[1])["error"]["code"] == 502
        assert b"[DONE]" not in answer.body
        assert stack.worker_states()[0]["state"] == "unverified"
        assert post(stack.port, STREAM).status == 200
        stack.wait_until(lambda: stack.worker_states()[0]["state"] == "suspect")
        assert 'sightline_request_errors_total{' in stack.router_metrics()


def test_a_stream_without_its_last_empty_line_is_whole(build, logs):
    body = token_event("one") + "data: [DONE]\n"

    def no_empty_line(connection, _request):
        connection.sendall(stream_head() + chunk(body) + b"0\r\n\r\n")
        return True

    with router(build, logs, FakeEngine("only", no_empty_line)) as stack:
        assert post(stack.port, STREAM).body.decode() == body


def test_request_timeout_ends_a_request_that_the_engine_never_reads(build, logs):
    release = threading.Event()

    class Deaf(FakeEngine):
        def _serve_one(self, connection, stream):
            if connection.recv(4, socket.MSG_PEEK) == b"POST":
                release.wait(60 * SLOWDOWN)
                return False
            return super()._serve_one(connection, stream)

    # More than the buffers between the two hold. The default timeout would be half a minute.
    large = {**BODY, "ignored": "x" * (24 << 20)}
    quick = ["--fleet-request-timeout", "1s"]
    with router(build, logs, Deaf("only", answer_ok), flags=quick) as stack:
        start = time.monotonic()
        answer = post(stack.port, large)
        assert answer.status == 504 and time.monotonic() - start < 20 * SLOWDOWN
        release.set()


def test_the_failure_of_the_only_adapter_engine_reaches_the_client(build, logs):
    class WithAdapter(FakeEngine):
        def quiet_answers(self):
            answers = super().quiet_answers()
            models = json.loads(answers["/v1/models"][1])
            models["data"].append({**models["data"][0], "id": "adapter", "parent": "demo"})
            return {**answers, "/v1/models": (200, json.dumps(models))}

    with router(build, logs, WithAdapter("a", close_now), FakeEngine("b", answer_ok)) as stack:
        stack.wait_until(lambda: b"adapter" in stack.get(stack.port, "/v1/models")[1])
        answer = post(stack.port, {**BODY, "model": "adapter"})
        assert answer.status == 502
        assert "sightline_retries_total{" not in stack.router_metrics()


def test_the_first_token_is_the_first_event_with_a_payload(build, logs):
    release = threading.Event()

    def keep_alive_first(connection, request):
        if request[3].find(b'"stream"') < 0:
            return answer_ok(connection, request)
        connection.sendall(stream_head() + chunk(": keep-alive\n\n"))
        release.wait(20 * SLOWDOWN)
        connection.sendall(chunk(token_event("one")) + chunk("data: [DONE]\n\n") + b"0\r\n\r\n")
        return True

    def prefills(stack):
        return re.search(r'duration_seconds_count\{phase="prefill"\} (\d+)', stack.router_metrics())

    def prefill_blocks(stack):
        explained = stack.call("POST", stack.admin_port, "/v1/explain", json.dumps(BODY))[1]
        return json.loads(explained)["workers"][0]["terms"]["prefill_blocks"]

    engine = FakeEngine("only", keep_alive_first)
    with router(build, logs, engine) as stack:
        assert post(stack.port, BODY).status == 200
        stack.wait_until(lambda: 'phase="total"' in stack.router_metrics())
        assert prefills(stack) is None, "a whole answer has no first token"
        idle = prefill_blocks(stack)
        text = {**STREAM, "messages": [{"role": "user", "content": "word " * 2000}]}
        with socket.create_connection(("127.0.0.1", stack.port), timeout=20) as client:
            body = json.dumps(text).encode()
            client.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\n"
                           + f"content-length: {len(body)}\r\n\r\n".encode() + body)
            received = client.recv(65536)
            while b"keep-alive" not in received:
                received += client.recv(65536)
            assert prefill_blocks(stack) > idle + 100, "the prefill still counts as load"
            release.set()
            while b"[DONE]" not in received:
                received += client.recv(65536)
        stack.wait_until(lambda: prefills(stack))


def test_a_truncated_answer_becomes_a_502(build, logs):
    def half(connection, _request):
        connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
                           b"content-length: 1000\r\n\r\n{\"id\":")
        return False

    engine = FakeEngine("a", half)
    with router(build, logs, engine, FakeEngine("b", half)) as stack:
        answer = post(stack.port, BODY)
        assert answer.status == 502
        assert error_of(answer)["type"] == "ServiceUnavailableError"


def test_router_removes_a_usage_chunk_that_it_requested(build, logs):
    usage = 'data: {"id":"c","choices":[],"usage":{"prompt_tokens":5,"completion_tokens":1}}\n\n'

    def with_usage(connection, request):
        assert json.loads(request[3])["stream_options"]["include_usage"] is True
        connection.sendall(stream_head() + chunk(token_event("one")) + chunk(usage)
                           + chunk("data: [DONE]\n\n") + b"0\r\n\r\n")
        return True

    with router(build, logs, FakeEngine("a", with_usage)) as stack:
        plain = post(stack.port, STREAM)
        assert plain.body.decode() == token_event("one") + "data: [DONE]\n\n"
        asked = post(stack.port, {**STREAM, "stream_options": {"include_usage": True}})
        assert asked.body.decode() == token_event("one") + usage + "data: [DONE]\n\n"


def test_router_changes_no_bytes_without_a_reason(build, logs):
    engine = FakeEngine("a", answer_ok)
    raw = ('{ "model":"demo" ,"messages":[{"role":"user","content":"h\\u00e9llo \\/ "}],'
           '"unknown_field":{"x":[1.50,1e3]},\n"max_tokens":4}').encode()
    with router(build, logs, engine) as stack:
        headers = {"authorization": "Bearer sk-secret", "x-request-id": "mine", "x-other": "kept"}
        answer = post(stack.port, raw, headers=headers)
        assert answer.status == 200
        _, path, seen, body = engine.requests[0]
        assert body == raw and path == "/v1/chat/completions"
        assert seen["authorization"] == "Bearer sk-secret"
        assert seen["x-request-id"] == "mine" and seen["x-other"] == "kept"
        assert answer.headers["x-request-id"] == "mine"
        assert answer.headers["x-sightline-worker"] == "a"


def test_router_passes_other_paths_unchanged(build, logs):
    def echo(connection, request):
        connection.sendall(response(201, request[3], "application/x-odd"))
        return True

    engine = FakeEngine("a", echo)
    with router(build, logs, engine) as stack:
        for path, asked, kind in (
                ("/v1/embeddings?x=1", b'{ "input":"\\u00e9\xc3\xa9" ,\n"odd":1e2,"odd":null} ',
                 "application/json"),
                ("/v1/audio/translations", b"--x\r\n\r\n\x00\xffraw\r\n--x--",
                 "multipart/form-data; boundary=x")):
            answer = post(stack.port, asked, path=path, headers={"content-type": kind})
            assert answer.status == 201
            assert answer.body == asked
            assert answer.headers["content-type"] == "application/x-odd"
            assert engine.requests[-1][1] == path
        refused = post(stack.port, b"\x00\xffraw", path="/v1/embeddings")
        assert refused.status == 400 and "JSON" in json.loads(refused.body)["error"]["message"]
