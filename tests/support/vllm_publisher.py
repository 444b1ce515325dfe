#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""KV event publishers like those of vLLM's engines, with the limits of their sockets.

A PUB socket keeps 100,000 messages. A ROUTER socket for replays has libzmq's own limit of 1,000
messages. Beyond it, the socket drops messages silently, even the end marker. Each engine has one
thread, which sends a whole replay between two batches. It checks for requests at least ten times a
second.

As a program it runs many engines, and prints "ENGINE EVENTS_PORT REPLAY_PORT" for each. When its
input ends, it stops publishing and prints "ENGINE MESSAGES" for each engine. It serves replays
until it is killed. The engine number E and the message number N alone decide a message's blocks.
"""

import argparse
import collections
import itertools
import queue
import struct
import sys
import threading
import time

import zmq

BUFFER_STEPS = 10_000
PUB_HWM = 100_000
QUEUE_MAX = 100_000
POLL_S = 0.1
END = b"\xff" * 8
BATCHES_PER_CHAIN = 10
TOKENS = 30_000


class Batches:
    """The messages of one engine. Each stores `blocks` blocks of `block_size` tokens, which
    continue the blocks of the previous message. Every tenth message begins a new prompt."""

    def __init__(self, engine, blocks, block_size):
        self.engine, self.blocks, self.block_size = engine, blocks, block_size

    def hash_of(self, sequence, i):
        return (self.engine << 44) + (sequence << 12) + i + 1

    def parent_of(self, sequence, i):
        if i > 0:
            return self.hash_of(sequence, i - 1)
        starts = sequence % BATCHES_PER_CHAIN == 0
        return None if starts else self.hash_of(sequence - 1, self.blocks - 1)

    def first_tokens(self, sequence, i):
        """Returns the two tokens that make a block unique. All tokenizers have them, and they are
        not special tokens."""
        number = self.engine * 7919 + sequence * self.blocks + i
        return 256 + number % TOKENS, 256 + number // TOKENS % TOKENS

    def payload(self, sequence):
        """Returns the message in msgpack: [time, [{"type": "BlockStored", …}], rank]."""
        parent = self.parent_of(sequence, 0)
        rest = b"\xcd\x01\x2c" * (self.block_size - 2)
        tokens = b"".join(struct.pack(">BHBH", 0xCD, first, 0xCD, second) + rest
                          for first, second in (self.first_tokens(sequence, i)
                                                for i in range(self.blocks)))
        hashes = b"".join(struct.pack(">BQ", 0xCF, self.hash_of(sequence, i))
                          for i in range(self.blocks))
        event = b"".join([
            b"\x88", text("type"), text("BlockStored"),
            text("block_hashes"), struct.pack(">BH", 0xDC, self.blocks), hashes,
            text("parent_block_hash"),
            b"\xc0" if parent is None else struct.pack(">BQ", 0xCF, parent),
            text("token_ids"), struct.pack(">BI", 0xDD, self.blocks * self.block_size), tokens,
            text("block_size"), struct.pack(">BH", 0xCD, self.block_size),
            text("lora_id"), b"\xc0", text("medium"), text("GPU"), text("lora_name"), b"\xc0"])
        return b"\x93" + struct.pack(">Bd", 0xCB, time.time()) + b"\x91" + event + b"\x00"

    def listed(self, sequences):
        """Yields the blocks as JSON for tests/support/block_digests."""
        rest = ",300" * (self.block_size - 2)
        for sequence, i in itertools.product(sequences, range(self.blocks)):
            parent = self.parent_of(sequence, i)
            parent = "" if parent is None else f'"parent":"{parent}",'
            first, second = self.first_tokens(sequence, i)
            yield (f'{{"hash":"{self.hash_of(sequence, i)}",{parent}"media":[],'
                   f'"tokens":[{first},{second}{rest}]}}')


def text(value):
    return bytes([0xA0 | len(value)]) + value.encode()


class Publisher:
    """The publisher of one engine core. At the start, its buffer has `published` messages."""

    def __init__(self, context, batches, published=0):
        self.batches = batches
        self.next = 0
        self.asked = False
        self._buffer = collections.deque(maxlen=BUFFER_STEPS)
        for _ in range(published):
            self._buffer.append((self.next, batches.payload(self.next)))
            self.next += 1
        self._queue = queue.Queue(maxsize=QUEUE_MAX)
        self._pub = context.socket(zmq.PUB)
        self._pub.set_hwm(PUB_HWM)
        self.events_port = self._pub.bind_to_random_port("tcp://127.0.0.1")
        self._replay = context.socket(zmq.ROUTER)
        self.replay_port = self._replay.bind_to_random_port("tcp://127.0.0.1")
        threading.Thread(target=self._run, daemon=True).start()

    def publish(self):
        self._queue.put(True)

    def wait_until_sent(self):
        self._queue.join()

    def _run(self):
        while True:
            if self._replay.poll(0):
                self._serve_replay()
            try:
                self._queue.get(timeout=POLL_S)
            except queue.Empty:
                continue
            payload = self.batches.payload(self.next)
            self._pub.send_multipart((b"kv@test", self.next.to_bytes(8, "big"), payload))
            self._buffer.append((self.next, payload))
            self.next += 1
            self._queue.task_done()

    def _serve_replay(self):
        request = self._replay.recv_multipart()
        if len(request) != 3:
            return
        self.asked = True
        asker, _, start = request
        start = int.from_bytes(start, "big")
        for sequence, payload in self._buffer:
            if sequence >= start:
                self._replay.send_multipart(
                    (asker, b"", b"kv@test", sequence.to_bytes(8, "big"), payload))
        self._replay.send_multipart((asker, b"", b"", END, b""))


def publish_all(publishers, per_second, stop):
    begin = time.monotonic()
    for count in itertools.count():
        if stop.wait(max(0.0, begin + count / per_second - time.monotonic())):
            return
        for publisher in publishers:
            if publisher.asked:
                publisher.publish()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--first", type=int, default=0, help="number of the first engine")
    parser.add_argument("--engines", type=int, default=1)
    parser.add_argument("--published", type=int, default=0, help="messages before the start")
    parser.add_argument("--blocks", type=int, default=28, help="of a message")
    parser.add_argument("--block-size", type=int, default=256)
    parser.add_argument("--live", type=float, default=0.0,
                        help="messages a second and engine, from its first replay on")
    arguments = parser.parse_args()
    context = zmq.Context(io_threads=1)
    context.max_sockets = 16_384
    publishers = []
    for engine in range(arguments.first, arguments.first + arguments.engines):
        batches = Batches(engine, arguments.blocks, arguments.block_size)
        publisher = Publisher(context, batches, arguments.published)
        publishers.append(publisher)
        print(engine, publisher.events_port, publisher.replay_port, flush=True)
    stop = threading.Event()
    if arguments.live > 0:
        feeder = threading.Thread(target=publish_all, args=(publishers, arguments.live, stop))
        feeder.start()
    sys.stdin.read()
    stop.set()
    if arguments.live > 0:
        feeder.join()
    for publisher in publishers:
        publisher.wait_until_sent()
        print(publisher.batches.engine, publisher.next, flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main()
