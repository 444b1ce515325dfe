#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Measures the CPU time of the router for each request, from outside.

Method: one `sightline serve` (kv policy, real model files, template, tokenizer, block keys) runs in
front of one `sightline simulate --instant`. The engine answers immediately with a fixed text. A
closed-loop client keeps c connections busy. CPU is the user and system time of the router's process
from /proc/PID/stat, divided by the answered requests. The client and the engine are other
processes, and their CPU time does not count. Each shape first has a warm-up.

163 KB of text are one message of words with a wide vocabulary, except for "conversation":
  cold          every request has another text, which the router's token cache does not have
  same          every request has the same text
  grown text    each request adds 3 KB to one text, from 150 to 176 KB
  conversation  each request adds a turn of 3 KB to 20 turns of 8 KB, up to 176 KB
The last two start again from 150 KB with other additions.
"""

import argparse
import gzip
import http.client
import json
import os
import pathlib
import random
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "hack"))

from pictures import data_url, png  # noqa: E402
from stack import Stack  # noqa: E402

TICK_S = 1 / os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) * TICK_S


def vocabulary():
    """Returns words of natural texts of many kinds, from the tokenizer's test strings."""
    words = set()
    with gzip.open(ROOT / "tests/data/tokenizers/texts.jsonl.gz", "rt") as lines:
        for line in lines:
            row = json.loads(line)
            if row["cat"] in ("ascii", "latin", "code", "normal", "big"):
                words.update(w for w in row["text"].split() if 1 < len(w) < 16 and w.isascii())
    return sorted(words)


def text_of(words, size, seed):
    rng = random.Random(seed)
    out, length = [], 0
    while length < size:
        word = rng.choice(words)
        out.append(word)
        length += len(word) + 1
    return " ".join(out)[:size]


def text_body(text):
    return json.dumps({"model": "demo", "max_tokens": 1,
                       "messages": [{"role": "user", "content": text}]}).encode()


class ColdText:
    """Texts of one size that share no stretch of a few kilobytes. They are cut from one long text
    at random places, so no part has the same position in two requests."""

    def __init__(self, words, size):
        self._text = text_of(words, 64 * size, 1)
        self._size = size
        self._rng = random.Random(2)

    def __call__(self, _):
        begin = self._rng.randrange(len(self._text) - self._size)
        return text_body(self._text[begin:begin + self._size])


class Growing:
    """Requests that begin with the same 150 KB. Each adds some new text to the previous one."""

    STEPS = 9

    def __init__(self, words, as_turns):
        self._base = [text_of(words, 7_500, seed) for seed in range(20)]
        self._additions = text_of(words, 4_000_000, 3)
        self._rng = random.Random(4)
        self._as_turns = as_turns
        self._lock = threading.Lock()
        self._grown = {}

    def __call__(self, k):
        with self._lock:
            added = self._grown.get(k, [])
            added = added[:] if len(added) < self.STEPS else []
            begin = self._rng.randrange(len(self._additions) - 3000)
            added.append(self._additions[begin:begin + 2900])
            self._grown[k] = added
        if not self._as_turns:
            return text_body(" ".join(self._base + added))
        roles = ("user", "assistant")
        turns = [{"role": roles[i % 2], "content": text}
                 for i, text in enumerate(self._base + added)]
        return json.dumps({"model": "demo", "max_tokens": 1, "messages": turns}).encode()


def image_body(size, seed):
    """Returns a body of `size` bytes with one image: a PNG file padded with random bytes."""
    content = bytearray(png(1024, 1024, seed))
    rng = random.Random(seed)
    content += rng.randbytes(max(0, size * 3 // 4 - len(content) - 200))
    parts = [{"type": "image_url", "image_url": {"url": data_url(bytes(content))}},
             {"type": "text", "text": "What is shown in this picture?"}]
    return json.dumps({"model": "demo", "max_tokens": 1,
                       "messages": [{"role": "user", "content": parts}]}).encode()


def drive(port, bodies, connections, seconds):
    """Sends one request after the other on every connection, and returns the number of answers.
    `bodies` is a list, or a function of the connection's number."""
    counts = [0] * connections
    stop = time.monotonic() + seconds

    def loop(k):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        i = k
        while time.monotonic() < stop:
            body = bodies(k) if callable(bodies) else bodies[i % len(bodies)]
            connection.request("POST", "/v1/chat/completions", body,
                               {"content-type": "application/json"})
            answer = connection.getresponse()
            answer.read()
            if answer.status != 200:
                raise RuntimeError(f"status {answer.status}")
            counts[k] += 1
            i += connections
        connection.close()

    threads = [threading.Thread(target=loop, args=(k,)) for k in range(connections)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", nargs="?", default="build/release")
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--only", default="", help="shapes whose name holds this text")
    parser.add_argument("--router-flag", action="append", default=[], help="repeatable")
    arguments = parser.parse_args()
    words = vocabulary()
    shapes = [
        ("200 tokens", [text_body(text_of(words, 800, s)) for s in range(64)]),
        ("163 KB cold", ColdText(words, 163_000)),
        ("163 KB same", [text_body(text_of(words, 163_000, 7))]),
        ("163 KB grown text", Growing(words, as_turns=False)),
        ("163 KB conversation", Growing(words, as_turns=True)),
        ("923 KB image body", [image_body(923_000, s) for s in range(8)]),
    ]
    shapes = [shape for shape in shapes if arguments.only in shape[0]]
    print(__doc__.split("\n\n", 1)[1])
    print(f"{'shape':22} {'c':>3} {'requests':>9} {'CPU ms/request':>15}")
    with Stack(arguments.build, model="qwen3-vl", engines=1, engine_flags=["--instant"],
               router_flags=["--log-level", "warn"] + arguments.router_flag,
               ready_states=("ready", "unverified"),
               logs=pathlib.Path(arguments.build) / "bench-logs") as stack:
        for name, bodies in shapes:
            for connections in (1, 32):
                drive(stack.port, bodies, connections, 0.5)
                before = cpu_seconds(stack.router.process.pid)
                answered = drive(stack.port, bodies, connections, arguments.seconds)
                spent = cpu_seconds(stack.router.process.pid) - before
                print(f"{name:22} {connections:3} {answered:9} {spent / answered * 1e3:15.3f}",
                      flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
