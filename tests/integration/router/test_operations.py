# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Operation of the router: limits, settings, changing workers, and the shutdown."""

import http.client
import http.server
import json
import os
import pathlib
import re
import select
import signal
import socket
import subprocess
import threading

import pytest
from fake_engine import FakeEngine, answer_ok, chunk, router, stream_head, token_event
from held_thread import held
from nats_server import free_port
from pictures import data_url, image_part, png, text_part
from stack import MODELS, SLOWDOWN, Stack, post

IMAGE_FILES = pathlib.Path(__file__).resolve().parents[2] / "data/image-files"


def chat(content, **more):
    return {"model": "demo", "max_tokens": 1, "messages": [{"role": "user", "content": content}],
            **more}


def error_of(answer):
    return json.loads(answer.body)["error"]


def limit_hits(stack, limit):
    return stack.router_count(f'sightline_limit_hits_total{{limit="{limit}"}}')


@pytest.fixture(scope="module")
def small(build, shared_logs):
    """A router with low limits in front of one engine."""
    flags = ["--body-bytes-max", "256KiB", "--header-bytes-max", "4KiB", "--media-images-max", "2",
             "--media-image-bytes-max", "2KiB", "--max-model-len", "600"]
    with Stack(build, engines=1, router_flags=flags,
               logs=shared_logs / "small") as running:
        yield running


def test_a_plain_engine_causes_no_event_or_index_errors(small):
    events = small.worker_states()[0]["events"]
    assert (events["unknown_events"], events["hybrid_cache"]) == (0, False)
    metrics = small.router_metrics()
    assert re.search(r"^sightline_index_keys \d+$", metrics, re.MULTILINE)
    assert "\nsightline_index_refused_blocks_total 0\n" in metrics
    assert "sightline_event_errors_total{" not in metrics


def test_every_limit_has_a_clear_error_and_a_metric(small):
    picture = image_part(png(64, 64, seed=1))
    noise = image_part(bytes(range(256)) * 16)
    cases = [
        ("body-bytes-max", json.dumps(chat("x" * 300_000)), {}, 413),
        ("header-bytes-max", json.dumps(chat("x")), {"x-long": "y" * 5000}, 431),
        ("header-fields-max", json.dumps(chat("x")), {f"x-{i}": "y" for i in range(101)}, 431),
        ("media-images-max", chat([picture] * 3), {}, 400),
        ("media-image-bytes-max", chat([noise]), {}, 413),
        ("max-model-len", chat("word " * 700), {}, 400),
        ("json-depth-max", '{"messages":' + "[" * 100 + "]" * 100 + "}", {}, 413),
    ]
    for limit, body, headers, want_status in cases:
        before = limit_hits(small, limit)
        try:
            answer = post(small.port, body, headers=headers)
        except (BrokenPipeError, ConnectionResetError):
            pytest.fail(f"{limit}: the connection was cut before the answer could be read")
        assert answer.status == want_status, (limit, answer.body)
        assert error_of(answer)["message"] and error_of(answer)["code"] == want_status
        small.wait_until(lambda: limit_hits(small, limit) == before + 1, seconds=5)
    assert post(small.port, chat([picture, picture])).status == 200


def receive_all(connection):
    connection.settimeout(10 * SLOWDOWN)
    return b"".join(iter(lambda: connection.recv(65536), b""))


def assert_told_to_come_back(stack, answer, limit):
    head, body = answer.split(b"\r\n\r\n", 1)
    assert head.startswith(b"HTTP/1.1 503 ") and b"retry-after: 1" in head
    assert f"({limit})" in json.loads(body)["error"]["message"]
    stack.wait_until(lambda: limit_hits(stack, limit) == 1, seconds=5)


def accepted(port):
    """Counts the connections that the program has accepted. Waiting connections have no inode."""
    table = pathlib.Path("/proc/net/tcp").read_text(encoding="ascii")
    rows = [line.split() for line in table.splitlines()[1:]]
    return sum(row[1].endswith(f":{port:04X}") and row[3] == "01" and row[9] != "0"
               for row in rows)


