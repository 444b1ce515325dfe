# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Images by URL: what the downloads of one client may cost the router and other clients."""

import contextlib
import http.server
import json
import socket
import threading
import time

import pytest
from fake_engine import FakeEngine, answer_ok
from fake_engine import router as started_router
from pictures import data_url, png
from stack import SLOWDOWN, post

MIB = 1 << 20
PICTURE = png(64, 64, seed=1)
# The router ends a silent download after a quarter of its time.
PATIENT, SILENCE_S = ("--media-fetch-timeout", "300s"), 75


def images(*urls):
    parts = [{"type": "image_url", "image_url": {"url": url}} for url in urls]
    return {"model": "demo", "max_tokens": 1, "messages": [{"role": "user", "content": parts}]}


def limit_hits(stack, limit):
    return stack.router_count(f'sightline_limit_hits_total{{limit="{limit}"}}')


def in_progress(stack):
    return stack.router_count("sightline_requests_active")


def message_of(answer):
    return json.loads(answer.body)["error"]["message"]


class PictureHost:
    """Serves `content` at every path and counts the bytes sent."""

    def __init__(self, content):
        self.sent_bytes = 0
        host = self

        class Pictures(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                for at in range(0, len(content), MIB):
                    piece = content[at:at + MIB]
                    self.wfile.write(piece)
                    host.sent_bytes += len(piece)

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            def handle_error(self, *_):
                pass  # the router closes the connection when it has read enough

        self.server = Server(("127.0.0.1", 0), Pictures)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def url(self, path=""):
        return f"http://127.0.0.1:{self.server.server_port}/{path}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


class SilentHost:
    """Accepts connections and never answers."""

    def __init__(self):
        self.connections = []
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=500)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                self.connections.append(self.listener.accept()[0])

    def urls(self, count):
        return [f"http://127.0.0.1:{self.port}/{i}" for i in range(count)]

    def open_connections(self):
        count = 0
        for connection in self.connections:
            connection.setblocking(False)
            try:
                while connection.recv(4096):
                    pass
            except BlockingIOError:
                count += 1
            except OSError:
                pass
        return count

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.close()
        for connection in self.connections:
            connection.close()


def send(port, body):
    """Sends a request. Returns the open connection of its client."""
    text = json.dumps(body).encode()
    client = socket.create_connection(("127.0.0.1", port))
    client.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\n"
                   b"content-type: application/json\r\ncontent-length: %d\r\n\r\n%s"
                   % (len(text), text))
    return client


@pytest.fixture
def router(build, logs):
    @contextlib.contextmanager
    def start(*flags):
        engine = FakeEngine("a", answer_ok)
        with started_router(build, logs, engine,
                            flags=["--media-allow-private-addresses", *flags]) as stack:
            yield stack
    return start


def test_router_limits_the_images_of_one_request_while_they_arrive(router):
    with PictureHost(PICTURE + bytes(19 * MIB)) as host, router() as stack:
        answer = post(stack.port, images(*[host.url(i) for i in range(64)]))
        assert answer.status == 413
        assert "body-bytes-max" in message_of(answer)
        stack.wait_until(lambda: limit_hits(stack, "body-bytes-max") == 1)
        # The limit, and what the sockets of eight concurrent downloads hold.
        assert host.sent_bytes < 256 * MIB


def test_router_limits_the_images_of_all_running_requests(router):
    with PictureHost(PICTURE + bytes(2 * MIB)) as host, SilentHost() as stuck, \
            router("--media-held-bytes-max", "5MiB", *PATIENT) as stack:
        # Two requests each hold an image while they wait for another one.
        waiting = [send(stack.port, images(host.url(i), *stuck.urls(1))) for i in range(2)]
        stack.wait_until(lambda: host.sent_bytes >= 4 * MIB)
        answer = post(stack.port, images(host.url()))
        assert answer.status == 503 and answer.headers["retry-after"] == "1"
        assert "media-held-bytes-max" in message_of(answer)
        stack.wait_until(lambda: limit_hits(stack, "media-held-bytes-max") == 1)
        for client in waiting:
            client.close()
        stack.wait_until(lambda: in_progress(stack) == 0, seconds=5)
        assert post(stack.port, images(host.url())).status == 200


