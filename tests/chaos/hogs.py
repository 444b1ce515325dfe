# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Clients and engines that make a router hold as much memory as it allows. Each kind does it in
another way."""

import contextlib
import http.client
import itertools
import json
import random
import resource
import socket
import threading
import time

from fake_engine import FakeEngine, answer_ok
from pictures import image_part, png, text_part
from vllm_fleet import Publishers, http_sides

HOST = "127.0.0.1"
PATIENCE_S = 60
DENSE_VALUES = 3_900_000
PICTURE_SIDE = 1200
PICTURES = 6
PICTURE_BYTES = 2_000_000
CONNECTIONS = 10_000
HEADER_BYTES = 30_000
LARGE_BYTES = 50_000_000
LARGE_BODIES = 500
LONG_ANSWER_BYTES = 150_000_000
UNREAD_ANSWERS = 200
PIECE = b"x" * 65536
REPLAYING_ENGINES = 100
# Messages in the buffer of each engine, and blocks (of the simulated engines' size) per message.
REPLAYED = {"published": 60, "blocks": 280, "block_size": 16, "live": 2, "per_process": 50}


def request(body, path="/v1/completions", length=None):
    head = (f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body) if length is None else length}\r\n\r\n")
    return head.encode() + body


def dense_json():
    values = b",0" * DENSE_VALUES
    return request(b'{"model":"demo","max_tokens":1,"prompt":"hi","junk":[0' + values + b"]}")


def dense_chat():
    """A body with many values in a field that the router reads."""
    calls = b",0" * 200_000
    tool = b'{"type":"function","function":{"name":"f","parameters":{"enum":[0' + calls + b"]}}}"
    return request(b'{"model":"demo","max_tokens":1,"messages":[{"role":"user","content":"hi"}],'
                   b'"tools":[' + tool + b"]}", "/v1/chat/completions")


def pictures(seed):
    rng = random.Random(seed)
    # Bytes after the end of an image count for its identity.
    parts = [image_part(png(PICTURE_SIDE, PICTURE_SIDE, seed=rng.randrange(1 << 30)) +
                        rng.randbytes(PICTURE_BYTES)) for _ in range(PICTURES)]
    body = {"model": "demo", "max_tokens": 1,
            "messages": [{"role": "user", "content": [text_part("these"), *parts]}]}
    return request(json.dumps(body).encode(), "/v1/chat/completions")


def is_open(connection):
    """Returns whether the peer has kept the connection open."""
    connection.setblocking(False)
    try:
        while connection.recv(65536):
            pass
        return False
    except BlockingIOError:
        return True
    except OSError:
        return False


class Hogs:
    """Threads that repeat one step until the time is over. `around`: the router's build, port,
    admin_port, token and workers."""

    def __init__(self, around, until):
        self.around = around
        self.port = around["port"]
        self.until = until
        self.begun = time.monotonic()
        self.statuses = {}
        self._lock = threading.Lock()

    def is_over(self):
        return time.monotonic() >= self.until

    def run(self, threads, step):
        """Calls step(number) on each thread until the time is over."""
        def loop(number):
            while not self.is_over():
                with contextlib.suppress(OSError):
                    step(number)
        running = [threading.Thread(target=loop, args=(i,), daemon=True) for i in range(threads)]
        for thread in running:
            thread.start()
        for thread in running:
            thread.join()

    def connect(self):
        return socket.create_connection((HOST, self.port), timeout=PATIENCE_S)

    def note(self, answer):
        self.count(answer[9:12].decode(errors="replace") if answer.startswith(b"HTTP") else "none")

    def count(self, what, times=1):
        with self._lock:
            self.statuses[what] = self.statuses.get(what, 0) + times

    def ask(self, data):
        with self.connect() as connection:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                connection.sendall(data)
            self.note(connection.recv(65536))

    def hold(self, begin, count):
        """Opens `count` connections and sends only `begin` on each. Counts the connections that the
        router still holds at the end."""
        with contextlib.ExitStack() as held:
            connections = []
            for _ in range(count):
                if self.is_over():
                    break
                with contextlib.suppress(OSError):
                    connections.append(held.enter_context(self.connect()))
                    connections[-1].sendall(begin)
            while not self.is_over():
                time.sleep(0.2)
            self.count("open at the end", sum(map(is_open, connections)))

    def admin(self, method, path, body=None):
        connection = http.client.HTTPConnection(HOST, self.around["admin_port"],
                                                timeout=PATIENCE_S)
        connection.request(method, path, body and json.dumps(body),
                           {"authorization": f"Bearer {self.around['token']}"})
        answer = connection.getresponse()
        text = json.loads(answer.read())
        connection.close()
        if answer.status != 200:
            raise RuntimeError(f"{method} {path}: {answer.status} {text}")
        return text

    def push(self, added):
        """Pushes a worker list to the router: its own workers and these."""
        held = self.admin("GET", "/v1/workers/list").get("generation") or 0
        self.admin("PUT", "/v1/workers", {"revision": "0", "generation": held + 1,
                                          "workers": [*self.around["workers"], *added]})


def send_dense(hogs):
    bodies = [dense_json(), dense_chat()]
    hogs.run(12, lambda number: hogs.ask(bodies[number % len(bodies)]))


def send_pictures(hogs):
    bodies = [pictures(seed) for seed in range(4)]
    hogs.run(16, lambda number: hogs.ask(bodies[number % len(bodies)]))


class LongWinded(FakeEngine):
    """Answers "tell" prompts with more bytes than a router can hold, and other prompts normally."""

    def __init__(self):
        super().__init__("long-winded", self.tell)

    @staticmethod
    def tell(connection, request):
        if b"tell" not in request[3]:
            return answer_ok(connection, request)
        begin = b'{"choices":[{"index":0,"text":"'
        length = len(begin) + LONG_ANSWER_BYTES
        connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
                           b"content-length: %d\r\n\r\n" % length + begin)
        for _ in range(LONG_ANSWER_BYTES // len(PIECE)):
            connection.sendall(PIECE)
        return False


def leave_answers_unread(hogs):
    body = json.dumps({"model": "demo", "prompt": "tell", "max_tokens": 1}).encode()
    with LongWinded() as engine:
        hogs.push([engine.worker])
        hogs.run(1, lambda _: hogs.hold(request(body), UNREAD_ANSWERS))
        hogs.push([])


def sit_idle(hogs):
    hogs.run(1, lambda _: hogs.hold(b"", CONNECTIONS))


def flood_headers(hogs):
    head = b"GET /health HTTP/1.1\r\nHost: x\r\nX-A: " + b"a" * HEADER_BYTES
    hogs.run(4, lambda _: hogs.hold(head, CONNECTIONS // 8))


def send_large(hogs):
    """Sends bodies without their last bytes."""
    def step(_):
        with hogs.connect() as connection:
            connection.sendall(request(b"", length=LARGE_BYTES))
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                for _ in range(LARGE_BYTES // len(PIECE)):
                    connection.sendall(PIECE)
                    if hogs.is_over():
                        return
            hogs.note(connection.recv(65536))
    hogs.run(LARGE_BODIES, step)


def replay(hogs):
    """Engines with events to replay join, repeatedly and under new names."""
    with Publishers(REPLAYING_ENGINES, **REPLAYED) as publishers, \
            http_sides(hogs.around["build"], REPLAYING_ENGINES, interval_ms=1) as urls:
        hogs.until += time.monotonic() - hogs.begun  # for the publishers to fill their buffers
        for turn in itertools.count():
            hogs.push([{"name": f"r{i}-{turn}", "url": url,
                        "events": f"tcp://{HOST}:{events}", "replay": f"tcp://{HOST}:{replays}"}
                       for i, (url, (events, replays)) in enumerate(zip(urls, publishers.ports))])
            while not hogs.is_over() and not all(
                    told["state"] == "ready" for told in hogs.admin("GET", "/v1/workers")):
                time.sleep(0.1)
            if hogs.is_over():
                break
            hogs.count("joined")
        hogs.push([])


KINDS = {
    "dense JSON": send_dense,
    "many pictures": send_pictures,
    "unread answers": leave_answers_unread,
    "idle connections": sit_idle,
    "large bodies": send_large,
    "header floods": flood_headers,
    "engines replaying": replay,
}


def run(kind, around, seconds, told):
    """Runs in a process of its own. Puts the count of each status, or the error, into `told`."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    hogs = Hogs(around, time.monotonic() + seconds)
    try:
        KINDS[kind](hogs)
    except BaseException as error:
        told.put(repr(error))
        raise
    told.put(hogs.statuses)