def test_router_answers_503_to_connections_over_the_limit(build, logs):
    # This test has its own stack: a client that has just left may still count.
    flags = ["--connections-max", "50", "--header-timeout", "300s"]
    with Stack(build, engines=1, logs=logs, router_flags=flags) as stack:
        held = []

        def begin():
            held.append(socket.create_connection(("127.0.0.1", stack.port)))
            held[-1].sendall(b"GET /half")  # the router would close an idle connection

        for _ in range(50):
            begin()
        # Several threads accept. A late thread would find the last connection idle.
        stack.wait_until(lambda: accepted(stack.port) == 50)
        begin()
        refused, _, _ = select.select(held, [], [], 10 * SLOWDOWN)
        assert len(refused) == 1
        assert_told_to_come_back(stack, receive_all(refused[0]), "connections-max")
        for connection in held:
            connection.close()
        stack.wait_until(lambda: post(stack.port, chat("there is room again")).status == 200)


def test_router_limits_all_unfinished_bodies_together(build, logs):
    head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: 1000000\r\n\r\n"
    engine = FakeEngine("a", answer_ok)
    with engine, Stack(build, workers=[engine.worker], ready_states=("unverified",), logs=logs,
                       router_flags=["--body-bytes-max", "1MiB",
                                     "--total-body-bytes-max", "1MiB"]) as stack:
        first, second = [socket.create_connection(("127.0.0.1", stack.port)) for _ in range(2)]
        for connection in (first, second):
            connection.sendall(head + b"x" * 600_000)
        answered, _, _ = select.select([first, second], [], [], 10 * SLOWDOWN)
        assert len(answered) == 1
        assert_told_to_come_back(stack, receive_all(answered[0]), "total-body-bytes-max")
        assert post(stack.port, chat("a small one")).status == 200
        first.close()
        second.close()
        stack.wait_until(lambda: post(stack.port, chat("x" * 900_000)).status != 503)


def test_malformed_requests_get_400_and_affect_no_others(small):
    for body in (b"", b"{", b"[1,2]", b'{"messages":[nul]}', b"\xff\xfe", b'{"messages":{}}',
                 b'{"model":"demo","messages":[{"role":"user","content":[{"type":"image_url",'
                 b'"image_url":{"url":"data:image/png;base64,@@@@"}}]}]}',
                 b'{"model":"demo","messages":[{"role":"user","content":[{"type":"image_url",'
                 b'"image_url":{"url":"data:image/png;base64,bm90IGFuIGltYWdl"}}]}]}'):
        answer = post(small.port, body)
        assert answer.status == 400, (body, answer.body)
        assert error_of(answer)["type"] == "BadRequestError"
    assert post(small.port, chat("still here")).status == 200


def test_router_answers_503_over_the_concurrency_limit(build, logs):
    release = threading.Event()

    def slow(connection, request):
        release.wait(20 * SLOWDOWN)
        return answer_ok(connection, request)

    engine = FakeEngine("slow", slow)
    with engine, Stack(build, workers=[engine.worker], ready_states=("unverified",), logs=logs,
                       router_flags=["--concurrent-requests-max", "2"]) as stack:
        waiting = [threading.Thread(target=post, args=(stack.port, chat("x"))) for _ in range(2)]
        for thread in waiting:
            thread.start()
        stack.wait_until(lambda: len(engine.requests) == 2)
        answer = post(stack.port, chat("one too many"))
        release.set()
        assert answer.status == 503 and answer.headers["retry-after"] == "1"
        stack.wait_until(lambda: limit_hits(stack, "concurrent-requests-max") == 1, seconds=5)
        for thread in waiting:
            thread.join()


def test_sigterm_lets_a_stream_finish_and_ends_cleanly(build, logs):
    draining = threading.Event()

    def slow(connection, _request):
        connection.sendall(stream_head() + chunk(token_event("one")))
        draining.wait(20 * SLOWDOWN)
        connection.sendall(chunk(token_event("two")) + chunk("data: [DONE]\n\n") + chunk(""))
        return True

    engine = FakeEngine("slow", slow)
    # The system assigns this port to no other process once it is closed.
    with router(build, logs, engine, flags=["--port", free_port()]) as stack:
        answers = []
        body = chat("tell me", stream=True)
        stream = threading.Thread(target=lambda: answers.append(post(stack.port, body)))
        stream.start()
        stack.wait_until(lambda: engine.requests)
        stack.router.process.send_signal(signal.SIGTERM)
        stack.wait_until(lambda: "draining" in stack.router.log())
        draining.set()
        stream.join(20 * SLOWDOWN)
        assert stack.router.process.wait(20 * SLOWDOWN) == 0
        assert answers[0].status == 200 and answers[0].events[-1] == b"[DONE]"
        with pytest.raises(OSError):
            post(stack.port, body)


