# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Fields with which a client could make an engine connect, load or name something, on all paths."""

import base64
import gzip
import http.client
import http.server
import json
import threading
import unicodedata

import pytest
from fake_engine import FakeEngine, answer_ok, chunk, response, router, token_event
from pictures import png
from stack import post

CHAT = "/v1/chat/completions"
PATHS = [CHAT, "/v1/completions", "/v1/responses", "/v1/messages", "/v1/embeddings", "/pooling",
         "/v1/rerank", "/score", "/classify", "/tokenize", "/v1/audio/transcriptions"]
PICTURE = png(64, 64, seed=1)


def body(**more):
    return {"model": "demo", "max_tokens": 1, "prompt": "a", "input": "a",
            "messages": [{"role": "user", "content": "a"}], **more}


def media(*parts):
    return body(messages=[{"role": "user", "content": list(parts)}])


def message_of(answer):
    return json.loads(answer.body)["error"]["message"]


@pytest.fixture
def engine():
    return FakeEngine("a", answer_ok)


@pytest.fixture(scope="module")
def host():
    """Serves the image at every path."""
    class Pictures(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("content-length", str(len(PICTURE)))
            self.end_headers()
            self.wfile.write(PICTURE)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Pictures)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


@pytest.mark.parametrize("field", ["kv_transfer_params", "ec_transfer_params", "bootstrap_host"])
def test_no_path_passes_transfer_parameters(build, logs, engine, field):
    with router(build, logs, engine) as stack:
        for path in PATHS:
            for given in ({field: {"remote_host": "10.0.0.1"}},
                          {"vllm_xargs": {field: {"remote_host": "10.0.0.1"}}}):
                answer = post(stack.port, body(**given), path=path)
                assert answer.status == 400 and field in message_of(answer), path
    assert engine.requests == []


def url_forms(url):
    """Yields bodies of every path, with the URL where an engine accepts one on that path."""
    for kind in ("image_url", "video_url", "audio_url"):
        for path in (CHAT, "/v1/embeddings", "/pooling", "/tokenize"):
            yield path, media({"type": kind, kind: {"url": url}})
            yield path, media({"type": kind, kind: url})
    yield "/v1/responses", body(input=[{"role": "user", "content": [
        {"type": "input_image", "image_url": url}]}])
    yield "/v1/messages", media({"type": "image", "source": {"type": "url", "url": url}})
    yield "/v1/embeddings", body(input=[{"text": "a", "image": url}])
    yield "/score", body(text_1={"content": [{"type": "image_url", "image_url": {"url": url}}]})


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/a", "http://169.254.169.254/latest/meta-data",
                                 "http://[::ffff:10.0.0.1]/", "file:///etc/passwd", " http://a/"])
def test_no_refused_url_reaches_an_engine(build, logs, engine, url):
    with router(build, logs, engine) as stack:
        for path, asked in url_forms(url):
            answer = post(stack.port, asked, path=path)
            assert answer.status == 400, (path, asked, answer.body)
    assert engine.requests == []


def test_the_image_of_a_url_reaches_the_engine_as_bytes(build, logs, engine, host):
    want = base64.b64encode(PICTURE).decode()
    with router(build, logs, engine, flags=["--media-allow-private-addresses"]) as stack:
        for path, asked in url_forms(host + "/a"):
            answer = post(stack.port, asked, path=path)
            assert answer.status == 200, (path, answer.body)
            sent = engine.requests[-1][3].decode()
            assert host not in sent and f";base64,{want}" in sent, path


def test_metadata_services_stay_refused_if_private_addresses_are_allowed(build, logs, engine):
    with router(build, logs, engine, flags=["--media-allow-private-addresses"]) as stack:
        for address in ("169.254.169.254", "168.63.129.16", "100.100.100.200", "[fd00:ec2::254]"):
            for path, asked in url_forms(f"http://{address}/"):
                assert post(stack.port, asked, path=path).status == 400, (address, path)
    assert engine.requests == []


def test_router_fetches_a_repeated_url_once_per_request(build, logs, engine):
    asked = []

    class Pictures(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.send_response(200)
            self.send_header("content-length", str(len(PICTURE)))
            self.end_headers()
            self.wfile.write(PICTURE)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Pictures)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    part = {"type": "image_url", "image_url": {"url": f"http://127.0.0.1:{server.server_port}/a"}}
    with router(build, logs, engine, flags=["--media-allow-private-addresses"]) as stack:
        assert post(stack.port, media(*[part] * 5)).status == 200
    assert asked == ["/a"]
    assert engine.requests[0][3].count(base64.b64encode(PICTURE)) == 5
    server.shutdown()


def test_router_removes_cache_reports_and_media_names_on_all_paths(build, logs, engine):
    with router(build, logs, engine) as stack:
        for path in PATHS:
            part = {"type": "text", "text": "a", "image_embeds": "b", "uuid": "another's"}
            asked = {**media(part), "vllm_xargs": {"kv_cache_report_mode": "full"}}
            assert post(stack.port, asked, path=path).status == 200, path
            sent = json.loads(engine.requests[-1][3])
            assert sent["vllm_xargs"] == {"kv_cache_report_mode": "incremental"}, path
            if path != "/v1/completions":  # this path has no media
                assert sent["messages"][0]["content"][0]["uuid"] is None, path


