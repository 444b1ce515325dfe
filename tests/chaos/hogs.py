# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Clients that make a router hold as much memory as it lets them, each kind by another way."""

import contextlib
import json
import random
import resource
import socket
import threading
import time

from pictures import image_part, png, text_part

HOST = "127.0.0.1"
PATIENCE_S = 60
DENSE_VALUES = 3_900_000
PICTURE_SIDE = 1200
PICTURES = 6
CONNECTIONS = 10_000
HEADER_BYTES = 30_000
LARGE_BYTES = 50_000_000
LARGE_BODIES = 500
LONG_ANSWER_TOKENS = 4000
PIECE = b"x" * 65536


def request(body, path="/v1/completions", length=None):
    head = (f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body) if length is None else length}\r\n\r\n")
    return head.encode() + body


def dense_json():
    values = b",0" * DENSE_VALUES
    return request(b'{"model":"demo","max_tokens":1,"prompt":"hi","junk":[0' + values + b"]}")


def dense_chat():
    """Values that the router does look into."""
    calls = b",0" * 200_000
    tool = b'{"type":"function","function":{"name":"f","parameters":{"enum":[0' + calls + b"]}}}"
    return request(b'{"model":"demo","max_tokens":1,"messages":[{"role":"user","content":"hi"}],'
                   b'"tools":[' + tool + b"]}", "/v1/chat/completions")


def pictures(seed):
    rng = random.Random(seed)
    parts = [image_part(png(PICTURE_SIDE, PICTURE_SIDE, seed=rng.randrange(1 << 30)))
             for _ in range(PICTURES)]
    body = {"model": "demo", "max_tokens": 1,
            "messages": [{"role": "user", "content": [text_part("these"), *parts]}]}
    return request(json.dumps(body).encode(), "/v1/chat/completions")


class Hogs:
    """Threads that do one thing again and again until the time is over."""

    def __init__(self, port, until):
        self.port = port
        self.until = until
        self.statuses = {}
        self._lock = threading.Lock()

    def is_over(self):
        return time.monotonic() >= self.until

    def run(self, threads, step):
        """step(number) until the time is over, on each of the threads."""
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
        status = answer[9:12].decode(errors="replace") if answer.startswith(b"HTTP") else "none"
        with self._lock:
            self.statuses[status] = self.statuses.get(status, 0) + 1

    def ask(self, data):
        with self.connect() as connection:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                connection.sendall(data)
            self.note(connection.recv(65536))

    def hold(self, begin, count):
        """So many connections on which this was sent, and nothing more."""
        with contextlib.ExitStack() as held:
            for _ in range(count):
                if self.is_over():
                    return
                with contextlib.suppress(OSError):
                    connection = held.enter_context(self.connect())
                    connection.sendall(begin)
            while not self.is_over():
                time.sleep(0.2)


def send_dense(hogs):
    bodies = [dense_json(), dense_chat()]
    hogs.run(12, lambda number: hogs.ask(bodies[number % len(bodies)]))


def send_pictures(hogs):
    bodies = [pictures(seed) for seed in range(4)]
    hogs.run(16, lambda number: hogs.ask(bodies[number % len(bodies)]))


def leave_answers_unread(hogs):
    body = json.dumps({"model": "demo", "prompt": "tell", "max_tokens": LONG_ANSWER_TOKENS,
                       "stream": True, "ignore_eos": True}).encode()
    hogs.run(1, lambda _: hogs.hold(request(body), 200))


def sit_idle(hogs):
    hogs.run(1, lambda _: hogs.hold(b"", CONNECTIONS))


def flood_headers(hogs):
    head = b"GET /health HTTP/1.1\r\nHost: x\r\nX-A: " + b"a" * HEADER_BYTES
    hogs.run(4, lambda _: hogs.hold(head, CONNECTIONS // 8))


def send_large(hogs):
    """Bodies of which all but the last bytes come."""
    def step(_):
        with hogs.connect() as connection:
            connection.sendall(request(b"", length=LARGE_BYTES))
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                for _ in range(LARGE_BYTES // len(PIECE)):
                    connection.sendall(PIECE)
                    if hogs.is_over():
                        return
            hogs.note(connection.recv(65536))
    hogs.run(min(LARGE_BODIES, 100), step)


KINDS = {
    "dense JSON": send_dense,
    "many pictures": send_pictures,
    "unread answers": leave_answers_unread,
    "idle connections": sit_idle,
    "large bodies": send_large,
    "header floods": flood_headers,
}


def run(kind, port, seconds, told):
    """In a process of its own. Puts the statuses that the hogs got."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    hogs = Hogs(port, time.monotonic() + seconds)
    KINDS[kind](hogs)
    told.put(hogs.statuses)
