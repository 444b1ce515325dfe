#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Measures how long hostile text and events block an I/O thread of the router.

Method: one `sightline serve` with one I/O thread runs before an engine of this script. A preloaded
library (tests/bench/strain) measures each step: the time from the return of one epoll_wait() to the
next call. All other connections of the thread wait for this time. The bench sends each request
three times. The cost of the request itself is in all three times. Interrupts and other processes
make one time longer, but hardly all three. So a request counts with its longest step in the best
of its three times, in CPU time of the thread. A row shows the request with the highest value.
Beside it are the longest single step of all times, and the longest in wall time, which includes
waits for locks and for the processor. With --check, a row above the bound is an error.
"""

import argparse
import http.client
import itertools
import json
import pathlib
import random
import struct
import sys
import tempfile
import threading
import zlib

import zmq

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "hack"), str(ROOT / "tests/support"), str(ROOT / "tests/bench")]

from fake_engine import FakeEngine, chunk, response, stream_head  # noqa: E402
from report import machine, table  # noqa: E402
from stack import Stack  # noqa: E402
from vllm_publisher import Batches  # noqa: E402

BOUND_MS = 2.0
REPEATS = 3
MIB = 1 << 20
SLOT = struct.Struct("16sQQQ")
CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"
# Just below the limit of preparing on an I/O thread, just below the limit of parsing there, and far
# above.
SIZES = (3_000, 32_000, 4_000_000)
USAGE = {"prompt_tokens": 5, "completion_tokens": 1, "total_tokens": 6}
KV_BLOCKS = 2000  # in a batch


class Steps:
    """Reads the measurements of the preloaded library."""

    def __init__(self, path):
        self.path = path

    def _slots(self):
        data = self.path.read_bytes() if self.path.exists() else b""
        return [(i, *SLOT.unpack_from(data, i * SLOT.size)) for i in range(len(data) // SLOT.size)]

    def clear(self):
        with open(self.path, "r+b") as file:
            for i, *_ in self._slots():
                file.seek(i * SLOT.size + 16)
                file.write(bytes(24))

    def longest_ms(self):
        """Returns (longest CPU time, longest wall time, steps) of the data path's I/O threads."""
        ours = [slot for slot in self._slots() if slot[1].startswith(b"sl-io-")]
        return (max(slot[2] for slot in ours) / 1e6, max(slot[3] for slot in ours) / 1e6,
                sum(slot[4] for slot in ours))


def chat(**more):
    return {"model": "demo", "max_tokens": 1,
            "messages": [{"role": "user", "content": "hi"}], **more}


def said(text):
    return chat(messages=[{"role": "user", "content": text}])


# Each function yields the (path, body) of each request of a kind.