def test_router_passes_only_inference_endpoints(build, logs, engine):
    with router(build, logs, engine) as stack:
        for path in ("/v1/load_lora_adapter", "/v1/unload_lora_adapter", "/v1/files", "/sleep",
                     "/v1/embeddings/x", "/inference/v1/generate", "/v1/Embeddings"):
            assert post(stack.port, body(), path=path).status == 404, path
        assert stack.get(stack.port, "/v1/embeddings")[0] == 405
    assert engine.requests == []


def test_a_setting_adds_passed_paths(build, logs, engine):
    flags = ["--passed-path", "/v1/load_lora_adapter", "--passed-path", "/v1/files/*"]
    with router(build, logs, engine, flags=flags) as stack:
        for path in ("/v1/load_lora_adapter", "/v1/files/a"):
            assert post(stack.port, {"lora_name": "x"}, path=path).status == 200
            assert engine.requests[-1][1] == path
        assert post(stack.port, {}, path="/v1/unload_lora_adapter").status == 404
        private = media({"image_url": {"url": "http://10.0.0.1/"}})
        assert post(stack.port, private, path="/v1/files/a").status == 400


def ask(stack, method, path, payload=None, **headers):
    connection = http.client.HTTPConnection("127.0.0.1", stack.port, timeout=30)
    connection.request(method, path, payload, headers)
    answer = connection.getresponse()
    return answer.status, answer.headers, answer.read()


def test_router_answers_head_like_get(build, logs, engine):
    with router(build, logs, engine) as stack:
        for path in ("/health", "/version", "/v1/models", "/v1/models/demo", "/nothing"):
            status, headers, content = ask(stack, "GET", path)
            head = ask(stack, "HEAD", path)
            assert head[0] == status and head[2] == b""
            assert head[1]["content-length"] == headers["content-length"] == str(len(content))
        status, headers, _ = ask(stack, "OPTIONS", CHAT)
        assert (status, headers["allow"]) == (204, "POST, OPTIONS")


def test_router_returns_one_model_by_its_name(build, logs, engine):
    with router(build, logs, engine, flags=["--served-model-name", "org/name"]) as stack:
        for path in ("/v1/models/org/name", "/v1/models/org%2Fname"):
            status, content = stack.get(stack.port, path)
            assert status == 200
            assert json.loads(content)["id"] == "org/name"
        listed = json.loads(stack.get(stack.port, "/v1/models")[1])["data"]
        assert json.loads(content) in listed
        for name in ("nobody", "org", "%ff%00"):
            status, content = stack.get(stack.port, "/v1/models/" + name)
            assert status == 404 and json.loads(content)["error"]["param"] == "model"


def test_pages_of_allowed_origins_may_use_the_api(build, logs):
    def with_origins(*flags):
        with router(build, logs, FakeEngine("a", answer_ok), flags=list(flags)) as stack:
            page = {"origin": "https://chat.example"}
            preflight = {**page, "access-control-request-method": "POST",
                         "access-control-request-headers": "authorization"}
            for method, path, payload, headers in (
                    ("OPTIONS", CHAT, None, preflight), ("GET", "/v1/models", None, page),
                    ("POST", CHAT, "{}", page), ("POST", CHAT, json.dumps(body()), page),
                    ("POST", "/v1/embeddings", "{}", page), ("GET", "/nothing", None, page)):
                yield ask(stack, method, path, payload, **headers)[1].get_all(
                    "access-control-allow-origin")

    assert list(with_origins()) == [["*"]] * 6
    assert list(with_origins("--cors-origin", "https://chat.example")) == [
        ["https://chat.example"]] * 6
    assert list(with_origins("--cors-origin", "https://other.example")) == [None] * 6
    assert list(with_origins("--cors-origin", "off")) == [None] * 6


def test_log_stays_text_for_every_request_id(build, logs, engine):
    names = [b"\xff\xfeid", "\u009b31mid".encode(), "\u202eid".encode(), "größe".encode()]
    with router(build, logs, engine) as stack:
        kept = [ask(stack, "POST", CHAT, "{}", **{"x-request-id": name})[1]["x-request-id"]
                for name in names]
        assert [name.startswith("req-") for name in kept] == [True, True, True, False]
        stack.wait_until(lambda: stack.router.log_path.read_bytes().count(b"status=400") == 4)
        text = stack.router.log_path.read_bytes().decode()
    assert "größe" in text
    assert {c for c in text if unicodedata.category(c) in ("Cc", "Cf")} == {"\n"}


def test_router_passes_a_compressed_stream_but_requests_none(build, logs):
    text = (token_event("a whole answer") + "data: [DONE]\n\n").encode()

    def coded(connection, _request):
        connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
                           b"content-encoding: gzip\r\ntransfer-encoding: chunked\r\n\r\n"
                           + chunk(gzip.compress(text)) + b"0\r\n\r\n")
        return True

    engine = FakeEngine("a", coded)
    with router(build, logs, engine) as stack:
        for path in (CHAT, "/v1/responses"):
            status, headers, content = ask(stack, "POST", path, json.dumps(body(stream=True)),
                                           **{"accept-encoding": "gzip, br"})
            assert (status, headers["content-encoding"]) == (200, "gzip")
            assert gzip.decompress(content) == text
            assert engine.requests[-1][2]["accept-encoding"] == "identity"


def test_router_accepts_a_byte_order_mark_and_an_empty_model(build, logs, engine):
    with router(build, logs, engine) as stack:
        for path in (CHAT, "/v1/embeddings"):
            asked = json.dumps({**body(), "model": ""}).encode()
            assert ask(stack, "POST", path, b"\xef\xbb\xbf" + asked)[0] == 200
            assert json.loads(engine.requests[-1][3])["model"] == ""