def settled(connection):
    """Returns what a client reads until the end of its connection, or nothing after a reset."""
    try:
        return receive_all(connection)
    except ConnectionResetError:
        return b""


def send_chat(stack, **more):
    connection = socket.create_connection(("127.0.0.1", stack.port))
    body = json.dumps(chat("x", **more)).encode()
    connection.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\n"
                       b"content-length: %d\r\n\r\n%b" % (len(body), body))
    return connection


def test_requests_that_outlast_the_drain_do_not_blame_the_client(build, logs):
    release = threading.Event()

    def begin_only(connection, request):
        if b'"stream": true' in request[3] or b'"stream":true' in request[3]:
            connection.sendall(stream_head() + chunk(token_event("a")))
        release.wait(30)
        return False

    engine = FakeEngine("a", begin_only)
    with engine, Stack(build, workers=[engine.worker], ready_states=("unverified",), logs=logs,
                       router_flags=["--drain-timeout", "300ms"]) as stack:
        whole = send_chat(stack)
        stream = send_chat(stack, stream=True)
        stack.wait_until(lambda: len(engine.requests) == 2)
        begun = stream.recv(1)
        stack.router.process.send_signal(signal.SIGTERM)
        told, event = settled(whole), begun + settled(stream)
        release.set()
        assert stack.router.process.wait(20) == 0
        assert told.startswith(b"HTTP/1.1 503 ") and b"retry-after: 1" in told
        assert b"the server stopped" in told and b"the server stopped" in event
        assert event.endswith(b"\r\n0\r\n\r\n") and b"[DONE]" not in event
        lines = [li for li in stack.router.log_path.read_text().splitlines() if "[ROUTING]" in li]
        assert len(lines) == 2
        assert all("status=499" not in li and "blame=internal" in li for li in lines), lines


def test_shutdown_resets_no_busy_client_connection(build, logs):
    engine = FakeEngine("a", answer_ok)
    ends = []

    def ask_until_told_to_stop(stack):
        connection = http.client.HTTPConnection("127.0.0.1", stack.port, timeout=10 * SLOWDOWN)
        while True:
            try:
                connection.request("POST", "/v1/chat/completions", json.dumps(chat("x")))
                answer = connection.getresponse()
                answer.read()
            except OSError as error:
                return ends.append(repr(error))
            if answer.getheader("connection") == "close":
                return ends.append("told")

    with engine, Stack(build, workers=[engine.worker], ready_states=("unverified",),
                       logs=logs) as stack:
        clients = [threading.Thread(target=ask_until_told_to_stop, args=(stack,))
                   for _ in range(12)]
        for client in clients:
            client.start()
        stack.wait_until(lambda: len(engine.requests) > 100)
        stack.router.process.send_signal(signal.SIGTERM)
        for client in clients:
            client.join()
        assert stack.router.process.wait(20) == 0
    assert ends == ["told"] * 12


@pytest.mark.parametrize("leave", ["close", "half-close"])
def test_client_that_leaves_is_counted_once_as_499(build, logs, leave):
    release = threading.Event()

    def slow(connection, request):
        release.wait(20)
        return answer_ok(connection, request)

    engine = FakeEngine("a", slow)
    with engine, Stack(build, workers=[engine.worker], ready_states=("unverified",),
                       logs=logs) as stack:
        client = send_chat(stack)
        stack.wait_until(lambda: len(engine.requests) == 1)
        if leave == "close":
            client.close()
        else:
            client.shutdown(socket.SHUT_WR)
            assert settled(client) == b""
        counted = 'sightline_requests_total{route="chat_completions",code="499"} 1'
        stack.wait_until(lambda: counted in stack.router_metrics(), seconds=5)
        # Another request shows that all effects of the first one have been counted.
        release.set()
        assert post(stack.port, chat("x")).status == 200
        assert 'code="500"' not in stack.router_metrics()