def test_router_downloads_nothing_for_a_refused_request(router):
    with SilentHost() as stuck, PictureHost(PICTURE) as host, router() as stack:
        answer = post(stack.port, images(*stuck.urls(63), "ftp://x/"))
        assert answer.status == 400
        assert post(stack.port, images(host.url())).status == 200
        assert not stuck.connections


@pytest.mark.alone
def test_silent_hosts_do_not_delay_other_downloads(router):
    with SilentHost() as stuck, PictureHost(PICTURE) as host, router(*PATIENT) as stack:
        waiting = [send(stack.port, images(*stuck.urls(64))) for _ in range(10)]
        stack.wait_until(lambda: in_progress(stack) >= 10 and len(stuck.connections) >= 10)
        begin = time.monotonic()
        assert post(stack.port, images(host.url())).status == 200
        assert time.monotonic() - begin < SILENCE_S / 2
        for client in waiting:
            client.close()


def test_downloads_end_when_their_client_leaves(router):
    with SilentHost() as stuck, PictureHost(PICTURE) as host, \
            router("--media-downloads-max", "1") as stack:
        client = send(stack.port, images(*stuck.urls(8)))
        stack.wait_until(lambda: stuck.connections)
        client.close()
        # Much sooner than the timeout of a download, 20 s.
        stack.wait_until(lambda: in_progress(stack) == 0 and stuck.open_connections() == 0,
                         seconds=5)
        assert post(stack.port, images(host.url())).status == 200
        assert len(stuck.connections) == 1


def test_router_names_and_counts_exceeded_image_limits(router):
    with PictureHost(PICTURE + bytes(4096)) as host, \
            router("--media-image-bytes-max", "1KiB") as stack:
        for url, limit, status in [(host.url(), "media-image-bytes-max", 413),
                                   (data_url(PICTURE + bytes(4096)), "media-image-bytes-max", 413),
                                   (host.url("a" * 9000), "media-url-bytes-max", 413)]:
            before = limit_hits(stack, limit)
            answer = post(stack.port, images(url))
            assert answer.status == status and limit in message_of(answer)
            stack.wait_until(lambda limit=limit, before=before:
                             limit_hits(stack, limit) == before + 1)


@pytest.mark.alone
def test_silent_host_with_many_clients_delays_no_other_download(router):
    with SilentHost() as stuck, PictureHost(PICTURE) as host, router(*PATIENT) as stack:
        waiting = [send(stack.port, images(url)) for url in stuck.urls(140)]
        stack.wait_until(lambda: in_progress(stack) >= 140 and len(stuck.connections) >= 32)
        begin = time.monotonic()
        assert post(stack.port, images(host.url())).status == 200
        assert time.monotonic() - begin < SILENCE_S / 2
        for client in waiting:
            client.close()


@pytest.mark.parametrize("variable", ["http_proxy", "HTTP_PROXY", "ALL_PROXY"])
def test_router_uses_the_environments_proxy_unless_off(build, logs, monkeypatch, variable):
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with PictureHost(PICTURE) as proxy:
        monkeypatch.setenv(variable, proxy.url())
        asked = images("http://pictures.invalid/a.png")
        with started_router(build, logs, FakeEngine("a", answer_ok)) as stack:
            assert post(stack.port, asked).status == 200
            inside = post(stack.port, images("http://10.0.0.1/a.png"))
            assert inside.status == 400 and "not a public address" in message_of(inside)
        asked_before = proxy.sent_bytes
        flags = ["--media-proxy", "off", "--media-fetch-timeout", "1s"]
        with started_router(build, logs, FakeEngine("a", answer_ok), flags=flags) as stack:
            assert post(stack.port, asked).status in (408, 422)
        assert proxy.sent_bytes == asked_before


def test_unreadable_certificate_file_ends_the_start(build, logs, tmp_path):
    for path in (tmp_path / "none.pem", tmp_path):
        with pytest.raises(RuntimeError, match="media.ca_file"):
            with started_router(build, logs, FakeEngine("a", answer_ok),
                                flags=["--media-ca-file", str(path)]):
                pass
