# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Starts a router beside engines with vLLM's publishers (vllm_publisher.py). Measures when each
worker becomes ready. Compares the index with the published blocks, block by block."""

import contextlib
import http.client
import json
import pathlib
import re
import subprocess
import sys
import time

from stack import SLOWDOWN, Stack
from vllm_publisher import Batches

MODEL = "demo"
METRICS = pathlib.Path(__file__).parents[1] / "data/fleet/metrics-busy.txt"


class Publishers:
    """Publishers of engines, `per_process` of them in each process."""

    def __init__(self, engines=1, per_process=250, **options):
        self.blocks, self.block_size = options.get("blocks", 28), options.get("block_size", 256)
        self.ports = []
        self.counts = None
        self._programs = []
        flags = [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]
        for first in range(0, engines, per_process):
            here = min(per_process, engines - first)
            program = subprocess.Popen(
                [sys.executable, str(pathlib.Path(__file__).with_name("vllm_publisher.py")),
                 f"--first={first}", f"--engines={here}", *flags],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            self._programs.append((program, here))
        for program, here in self._programs:
            for _ in range(here):
                self.ports.append([int(n) for n in program.stdout.readline().split()[1:]])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for program, _ in self._programs:
            program.kill()
            program.wait()
            program.stdin.close()
            program.stdout.close()

    def end_traffic(self):
        """Stops publishing, waits until all messages are sent, and returns each engine's count."""
        for program, _ in self._programs:
            program.stdin.close()
        self.counts = [int(program.stdout.readline().split()[1])
                       for program, here in self._programs for _ in range(here)]
        return self.counts

    def announced(self, build, engine):
        """Returns the digests of all blocks that the engine has published, as in GET /v1/index."""
        batches = Batches(engine, self.blocks, self.block_size)
        with subprocess.Popen([str(build / "bin/block_digests")], text=True,
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
            digests = set()
            for first in range(0, self.counts[engine], 100):
                some = range(first, min(first + 100, self.counts[engine]))
                listed = ",".join(batches.listed(some))
                program.stdin.write(f'{{"model":"{MODEL}","blocks":[{listed}]}}\n')
                program.stdin.flush()
                digests.update(json.loads(program.stdout.readline()))
            program.stdin.close()
        return digests


@contextlib.contextmanager
def http_sides(build, count, interval_ms=1000):
    """Starts healthy HTTP engines that answer each request after `interval_ms`. Yields their
    URLs."""
    program = subprocess.Popen(
        [str(build / "bin/load_generator"), "engine", str(interval_ms), "1", str(count),
         str(METRICS)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield [f"http://127.0.0.1:{port}" for port in program.stdout.readline().split()[1:]]
    finally:
        program.stdin.close()
        program.wait()
        program.stdout.close()


@contextlib.contextmanager
def router_beside(build, publishers, logs, flags=()):
    """Starts a router beside the publishers, and yields it without waiting for ready workers."""
    with http_sides(build, len(publishers.ports)) as urls:
        workers = [{"name": f"w{i}", "url": url, "events": f"tcp://127.0.0.1:{events}",
                    "replay": f"tcp://127.0.0.1:{replay}"}
                   for i, (url, (events, replay)) in enumerate(zip(urls, publishers.ports))]
        stack = Stack(build, workers=workers, logs=logs, router_flags=list(flags),
                      ready_states=("starting", "unverified", "suspect", "down", "ready"))
        with stack:
            yield stack


class Joining:
    """Polls the workers until all are ready, and records measurements of the router."""

    def __init__(self, stack):
        self.stack = stack
        self.blocks_when_ready = {}  # worker -> blocks in the index
        self.rss_mib = 0.0
        self.descriptors = 0
        self.held_bytes = 0.0  # the maximum of sightline_event_held_bytes
        self.begin = time.monotonic()
        self.seconds = None

    def wait(self, seconds):
        deadline = time.monotonic() + seconds * SLOWDOWN
        pid = self.stack.router.process.pid
        while len(self.blocks_when_ready) < len(self.stack.workers):
            if time.monotonic() > deadline:
                raise RuntimeError(f"{len(self.blocks_when_ready)} ready after {seconds} s: "
                                   f"{self.stack.worker_states()[0]}")
            for told in self.stack.worker_states():
                if told["state"] == "ready":
                    self.blocks_when_ready.setdefault(told["name"], told["blocks"])
            status = pathlib.Path(f"/proc/{pid}/status").read_text()
            self.rss_mib = max(self.rss_mib,
                               int(re.search(r"^VmHWM:\s+(\d+) kB", status, re.M).group(1)) / 1024)
            self.descriptors = max(self.descriptors,
                                   len(list(pathlib.Path(f"/proc/{pid}/fd").iterdir())))
            metrics = self.stack.router_metrics()
            waiting = re.search(r"^sightline_event_held_bytes (\S+)", metrics, re.M)
            self.held_bytes = max(self.held_bytes, float(waiting.group(1)) if waiting else 0.0)
            time.sleep(0.05)
        self.seconds = time.monotonic() - self.begin
        return self


def held(stack, engine):
    """Returns (whether the entries count, digests) of a worker's blocks in the index."""
    connection = http.client.HTTPConnection("127.0.0.1", stack.admin_port, timeout=120 * SLOWDOWN)
    connection.request("GET", f"/v1/index?worker=w{engine}")
    told = json.loads(connection.getresponse().read())
    connection.close()
    return told["counts"], {digest for rank in told["ranks"] for digest in rank["blocks"]}


def count_errors(stack, kind):
    """Returns sightline_event_errors_total of that kind over all workers."""
    pattern = rf'sightline_event_errors_total{{[^}}]*kind="{kind}"}} (\d+)'
    return sum(int(n) for n in re.findall(pattern, stack.router_metrics()))