def yaml_of(stack, workers):
    lines = ["workers:"]
    for worker in workers:
        lines += [f"  - name: {worker['name']}", f"    url: {worker['url']}"]
    return "\n".join(lines) + "\n"


def test_router_applies_workers_of_its_file_without_a_restart(build, logs):
    with Stack(build, engines=2, logs=logs) as engines:
        directory = logs / "config"
        directory.mkdir(parents=True, exist_ok=True)
        file = directory / "router.yaml"
        both = engines.workers
        file.write_text(yaml_of(engines, both[:1]))
        with Stack(build, workers=[], logs=logs / "second",
                   router_flags=["--config", file]) as router:
            def names():
                return {w["name"]: w["state"] for w in router.worker_states()}

            router.wait_until(lambda: names() == {"w0": "ready"})
            replacement = directory / "next.yaml"
            replacement.write_text(yaml_of(engines, both))
            replacement.rename(file)
            router.wait_until(lambda: names() == {"w0": "ready", "w1": "ready"})
            file.write_text("workers:\n  - nonsense: 1\n")
            router.wait_until(
                lambda: 'config_reloads_total{result="refused"} 1' in router.router_metrics())
            assert names() == {"w0": "ready", "w1": "ready"}
            file.write_text(yaml_of(engines, both[1:]))
            router.wait_until(lambda: names() == {"w1": "ready"})
            assert post(router.port, chat("hello")).worker == "w1"


def test_slow_events_do_not_delay_changes_of_workers(build, logs):
    with Stack(build, engines=3, logs=logs) as engines:
        directory = logs / "config"
        directory.mkdir(parents=True, exist_ok=True)
        file = directory / "router.yaml"
        first, second, third = engines.workers
        file.write_text(yaml_of(engines, [first]))
        with Stack(build, workers=[], logs=logs / "second",
                   router_flags=["--config", file]) as router:
            def states():
                return {w["name"]: w["state"] for w in router.worker_states()}

            router.wait_until(lambda: states() == {"w0": "ready"})
            with held(router.router.process.pid, "kv-events"):
                file.write_text(yaml_of(engines, [first, second]))
                router.wait_until(lambda: states() == {"w0": "ready", "w1": "unverified"})
                file.write_text(yaml_of(engines, engines.workers))
                router.wait_until(lambda: states().get("w2") == "unverified", seconds=5)
                file.write_text(yaml_of(engines, [first, third]))
                router.wait_until(lambda: states() == {"w0": "ready", "w2": "unverified"},
                                  seconds=5)
            router.wait_until(lambda: states() == {"w0": "ready", "w2": "ready"})


def test_worker_with_only_a_url_configures_itself(build, logs):
    with Stack(build, engines=1, logs=logs, engine_flags=["--block-size", "32"]) as engines:
        url_only = [{"url": engines.workers[0]["url"]}]
        with Stack(build, workers=url_only, logs=logs / "second") as router:
            state = router.worker_states()[0]
            assert state["block_size"] == 32 and state["state"] == "ready"
            assert "127.0.0.1" not in state["name"]
            body = chat([image_part(png(448, 448, seed=5)), text_part("What is it?")])
            post(router.port, body)
            router.wait_until_heard()
            answer = post(router.port, body)
            assert answer.overlap[0] >= 8
            assert answer.usage["prompt_tokens_details"]["cached_tokens"] == 32 * answer.overlap[0]


def test_engine_with_another_block_size_is_excluded_and_claims_nothing(build, logs):
    body = chat([image_part(png(448, 448, seed=8)), text_part("What is it?")])
    with Stack(build, engines=2, logs=logs) as same, \
            Stack(build, engines=1, logs=logs / "odd", engine_flags=["--block-size", "32"]) as odd:
        workers = same.workers + [{**odd.workers[0], "name": "odd"}]
        assert post(odd.engine_port(0), body).status == 200
        with Stack(build, workers=workers, logs=logs / "mixed",
                   ready_states=("ready", "excluded")) as mixed:
            mixed.wait_until(lambda: mixed.worker_states()[2]["state"] == "excluded")
            states = mixed.worker_states()
            assert [w["state"] for w in states[:2]] == ["ready", "ready"]
            assert "32" in states[2]["reason"] and "16" in states[2]["reason"]
            assert 'worker_state{worker="odd",state="excluded"} 1' in mixed.router_metrics()
            plan = json.loads(post(mixed.admin_port, body, path="/v1/explain").body)
            assert plan["block_size"] == 16
            assert [w["overlap_blocks"] for w in plan["workers"]] == [0, 0, 0]