def dense_json():
    for size in SIZES:
        for filler in ("[]", "{}", "1", '{"a":[{}]}', '"\\u00e9"', "-1.5e-300"):
            values = ",".join([filler] * (size // (len(filler) + 1)))
            yield CHAT, json.dumps(chat())[:-1] + f',"x":[{values}]}}'
        nest = "[" * 50 + "]" * 50
        yield CHAT, json.dumps(chat())[:-1] + f',"x":[{",".join([nest] * (size // 101))}]}}'
        names = ",".join(f'"k{i}":0' for i in range(size // 9))
        yield CHAT, json.dumps(chat())[:-1] + f',"x":{{{names}}}}}'


def texts(size):
    draw = random.Random(1)
    units = ["a", "\u0301\u0316", "\u4e2d", "\u1112\u1161\u11ab", "\U0001f469\u200d", "1", " ",
             "\n", "!?", "\r\n \t", "'s", "aB1 ", "<|im_start|>", "\u0344\u0345", "\u00e9\u0327",
             "\u212b", "\uac00\u11a8"]
    for unit in units:
        yield unit * (size // len(unit.encode()))
    marks = [chr(c) for c in range(0x300, 0x34f)]
    yield "a" + "".join(draw.choices(marks, k=size // 2))
    anything = [chr(c) for c in itertools.chain(range(32, 0xd800), range(0xe000, 0x1ffff))]
    yield "".join(draw.choices(anything, k=size // 3))
    yield "".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=size))
    yield " ".join("".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=7))
                   for _ in range(size // 8))


def hostile_text():
    for size in SIZES:
        for text in texts(size):
            yield CHAT, json.dumps(said(text), ensure_ascii=False)


def templates():
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"a":[[]]}'}}
    tool = {"type": "function", "function": {"name": "f", "parameters": {"a": {"b": [1, 2]}}}}
    part = {"type": "text", "text": ""}
    for size in SIZES:
        for message in ({"role": "user", "content": ""}, {"role": "system", "content": "x"},
                        {"role": "tool", "content": "x", "tool_call_id": "c"},
                        {"role": "assistant", "content": "<think>x</think>y"},
                        {"role": "assistant", "content": "", "tool_calls": [call] * 20}):
            many = [message] * (size // len(json.dumps(message)))
            yield CHAT, json.dumps(chat(messages=many))
        yield CHAT, json.dumps(chat(tools=[tool] * (size // len(json.dumps(tool)))))
        yield CHAT, json.dumps(said([part] * (size // len(json.dumps(part)))))
        nested = json.loads('{"a":' * 25 + "{}" + "}" * 25)
        tools = [{**tool, "x": nested}] * (size // 300)
        yield CHAT, json.dumps(chat(tools=tools))


def token_ids():
    for size in SIZES:
        for ids in ("1,", "151643,"):
            prompt = "[" + (ids * (size // len(ids)))[:-1] + "]"
            yield COMPLETIONS, f'{{"model":"demo","max_tokens":1,"prompt":{prompt}}}'
        batch = ",".join(["[1,2,3]"] * (size // 8))
        yield COMPLETIONS, f'{{"model":"demo","max_tokens":1,"prompt":[{batch}]}}'


def png(text_bytes, sides=(28, 28), chunks=1):
    def piece(kind, data):
        return (struct.pack(">I", len(data)) + kind + data
                + struct.pack(">I", zlib.crc32(kind + data)))
    header = piece(b"IHDR", struct.pack(">IIBBBBB", *sides, 8, 0, 0, 0, 0))
    packed = b"Comment\0\0" + zlib.compress(bytes(text_bytes), 9)
    pixels = zlib.compress(bytes((sides[0] + 1) * sides[1]))
    return (b"\x89PNG\r\n\x1a\n" + header + piece(b"zTXt", packed) * chunks
            + piece(b"IDAT", pixels) + piece(b"IEND", b""))


def picture(data):
    import base64
    url = "data:image/png;base64," + base64.b64encode(data).decode()
    return {"type": "image_url", "image_url": {"url": url}}


def pictures():
    for many, data in ((100, png(1)), (8, png(1, (2000, 2000))), (1, png(1000) + bytes(8 * MIB)),
                       (2, png(4 * MIB)), (8, png(4 * MIB)), (1, png(1, chunks=40_000)),
                       (2, png(MIB, chunks=4))):
        yield CHAT, json.dumps(said([picture(data)] * many))


def answers():
    """Yields a request for each of the engine's answers below."""
    for name in ENGINE_ANSWERS:
        yield CHAT, json.dumps(chat(stream=name.startswith("event"), user=name))


def beside_kv_events():
    for i in range(200):
        yield CHAT, json.dumps(said(f"{i} " + "w " * 20_000))


def event(data):
    return "data: " + data + "\n\n"


def delta(filler):
    return event('{"choices":[{"index":0,"delta":{"content":"x"},"token_ids":[' + filler
                 + ']}],"usage":' + json.dumps(USAGE) + "}")


def streamed(*events):
    return stream_head() + b"".join(chunk(e) for e in (*events, event("[DONE]"))) + b"0\r\n\r\n"


def whole(filler):
    return response(200, '{"choices":[{"index":0,"logprobs":[' + filler + ']}],"usage":'
                    + json.dumps(USAGE) + "}")


ENGINE_ANSWERS = {
    "event of a million token ids": lambda: streamed(delta("151643," * 1_000_000 + "1")),
    "event of 15 MB of text": lambda: streamed(delta('"' + "x" * (15 * MIB) + '"')),
    "event of 15 MB of dense JSON": lambda: streamed(delta("{}," * (5 * MIB - 100) + "1")),
    "event of many lines": lambda: streamed("data: 1\n" * 500_000 + "\n"),
    "event of comments": lambda: streamed(": x\n" * 1_000_000 + "\n"),
    "events without anything": lambda: streamed("\n" * 2_000_000),
    "events of a token": lambda: streamed(*[delta("1")] * 1000, delta("1") * 50_000),
    "events just below what is held": lambda: streamed(*[delta("1," * 32_000 + "1")] * 50),
    "whole answer of numbers": lambda: whole("-0.12345678901," * (2 * MIB) + "1"),
    "whole answer of dense JSON": lambda: whole("{}," * (10 * MIB) + "1"),
    "whole answer of escapes": lambda: whole('"' + '\\n' * (8 * MIB) + '"'),
    "whole answer of a megabyte": lambda: whole('{"a":[]},' * 110_000 + "1"),
}

KINDS = {"dense JSON": dense_json, "text": hostile_text, "templates and tools": templates,
         "token ids": token_ids, "pictures": pictures, "answers and their events": answers,
         "ordinary, beside KV events": beside_kv_events}


class LongEngine(FakeEngine):
    """A fake engine that accepts prompts of a million tokens."""

    def quiet_answers(self):
        answers = super().quiet_answers()
        status, models = answers["/v1/models"]
        models = json.loads(models)
        models["data"][0]["max_model_len"] = MIB
        return {**answers, "/v1/models": (status, json.dumps(models))}


def behave(connection, request):
    try:
        name = json.loads(request[3]).get("user") if len(request[3]) < 500 else None
    except ValueError:
        name = None
    answer = ENGINE_ANSWERS[name]() if name in ENGINE_ANSWERS else whole("1")
    connection.sendall(answer)
    return True


class KvEvents:
    """An engine's event socket. It sends batches of many blocks as fast as a reader takes them."""

    def __init__(self):
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.PUB)
        self._socket.set_hwm(10)
        self.port = self._socket.bind_to_random_port("tcp://127.0.0.1")
        self.is_on = threading.Event()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._publish)
        self._thread.start()

    def _publish(self):
        batches = Batches(1, KV_BLOCKS, 16)
        sequence = 0
        while not self._ended.is_set():
            if not self.is_on.wait(0.1):
                continue
            payload = batches.payload(sequence)
            self._socket.send_multipart([b"", sequence.to_bytes(8, "big"), payload])
            sequence += 1

    def close(self):
        self._ended.set()
        self._thread.join()
        self._context.destroy(linger=0)


def ask(port, path, body):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
    connection.request("POST", path, body.encode(), {"content-type": "application/json"})
    status = connection.getresponse()
    status.read()
    connection.close()
    return status.status


class Row:
    """The longest steps of one kind of requests."""

    def __init__(self):
        self.cpu_ms, self.single_ms, self.wall_ms, self.steps = 0.0, 0.0, 0.0, 0
        self.request = ""  # the request with cpu_ms

    def add(self, times, request):
        """Adds a request. `times` has (CPU, wall, steps) of each of its three times."""
        cpu_ms = min(cpu for cpu, _, _ in times)
        if cpu_ms > self.cpu_ms:
            self.cpu_ms, self.request = cpu_ms, request
        self.single_ms = max(self.single_ms, *(cpu for cpu, _, _ in times))
        self.wall_ms = max(self.wall_ms, *(wall for _, wall, _ in times))
        self.steps += sum(steps for _, _, steps in times)


def measure(stack, steps, requests):
    row = Row()
    for path, body in requests:
        times = []
        for _ in range(REPEATS):
            steps.clear()
            status = ask(stack.port, path, body)
            times.append(steps.longest_ms())
        row.add(times, f"{status} for {len(body)} B: {body[:60]!r}…{body[-80:-40]!r}")
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", nargs="?", default="build/release", type=pathlib.Path)
    parser.add_argument("--kinds", default="", help="only those whose name has this in it")
    parser.add_argument("--check", action="store_true",
                        help=f"end with an error if a step takes more than {BOUND_MS} ms")
    parser.add_argument("--verbose", action="store_true", help="name the request of each row")
    arguments = parser.parse_args()
    build = arguments.build.resolve()
    print(__doc__.split("\n\n", 1)[1])
    print(machine())
    rows, missed = [], []
    kv_events = KvEvents()
    with tempfile.TemporaryDirectory() as directory, LongEngine("w0", behave) as engine:
        steps = Steps(pathlib.Path(directory) / "steps")
        worker = {**engine.worker, "events": f"tcp://127.0.0.1:{kv_events.port}"}
        with Stack(build, model="qwen3-vl", workers=[worker], logs=build / "bench-logs",
                   ready_states=("ready", "unverified"), router_flags=["--io-threads", 1],
                   router_prefix=["env", f"LD_PRELOAD={build}/lib/libsl_steps.so",
                                  f"SL_STEPS_FILE={steps.path}"]) as stack:
            for kind, requests in KINDS.items():
                if arguments.kinds not in kind:
                    continue
                (kv_events.is_on.set if "KV events" in kind else kv_events.is_on.clear)()
                row = measure(stack, steps, requests())
                rows.append([kind, f"{row.cpu_ms:.2f}", f"{row.single_ms:.2f}",
                             f"{row.wall_ms:.2f}", f"{row.steps}"])
                if row.cpu_ms > BOUND_MS:
                    missed.append(kind)
                if arguments.verbose:
                    print(f"{kind}: {row.cpu_ms:.2f} ms, {row.request}", flush=True)
    kv_events.close()
    table(["kind", "longest step, ms of CPU", "longest single", "on the wall", "steps"], rows)
    print(f"bound {BOUND_MS} ms: " + (f"MISSED by {', '.join(missed)}" if missed else "held"))
    return 1 if missed and arguments.check else 0


if __name__ == "__main__":
    sys.exit(main())
