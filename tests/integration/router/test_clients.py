# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Unmodified real clients: the openai SDK, curl, and a client that leaves."""

import http.client
import http.server
import json
import re
import socket
import subprocess
import threading
import time

import openai
import pytest
from fake_engine import FakeEngine, answer_ok, chunk, router, stream_head, token_event
from pictures import data_url, image_part, png, text_part
from stack import SLOWDOWN, Stack, post


@pytest.fixture(scope="module")
def stack(build, shared_logs):
    flags = ["--media-allow-private-addresses"]
    with Stack(build, engines=2, router_flags=flags, engine_flags=["--block-size", "16"],
               logs=shared_logs / "clients") as running:
        yield running


@pytest.fixture(scope="module")
def client(stack):
    return openai.OpenAI(base_url=f"http://127.0.0.1:{stack.port}/v1", api_key="sk-test",
                         max_retries=0)


def messages(seed, text="What is shown?"):
    return [{"role": "user", "content": [image_part(png(224, 224, seed)), text_part(text)]}]


def test_the_openai_sdk_gets_a_whole_answer_with_an_image(client):
    answer = client.chat.completions.create(model="demo", messages=messages(1), max_tokens=5)
    assert answer.choices[0].message.content
    assert answer.usage.completion_tokens == 5
    assert answer.usage.prompt_tokens > 64


def test_the_openai_sdk_streams_with_an_image(client):
    chunks = list(client.chat.completions.create(model="demo", messages=messages(2), max_tokens=5,
                                                 stream=True))
    assert "".join(c.choices[0].delta.content or "" for c in chunks)
    assert all(c.choices for c in chunks), "the client did not request the usage chunk"
    assert chunks[-1].choices[0].finish_reason


def test_the_openai_sdk_gets_usage_when_it_asks(client, stack):
    for _ in range(2):
        stack.wait_until_heard()
        chunks = list(client.chat.completions.create(
            model="demo", messages=messages(3), max_tokens=2, stream=True,
            stream_options={"include_usage": True}))
    assert not chunks[-1].choices
    assert chunks[-1].usage.prompt_tokens_details.cached_tokens > 0


def test_the_openai_sdk_completes_text_and_token_ids(client):
    text = client.completions.create(model="demo", prompt="The kettle is", max_tokens=3)
    assert text.choices[0].text
    ids = client.completions.create(model="demo", prompt=[785, 7264, 374], max_tokens=3)
    assert ids.usage.prompt_tokens == 3


def test_the_openai_sdk_lists_models_and_sees_errors(client):
    models = list(client.models.list())
    assert [m.id for m in models] == ["demo"]
    assert models[0].max_model_len == 32768
    with pytest.raises(openai.NotFoundError) as error:
        client.chat.completions.create(model="nobody", messages=messages(4))
    assert error.value.body["param"] == "model"
    with pytest.raises(openai.BadRequestError) as error:
        part = {"type": "image_url", "image_url": {"url": "ftp://x/y"}}
        client.chat.completions.create(model="demo", messages=[{"role": "user", "content": [part]}])
    assert "messages[0].content[0]" in error.value.body["message"]


def test_an_image_by_url_and_as_data_has_one_identity(stack):
    content = png(224, 224, seed=50)

    class Pictures(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("content-type", "text/plain")
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Pictures)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/photo?signature=1"

    def body(image_url):
        parts = [{"type": "image_url", "image_url": {"url": image_url}}, text_part("Look.")]
        return {"model": "demo", "max_tokens": 1, "messages": [{"role": "user", "content": parts}]}

    assert post(stack.port, body(url)).status == 200
    stack.wait_until_heard()
    for again in (body(url), body(data_url(content)), body(url + "&x=2")):
        answer = post(stack.port, again)
        assert answer.overlap[0] >= 4
        assert answer.usage["prompt_tokens_details"]["cached_tokens"] == 16 * answer.overlap[0]
    server.shutdown()


def test_a_clients_uuid_never_reaches_an_engine(stack):
    part = {**image_part(png(224, 224, seed=60)), "uuid": "same"}
    other = {**image_part(png(224, 224, seed=61)), "uuid": "same"}
    answers = []
    for item in (part, other):
        answers.append(post(stack.port, {"model": "demo", "max_tokens": 1, "messages": [
            {"role": "user", "content": [item, text_part("Look.")]}]}))
        stack.wait_until_heard()
    assert [a.status for a in answers] == [200, 200]
    assert answers[1].usage["prompt_tokens_details"]["cached_tokens"] == 0
    alone = post(stack.port, {"model": "demo", "messages": [{"role": "user", "content": [
        {"type": "image_url", "image_url": None, "uuid": "same"}]}]})
    assert alone.status == 400
    assert "uuid alone" in json.loads(alone.body)["error"]["message"]


