#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Measures the CPU cost of an agent at rest, and for each block that its engine stores.

Method: an agent runs beside a simulated engine, whose events come from a publisher with vLLM's
sockets. One router follows the agent over NATS, and another reads the publisher itself. The bench
reads the CPU time of their threads from /proc/PID/task/*/schedstat: before and after a pause, and
before and after the publisher sends its messages. Each message has 64 blocks of 16 tokens, and
the publisher keeps a constant rate. Publisher, engine and NATS are other processes, and their CPU
time does not count.
"""

import argparse
import contextlib
import json
import pathlib
import signal
import sys
import time

import zmq

ROOT = pathlib.Path(__file__).resolve().parents[2]
for place in ("hack", "tests/support", "tests/bench"):
    sys.path.insert(0, str(ROOT / place))

from idle_bench import SETTLE_S, resident_mib, thread_seconds  # noqa: E402
from nats_server import NatsServer  # noqa: E402
from stack import Program, Stack  # noqa: E402
from vllm_publisher import Batches, Publisher  # noqa: E402

BLOCKS = 64
BLOCK_TOKENS = 16
IDLE_BOUND = 0.01  # of a core


class Readers:
    """The measured programs, by their role."""

    def __init__(self, stack, programs, publisher, nats):
        model = ["--model-path", stack.model_path, "--served-model-name", stack.name,
                 "--log-level", "warn", "--admin-port", 0]
        url = stack.workers[0]["url"]
        events = (f",events=tcp://127.0.0.1:{publisher.events_port}"
                  f",replay=tcp://127.0.0.1:{publisher.replay_port}")
        self.stack = stack
        self.programs = {}
        self.ports = {}
        for name, flags in {
            "agent": ["agent", "--nats", nats.url, "--worker", f"name=w0,url={url}{events}"],
            "router that follows it": ["serve", "--port", 0, "--nats", nats.url,
                                       "--worker", f"name=w0,url={url},agent=true"],
            "router that reads itself": ["serve", "--port", 0,
                                         "--worker", f"name=w0,url={url}{events}"],
        }.items():
            program = Program([stack.build / "bin/sightline", *flags, *model],
                              stack.logs / f"{name.replace(' ', '-')}.log")
            programs.callback(program.stop, signal.SIGKILL)
            self.programs[name] = program
            self.ports[name] = int(program.wait_for(r"^ready: .*admin http://.*:(\d+)").group(1))

    def blocks(self):
        """Returns the number of blocks that each program holds."""
        held = {}
        for name, port in self.ports.items():
            worker = json.loads(self.stack.get(port, "/v1/workers")[1])[0]
            held[name] = sum(rank["blocks"] for rank in worker["ranks"])
        return held

    def wait_for(self, blocks):
        deadline = time.monotonic() + 60
        while set(self.blocks().values()) != {blocks}:
            if time.monotonic() > deadline:
                raise RuntimeError(f"{blocks} blocks were announced, held are {self.blocks()}")
            time.sleep(0.1)

    def seconds(self):
        return {name: thread_seconds(program.process.pid)
                for name, program in self.programs.items()}


def spent_between(before, after):
    for name in after:
        after[name].subtract(before[name])
    return after


def tell(spent, unit, divided_by):
    for name, threads in spent.items():
        parts = ", ".join(f"{thread} {seconds / divided_by:.4g}"
                          for thread, seconds in threads.most_common(5) if seconds > 0)
        print(f"{name:>26}: {sum(threads.values()) / divided_by:.4g} {unit} ({parts})")
    sys.stdout.flush()


def measure(readers, publisher, arguments):
    time.sleep(SETTLE_S)
    before = readers.seconds()
    time.sleep(arguments.seconds)
    idle = spent_between(before, readers.seconds())
    print(f"idle for {arguments.seconds:.0f} s")
    tell(idle, "core", arguments.seconds)
    memory = resident_mib(readers.programs["agent"].process.pid)
    is_held = sum(idle["agent"].values()) / arguments.seconds <= IDLE_BOUND
    print(f"{memory:.0f} MiB resident; bound {IDLE_BOUND} core: {'held' if is_held else 'MISSED'}")

    before = readers.seconds()
    begun = time.monotonic()
    for sent in range(arguments.messages):
        publisher.publish()
        time.sleep(max(0.0, begun + (sent + 1) / arguments.rate - time.monotonic()))
    publisher.wait_until_sent()
    took = time.monotonic() - begun
    total = arguments.messages * BLOCKS
    readers.wait_for(total)
    print(f"{total} blocks, {total / took:.0f} in a second")
    tell(spent_between(before, readers.seconds()), "ns a block", total * 1e-9)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", nargs="?", default="build/release", type=pathlib.Path)
    parser.add_argument("--seconds", type=float, default=20.0, help="of the pause")
    parser.add_argument("--messages", type=int, default=10_000)
    parser.add_argument("--rate", type=float, default=1_000.0, help="messages in a second")
    arguments = parser.parse_args()
    print(__doc__.split("\n\n", 1)[1])
    build = arguments.build.resolve()
    stack = Stack(build, model="qwen3-vl", engines=1, logs=build / "bench-logs",
                  engine_flags=["--instant"])
    publisher = Publisher(zmq.Context(), Batches(0, BLOCKS, BLOCK_TOKENS))
    with NatsServer(stack.logs) as nats, contextlib.ExitStack() as programs:
        programs.callback(stack.stop)
        stack.start_engines()
        measure(Readers(stack, programs, publisher, nats), publisher, arguments)
    return 0


if __name__ == "__main__":
    sys.exit(main())
