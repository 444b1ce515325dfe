# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Answers of many megabytes pass through the router, which does not keep them. It still reads what
the engine reports in them."""

import http.client
import json
import os
import re
import socket
import threading

import pytest
from fake_engine import FakeEngine, chunk, router, stream_head, token_event

MIB = 1 << 20
STALLED_S = 1  # while the router takes no byte
USAGE = {"prompt_tokens": 5, "completion_tokens": 1, "total_tokens": 6,
         "prompt_tokens_details": {"cached_tokens": 4}}
BODY = json.dumps({"model": "demo", "messages": [{"role": "user", "content": "hi"}]})
STREAM_BODY = json.dumps({**json.loads(BODY), "stream": True})


def memory_mib(stack, field):
    with open(f"/proc/{stack.router.process.pid}/status") as status:
        return int(re.search(rf"{field}:\s+(\d+) kB", status.read()).group(1)) / 1024


def long_answer(filler_bytes):
    """An answer with the usage before the longest part, as vLLM writes prompt_logprobs."""
    text = json.dumps({"id": "c", "object": "chat.completion", "model": "demo", "choices": [
        {"index": 0, "message": {"role": "assistant", "content": "fine"}}], "usage": USAGE})
    return (text[:-1] + ', "prompt_logprobs": ["' + "x" * filler_bytes + '"]}').encode()


def head(length):
    return (f"HTTP/1.1 200 X\r\ncontent-type: application/json\r\n"
            f"content-length: {length}\r\n\r\n").encode()


class Slow:
    """Sends an answer and counts the bytes that the router takes."""

    def __init__(self, answer):
        self.answer = answer
        self.taken = 0
        self.settled = threading.Event()  # the router has stalled, or has taken all
        self.ended = threading.Event()

    def __call__(self, connection, _request):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 65536)
        connection.settimeout(STALLED_S)
        while self.taken < len(self.answer):
            try:
                self.taken += connection.send(self.answer[self.taken:self.taken + 65536])
            except TimeoutError:
                self.settled.set()
        self.settled.set()
        self.ended.set()
        return True


def begin(stack, body):
    """A client that sends its request and reads nothing. Its socket holds few bytes."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
    client.connect(("127.0.0.1", stack.port))
    client.sendall((f"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\n"
                    f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
                    f"{body}").encode())
    return client


def answer_of(client):
    answer = http.client.HTTPResponse(client)
    answer.begin()
    return answer


def long_event(filler_bytes):
    event = {"id": "c", "object": "chat.completion.chunk", "model": "demo",
             "choices": [{"index": 0, "delta": {"content": "x" * filler_bytes}}], "usage": USAGE}
    return "data: " + json.dumps(event) + "\n\n"


def stream_of(events):
    return stream_head() + b"".join(chunk(event) for event in events) + b"0\r\n\r\n"


def kinds_of_answer():
    body = long_answer(48 * MIB)
    events = [token_event("one")] + [long_event(12 * MIB)] * 4 + ["data: [DONE]\n\n"]
    return {"whole": (BODY, head(len(body)) + body, body),
            "stream": (STREAM_BODY, stream_of(events), "".join(events).encode())}


@pytest.mark.parametrize("kind", ["whole", "stream"])
def test_an_unread_answer_stays_with_the_engine(build, logs, kind):
    body, answer, want = kinds_of_answer()[kind]
    engine = Slow(answer)
    with router(build, logs, FakeEngine("a", engine)) as stack:
        before = memory_mib(stack, "VmRSS")
        with begin(stack, body) as client:
            assert engine.settled.wait(60)
            assert engine.taken < 16 * MIB, "the router takes more than its client"
            with answer_of(client) as read:
                assert read.status == 200
                assert read.read() == want
            assert engine.ended.wait(60)
        if "SL_SANITIZER_REPORTS" not in os.environ:  # sanitizers keep freed memory
            assert memory_mib(stack, "VmHWM") <= before + 32
        stack.wait_until(lambda: re.search(r"\[ROUTING\].*cached_tokens=4", stack.router.log()))


def test_an_answer_of_half_a_megabyte_has_its_length(build, logs):
    body = long_answer(MIB // 2)
    with router(build, logs, FakeEngine("a", Slow(head(len(body)) + body))) as stack:
        with begin(stack, BODY) as client, answer_of(client) as read:
            assert read.getheader("content-length") == str(len(body))
            assert read.read() == body
        stack.wait_until(lambda: re.search(r"\[ROUTING\].*cached_tokens=4", stack.router.log()))


def cut(answer):
    """An engine that dies in the middle of its answer."""
    def behave(connection, _request):
        connection.sendall(answer)
        return False
    return behave


@pytest.mark.parametrize("kind", ["whole", "stream"])
def test_a_broken_long_answer_reaches_the_client_incomplete(build, logs, kind):
    body, answer, want = kinds_of_answer()[kind]
    with router(build, logs, FakeEngine("a", cut(answer[:20 * MIB]))) as stack:
        with begin(stack, body) as client, answer_of(client) as read:
            with pytest.raises(http.client.IncompleteRead) as broken:
                read.read()
        assert want.startswith(broken.value.partial)
        assert len(broken.value.partial) > 16 * MIB
        counted = 'sightline_request_errors_total{code="unavailable",blame="worker"} 1'
        stack.wait_until(lambda: counted in stack.router_metrics())
        assert stack.get(stack.admin_port, "/healthz")[0] == 200


def test_a_stream_broken_between_events_ends_with_an_error_event(build, logs):
    begun = stream_head() + chunk(long_event(2 * MIB))
    with router(build, logs, FakeEngine("a", cut(begun))) as stack:
        with begin(stack, STREAM_BODY) as client, answer_of(client) as read:
            events = read.read().split(b"\n\n")
        assert events[0] + b"\n\n" == long_event(2 * MIB).encode()
        assert json.loads(events[1].removeprefix(b"data: "))["error"]["code"] == 502


def test_router_cuts_an_event_above_the_limit(build, logs):
    with router(build, logs, FakeEngine("a", cut(stream_of([long_event(17 * MIB)])))) as stack:
        with begin(stack, STREAM_BODY) as client, answer_of(client) as read:
            with pytest.raises(http.client.IncompleteRead) as broken:
                read.read()
        assert len(broken.value.partial) <= 16 * MIB
        counted = 'sightline_request_errors_total{code="too_large",blame="worker"} 1'
        stack.wait_until(lambda: counted in stack.router_metrics())