def test_placeholders_in_user_text_claim_no_overlap(stack):
    body = {"model": "demo", "max_tokens": 1, "messages": [
        {"role": "user", "content": "look: <|image_pad|> " + "and on and on " * 30}]}
    # An engine may accept this prompt. The router predicts nothing for it.
    for _ in range(2):
        answer = post(stack.port, body)
        assert answer.headers["x-sightline-overlap"] == "0/0"
    stack.wait_until(lambda: 'reason="placeholder_mismatch"' in stack.router_metrics())


def test_client_port_answers_health_version_and_unknown_paths(stack):
    assert stack.get(stack.port, "/health") == (200, b"")
    status, body = stack.get(stack.port, "/version")
    assert status == 200 and json.loads(body)["version"]
    assert stack.get(stack.port, "/nothing")[0] == 404
    assert stack.get(stack.port, "/v1/chat/completions")[0] == 405
    assert stack.get(stack.admin_port, "/readyz?verbose")[0] == 200


def test_answers_have_a_request_id_and_refusals_are_logged(stack):
    mine = {"x-request-id": "mine-17"}
    for path, status in (("/nothing", 404), ("/v1//models", 400), ("/v1/models", 405)):
        answer = post(stack.port, {}, path=path, headers=mine)
        assert (answer.status, answer.headers["x-request-id"]) == (status, "mine-17")
        stack.wait_until(
            lambda: f"request_id=mine-17 status={status}" in stack.router.log_path.read_text())
    with socket.create_connection(("127.0.0.1", stack.port), timeout=20) as connection:
        connection.sendall(b"POST /v1/x HTTP/1.1\r\nhost: x\r\ncontent-length: 1,2\r\n\r\n")
        assert b"x-request-id: req-" in connection.makefile("rb").read()


def test_error_shortens_the_name_of_an_unknown_model(stack):
    answer = post(stack.port, {"model": "ä" * 1_000_000, "messages": messages(5)})
    assert answer.status == 404 and len(answer.body) < 1000
    assert "`" + "ä" * 128 + "…`" in json.loads(answer.body)["error"]["message"]


def test_explain_accepts_a_prompt_with_the_word_messages(stack):
    body = json.dumps({"model": "demo", "prompt": ["messages"]})
    assert stack.call("POST", stack.admin_port, "/v1/explain", body)[0] == 200


@pytest.fixture(scope="module")
def slow_stack(build, shared_logs):
    flags = ["--prefill-tokens-per-s", "100", "--decode-tokens-per-s", "25", "--block-size", "16"]
    with Stack(build, engines=1, engine_flags=flags,
               logs=shared_logs / "slow_clients") as running:
        yield running


def test_curl_shows_tokens_one_by_one(build, logs):
    shown = threading.Semaphore(1)

    # The engine makes the next token when curl has shown the one before. So the router may hold
    # back no token.
    def one_by_one(connection, _request):
        connection.sendall(stream_head())
        for i in range(10):
            assert shown.acquire(timeout=20 * SLOWDOWN), f"token {i - 1} was held back"
            connection.sendall(chunk(token_event(str(i))))
        connection.sendall(chunk("data: [DONE]\n\n") + chunk(""))
        return True

    with router(build, logs, FakeEngine("a", one_by_one)) as stack:
        body = json.dumps({"model": "demo", "stream": True,
                           "messages": [{"role": "user", "content": "hi"}]})
        process = subprocess.Popen(
            ["curl", "-sN", f"http://127.0.0.1:{stack.port}/v1/chat/completions",
             "-H", "content-type: application/json", "-d", body], stdout=subprocess.PIPE)
        tokens = 0
        for line in process.stdout:
            if line.startswith(b"data: {") and b"choices" in line:
                tokens += 1
                shown.release()
        assert process.wait() == 0
        assert tokens == 10