def test_late_router_learns_the_engines_blocks_by_replay(build, logs):
    body = chat([image_part(png(448, 448, seed=6)), text_part("What is it?")])
    with Stack(build, engines=1, logs=logs) as early:
        assert post(early.port, body).status == 200
        early.wait_until_heard()
        with Stack(build, workers=early.workers, logs=logs / "late") as late:
            late.wait_until(lambda: late.worker_states()[0]["blocks"] > 0)
            assert post(late.port, body).overlap[0] == 17


def test_one_log_line_per_request_shows_the_decision(small):
    body = chat([image_part(png(64, 64, seed=2)), text_part("What is it?")])
    answer = post(small.port, body, headers={"x-request-id": "log-line-test"})
    assert answer.status == 200

    def lines_of_request():
        return [line for line in small.router.log_path.read_text().splitlines()
                if "request_id=log-line-test" in line]

    small.wait_until(lines_of_request, seconds=5)
    lines = lines_of_request()
    assert len(lines) == 1
    assert re.search(r"\[ROUTING\] Best: worker_w0 with \d+/\d+ blocks overlap", lines[0])
    for field in ("tokens=", "images=1", "queue_ms=", "prefill_ms=", "total_ms="):
        assert field in lines[0]
    assert "What is it?" not in small.router.log_path.read_text()


def test_log_line_marks_an_estimated_prompt_length(small):
    body = chat("hello", truncate_prompt_tokens=4)
    assert post(small.port, body, headers={"x-request-id": "guess-test"}).status == 200

    def lines():
        return [line for line in small.router.log_path.read_text().splitlines()
                if "request_id=guess-test" in line]

    small.wait_until(lines, seconds=5)
    assert "not_counted=uncounted_field" in lines()[0]
    assert "tokens_estimated=true" in lines()[0]


def test_router_passes_an_unknown_image_format_and_claims_nothing(build, logs):
    engine = FakeEngine("a", answer_ok)
    with engine, Stack(build, workers=[engine.worker], ready_states=("unverified",),
                       logs=logs) as stack:
        part = image_part((IMAGE_FILES / "plain.avif").read_bytes())
        assert post(stack.port, chat([part, text_part("x")])).status == 200
        sent = json.loads(engine.requests[0][3])["messages"][0]["content"][0]
        assert sent["image_url"] == part["image_url"]
        assert re.fullmatch("[0-9a-f]{64}", sent["uuid"])
        for line in ('sightline_media_items_total{outcome="unknown"} 1',
                     'sightline_unrouted_overlap_total{reason="unknown_media"} 1'):
            stack.wait_until(lambda line=line: line in stack.router_metrics(), seconds=5)


def test_passive_audit_does_not_change_streams(build, logs):
    engine = FakeEngine("a", answer_ok)
    with engine, Stack(build, workers=[engine.worker], ready_states=("unverified",), logs=logs,
                       router_flags=["--audit-usage", "passive"]) as stack:
        raw = json.dumps(chat("x", stream=True)).encode()
        assert post(stack.port, raw).status == 200
        assert engine.requests[0][3] == raw


