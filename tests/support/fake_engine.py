# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""An engine that misbehaves on purpose: it sends the test's answer byte for byte.

It has enough of an engine's API to be a routable worker without KV events. It keeps every
generation request, and passes each to the test's own function with the open socket.
"""

import contextlib
import json
import socket
import threading

from stack import Stack


def read_request(stream):
    """Returns (method, path, headers, body), or None at the end of the connection."""
    line = stream.readline()
    if not line:
        return None
    method, path, _ = line.decode().split(" ", 2)
    headers = {}
    while (line := stream.readline().strip()):
        name, _, value = line.decode().partition(":")
        headers[name.lower()] = value.strip()
    return method, path, headers, stream.read(int(headers.get("content-length", 0)))


def bound_to(port):
    """Returns a socket that is bound to this port (0: any port) but does not listen. Connections
    are refused, and no other process gets the port. A server of the test may listen there."""
    bound = socket.socket()
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind(("127.0.0.1", port))
    except OSError:
        bound.close()
        raise
    return bound


class FakeEngine:
    def __init__(self, name, behave):
        self.name = name
        self.behave = behave  # behave(connection, request) for generation requests
        self.requests = []    # (method, path, headers, body) of generation requests
        self.max_model_len = 32768
        # Stays bound after the engine's end. Otherwise another test's server might get the port and
        # answer for the engine.
        self._keeper = bound_to(0)
        self.port = self._keeper.getsockname()[1]
        self._listener = socket.create_server(("127.0.0.1", self.port))
        self._open = set()
        self._lock = threading.Lock()
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def worker(self):
        return {"name": self.name, "url": f"http://127.0.0.1:{self.port}"}

    def close(self):
        """Ends like a dead process: nothing listens, and open connections end."""
        # A thread waits in accept(). Without the shutdown, it would accept one more connection.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with self._lock:
            for connection in list(self._open):
                try:
                    connection.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self._listener.fileno() >= 0:
            self.close()
        self._keeper.close()

    def _accept(self):
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with self._lock:
                self._open.add(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        stream = connection.makefile("rb")
        try:
            while self._serve_one(connection, stream):
                pass
        except OSError:
            pass
        finally:
            with self._lock:
                self._open.discard(connection)
            connection.close()

    def _serve_one(self, connection, stream):
        request = read_request(stream)
        if request is None:
            return False
        method, path, headers, _ = request
        if method == "POST" or path not in self.quiet_answers():
            self.requests.append(request)
            return bool(self.behave(connection, request))
        connection.sendall(response(*self.quiet_answer(path, headers)))
        return True

    def quiet_answer(self, path, _headers):
        return self.quiet_answers()[path]

    def quiet_answers(self):
        models = {"object": "list", "data": [
            {"id": "demo", "object": "model", "root": "demo", "parent": None,
             "max_model_len": self.max_model_len}]}
        metrics = (
            'vllm:num_requests_running{engine="0"} 0.0\n'
            'vllm:num_requests_waiting{engine="0"} 0.0\n'
            'vllm:kv_cache_usage_perc{engine="0"} 0.0\n'
        )
        return {"/health": (200, ""), "/v1/models": (200, json.dumps(models)),
                "/kv_event_sources": (200, "{}"), "/metrics": (200, metrics),
                "/version": (404, "{}"), "/is_sleeping": (404, "{}")}


def response(status, body, content_type="application/json"):
    body = body.encode() if isinstance(body, str) else body
    return (f"HTTP/1.1 {status} X\r\ncontent-type: {content_type}\r\n"
            f"content-length: {len(body)}\r\n\r\n").encode() + body


def stream_head():
    return (b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n"
            b"transfer-encoding: chunked\r\n\r\n")


def chunk(data):
    data = data.encode() if isinstance(data, str) else data
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


def token_event(text):
    return "data: " + json.dumps({"id": "c", "object": "chat.completion.chunk", "model": "demo",
                                  "choices": [{"index": 0, "delta": {"content": text}}]}) + "\n\n"


def answer_ok(connection, _request):
    """Sends a valid answer without streaming."""
    body = {"id": "c", "object": "chat.completion", "model": "demo",
            "choices": [{"index": 0, "message": {"role": "assistant", "content": "fine"},
                         "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 5, "completion_tokens": 1, "total_tokens": 6}}
    connection.sendall(response(200, json.dumps(body)))
    return True


@contextlib.contextmanager
def router(build, logs, *engines, flags=()):
    """Starts a router before these engines. At the end, all of them stop."""
    with contextlib.ExitStack() as stack:
        for engine in engines:
            stack.enter_context(engine)
        yield stack.enter_context(
            Stack(build, workers=[e.worker for e in engines], ready_states=("unverified",),
                  router_flags=list(flags), logs=logs)
        )