def test_client_that_leaves_during_prefill_stops_the_engine(slow_stack):
    before = slow_stack.engine_metrics(0)
    body = json.dumps({"model": "demo", "max_tokens": 4, "stream": True, "messages": [
        {"role": "user", "content": "word " * 3000}]}).encode()  # 30 s of prefill
    connection = socket.create_connection(("127.0.0.1", slow_stack.port))
    connection.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\n"
                       b"content-type: application/json\r\n"
                       + f"content-length: {len(body)}\r\n\r\n".encode() + body)
    slow_stack.wait_until(
        lambda: slow_stack.engine_metrics(0)["vllm:num_requests_running"] == 1)
    connection.close()
    slow_stack.wait_until(
        lambda: slow_stack.engine_metrics(0)["vllm:num_requests_running"] == 0)
    # The client caused this, so the worker stays in service.
    assert slow_stack.worker_states()[0]["state"] == "ready"
    slow_stack.wait_until(lambda: slow_stack.worker_states()[0]["in_flight"] == 0)
    computed = sum(
        slow_stack.engine_metrics(0)[name] - before.get(name, 0)
        for name in slow_stack.engine_metrics(0) if name.startswith("sl_sim_prefill_tokens"))
    # The router counts this last.
    slow_stack.wait_until(
        lambda: "sightline_client_disconnects_total 1" in slow_stack.router_metrics())
    log = slow_stack.router.log_path.read_text()
    assert "state=suspect" not in log
    assert re.search(r"status=499 .*error=cancelled blame=client", log)
    assert computed < 1500, "far fewer tokens computed than the 3000 asked for"


def test_client_that_closes_at_done_has_a_whole_answer(build, logs):
    finished = threading.Event()

    def without_an_end(connection, _request):
        connection.sendall(stream_head() + chunk(token_event("one")) + chunk("data: [DONE]\n\n"))
        # The body ends long after the client has gone.
        finished.wait(60 * SLOWDOWN)
        return False

    engine = FakeEngine("a", without_an_end)
    with engine, Stack(build, workers=[engine.worker], ready_states=("unverified",),
                       logs=logs) as stack:
        body = json.dumps({"model": "demo", "stream": True, "messages": [
            {"role": "user", "content": "hello"}]})
        connection = http.client.HTTPConnection("127.0.0.1", stack.port, timeout=20 * SLOWDOWN)
        connection.request("POST", "/v1/chat/completions", body,
                           {"content-type": "application/json"})
        answer = connection.getresponse()
        while answer.readline().strip() != b"data: [DONE]":
            pass
        answer.close()
        connection.close()
        stack.wait_until(lambda: "[ROUTING]" in stack.router.log_path.read_text())
        finished.set()
        log = stack.router.log_path.read_text()
        assert "status=200" in log and "error=" not in log
        assert "sightline_client_disconnects_total 1" not in stack.router_metrics()


@pytest.mark.alone
def test_router_skips_queued_requests_of_clients_that_left(build, logs):
    def cpu_s(stack):
        fields = open(f"/proc/{stack.router.process.pid}/stat").read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / 100

    def active(stack):
        match = re.search(r"sightline_requests_active (\d+)", stack.router_metrics())
        return int(match.group(1)) if match else 0

    # One word of megabytes takes a second. Other requests wait for the single compute thread.
    body = json.dumps({"model": "demo", "prompt": "a" * 4_000_000, "max_tokens": 1}).encode()
    request = (b"POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
               b"content-length: %d\r\n\r\n%s" % (len(body), body))
    engine = FakeEngine("a", answer_ok)
    engine.max_model_len = 10_000_000
    with router(build, logs, engine, flags=["--max-model-len", "10000000", "--compute-threads", "1",
                                            "--token-cache-bytes-max", "0"]) as stack:
        begin_s = cpu_s(stack)
        assert post(stack.port, body, path="/v1/completions").status == 200
        one_s = cpu_s(stack) - begin_s
        clients = [socket.create_connection(("127.0.0.1", stack.port)) for _ in range(8)]
        for client in clients:
            client.sendall(request)
        stack.wait_until(lambda: active(stack) == 8)
        for client in clients:
            client.close()
        stack.wait_until(lambda: active(stack) == 0)
        assert cpu_s(stack) - begin_s - one_s < 4 * one_s


@pytest.mark.alone
def test_router_refuses_a_far_too_long_prompt_before_tokenizing(build, logs):
    engine = FakeEngine("a", answer_ok)
    with router(build, logs, engine, flags=["--max-model-len", "600"]) as stack:
        begin = time.monotonic()
        answer = post(stack.port, {"model": "demo", "prompt": "a" * 16_000_000},
                      path="/v1/completions")
        assert answer.status == 400
        assert "maximum context length is 600 tokens" in answer.body.decode()
        assert time.monotonic() - begin < 1.5 * SLOWDOWN
        assert not engine.requests