@pytest.mark.parametrize("forward", ["bytes", "url"])
def test_fetched_image_reaches_the_engine_as_bytes_or_url(build, logs, forward):
    content = png(64, 64, seed=3)

    class Pictures(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_):
            pass

    host = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Pictures)
    threading.Thread(target=host.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{host.server_port}/p.png"
    engine = FakeEngine("a", answer_ok)
    flags = ["--media-forward", forward, "--media-allow-private-addresses"]
    with engine, Stack(build, workers=[engine.worker], ready_states=("unverified",), logs=logs,
                       router_flags=flags) as stack:
        parts = [{"type": "image_url", "image_url": {"url": url, "detail": "low"}}]
        assert post(stack.port, chat(parts)).status == 200
        sent = json.loads(engine.requests[0][3])["messages"][0]["content"][0]
        want = url if forward == "url" else data_url(content)
        assert sent["image_url"] == {"url": want, "detail": "low"}
        assert re.fullmatch("[0-9a-f]{64}", sent["uuid"])
    host.shutdown()


def test_image_fetch_error_names_the_part_to_the_client(build, logs):
    class Nothing(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_error(404)

        def log_message(self, *_):
            pass

    host = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Nothing)
    threading.Thread(target=host.serve_forever, daemon=True).start()
    engine = FakeEngine("a", answer_ok)
    with engine, Stack(build, workers=[engine.worker], ready_states=("unverified",), logs=logs,
                       router_flags=["--media-allow-private-addresses"]) as stack:
        url = f"http://127.0.0.1:{host.server_port}/p.png"
        parts = [text_part("a"), {"type": "image_url", "image_url": {"url": url}}]
        answer = post(stack.port, chat(parts))
        assert answer.status == 422
        assert error_of(answer)["param"] == "messages[0].content[1]"
        assert not engine.requests
    host.shutdown()


def test_router_refuses_private_media_hosts_by_default(small):
    part = {"type": "image_url", "image_url": {"url": "http://127.0.0.1:1/secret"}}
    answer = post(small.port, chat([part]))
    assert answer.status == 400
    assert error_of(answer)["param"] == "messages[0].content[0]"


def test_adapters_are_separate_models_and_share_no_blocks(build, logs):
    with Stack(build, engines=1, logs=logs, engine_flags=["--lora-module", "ad"]) as stack:
        models = json.loads(stack.get(stack.port, "/v1/models")[1])["data"]
        assert {m["id"]: m["parent"] for m in models} == {"demo": None, "ad": "demo"}
        body = chat([image_part(png(448, 448, seed=9)), text_part("What is it?")])
        assert post(stack.port, body).status == 200
        stack.wait_until_heard()
        adapted = {**body, "model": "ad"}
        first = post(stack.port, adapted)
        stack.wait_until_heard()
        second = post(stack.port, adapted)
        cached = [a.usage["prompt_tokens_details"]["cached_tokens"] for a in (first, second)]
        assert (first.overlap[0], second.overlap[0]) == (0, 17) and cached == [0, 272]


def run(build, *arguments):
    return subprocess.run([build / "bin/sightline", *arguments], capture_output=True, text=True,
                          timeout=20 * SLOWDOWN)


def test_help_and_errors_name_the_right_flags(build):
    assert run(build, "--version").stdout.startswith("sightline ")
    for arguments in (["--help"], ["serve", "--help"], ["simulate", "--help"]):
        result = run(build, *arguments)
        assert result.returncode == 0 and "--model-path" in result.stdout
    wrong = run(build, "serve", "--model-pth", "x")
    assert wrong.returncode == 2 and "--model-path" in wrong.stderr
    missing = run(build, "serve", "--model-path", "/nonexistent", "--worker", "url=http://h:1")
    assert missing.returncode == 1 and "config.json" in missing.stderr
    shown = run(build, "serve", "--port", "8123", "--print-config")
    assert shown.returncode == 0 and re.search(r"port: 8123 +# flag --port", shown.stdout)
    overlapping = run(build, "simulate", "--engines", "4", "--base-port", "8101",
                      "--events-base-port", "8103", "--model-path", build / MODELS / "qwen2-vl")
    assert overlapping.returncode != 0 and "overlap" in overlapping.stderr


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_make_serve_ends_in_order_on_a_signal(build, how):
    hack = pathlib.Path(__file__).resolve().parents[3] / "hack/serve"
    serve = subprocess.Popen([hack, "--build", build, "--free-ports"], stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True, process_group=0)
    said = ""
    for line in serve.stdout:
        said += line
        if "Ctrl-C ends it" in line:
            break
    os.killpg(serve.pid, how)
    said += serve.communicate(timeout=30 * SLOWDOWN)[0]
    assert serve.returncode == 0 and said.endswith("stopped\n"), said
