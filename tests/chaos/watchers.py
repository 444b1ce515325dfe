# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""What the chaos run observes while it runs, and afterwards."""

import json
import pathlib
import random
import statistics
import threading
import time

from faults import ask_engine
from stack import post

# Medians of resident memory may differ by this much, because the allocator's arenas fill up.
MEMORY_SLACK_BYTES = 2 << 20
BLOCK = 16  # tokens
# The router leaves a worker alone for at most this long after repeated failures.
BACKOFF_MAX_S = 30


class Memory(threading.Thread):
    """Reads the resident memory of a process, twice a second."""

    def __init__(self, pid):
        super().__init__(name="memory", daemon=True)
        self._pid = pid
        self._ended = threading.Event()
        self.samples = []

    def run(self):
        while not self._ended.wait(0.5):
            pages = int(pathlib.Path(f"/proc/{self._pid}/statm").read_text().split()[1])
            self.samples.append(pages * 4096)

    def end(self):
        self._ended.set()
        self.join()

    def course(self, points=10):
        """Returns the median of each of `points` equal parts of the run, in bytes."""
        cuts = [len(self.samples) * i // points for i in range(points + 1)]
        return [statistics.median(self.samples[a:b]) for a, b in zip(cuts, cuts[1:]) if a < b]

    def growth(self):
        """Returns the medians of the first and the last third of the last half, in bytes."""
        half = self.samples[len(self.samples) // 2:]
        third = max(1, len(half) // 3)
        return statistics.median(half[:third]), statistics.median(half[-third:])


def completion(tokens):
    return {"model": "demo", "max_tokens": 1, "prompt": tokens}


class Quiet:
    """Waits until a stack without faults is at rest, and finds the remaining errors."""

    def __init__(self, stack, judge, seed):
        self.stack = stack
        self.judge = judge
        self.rng = random.Random(seed)
        self.engines = range(len(stack.workers))
        self.problems = []

    def expect(self, what, condition, seconds=20):
        """Notes a problem unless the condition becomes true in time."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                if condition():
                    return
            except (OSError, ValueError):
                pass  # an engine is still starting
            if time.monotonic() > deadline:
                self.problems.append(f"not so within {seconds} s of quiet: {what}")
                return
            time.sleep(0.05)

    def prompt(self, blocks):
        return [self.rng.randrange(1000, 9000) for _ in range(BLOCK * blocks + 3)]

    def run(self):
        for engine in self.engines:
            port = self.stack.engine_port(engine)
            self.expect(f"engine {engine} is up", lambda: ask_engine(port, "DELETE", "/fault"))
        self.check_idle()
        for engine in self.engines:
            self.check_claims(engine)
        self.expect("all workers are ready", lambda: all(
            w["state"] == "ready" for w in self.stack.worker_states()),
            seconds=BACKOFF_MAX_S + 20)
        self.check_bookings()
        for engine in self.engines:
            self.check_index(engine)
        self.check_predictions()
        return self.problems

    def check_idle(self):
        self.expect("the router has no request",
                    lambda: "\nsightline_requests_active 0\n" in self.stack.router_metrics())
        self.expect("no worker has requests in flight",
                    lambda: all(w["in_flight"] == 0 for w in self.stack.worker_states()))
        self.expect("no engine has requests", lambda: all(
            self.stack.engine_metrics(e)[f"vllm:num_requests_{state}"] == 0
            for e in self.engines for state in ("running", "waiting")))

    def say_something(self, engine):
        """Makes an engine publish events, past the router. They reveal the loss of a message."""
        post(self.stack.engine_port(engine), completion(self.prompt(2)), "/v1/completions")

    def check_claims(self, engine):
        """Checks that no claim is wrong. Restarts an engine if its block size is wrong."""
        self.say_something(engine)
        self.expect(f"engine {engine}: no claim above the truth, or none that counts",
                    lambda: not self.judge.claim(engine).counts
                    or not self.judge.differences(engine)[0])
        if self.stack.worker_states()[engine]["block_size"] == BLOCK:
            return
        life = self.judge.truth(engine).life
        ask_engine(self.stack.engine_port(engine), "POST", "/fault", {"kind": "restart"})
        self.expect(f"engine {engine} restarts",
                    lambda: self.judge.truth(engine).life == life + 1)
        self.say_something(engine)

    def check_bookings(self):
        """Reserved tokens and blocks show in the cost of a prompt that no engine holds."""
        prompt = self.prompt(4)
        plan = json.loads(post(self.stack.admin_port, completion(prompt), "/v1/explain").body)
        for worker in plan["workers"]:
            terms = worker["terms"]
            if terms is None:
                self.problems.append(f"{worker['name']} is not eligible: {worker['state']}")
            elif abs(terms["raw_prefill_blocks"] - len(prompt) / BLOCK) > 0.01 or terms[
                    "decode_blocks"] > 5:
                self.problems.append(f"{worker['name']} still has load booked: {terms}")

    def check_index(self, engine):
        """After the engine clears its cache, the router must know every block again."""
        port = self.stack.engine_port(engine)
        ask_engine(port, "POST", "/reset_prefix_cache")
        for _ in range(5):
            self.say_something(engine)
        self.expect(f"engine {engine}: the index equals the truth, block by block",
                    lambda: self.judge.equal(engine))

    def check_predictions(self):
        for _ in range(20):
            prompt = self.prompt(self.rng.randrange(1, 8))
            post(self.stack.port, completion(prompt), "/v1/completions")
            try:
                self.stack.wait_until_heard()
            except RuntimeError:
                self.problems.append("the router never receives all events of the engines")
                return
            answer = post(self.stack.port, completion(prompt), "/v1/completions")
            if answer.status != 200:
                self.problems.append(f"status {answer.status} without any fault: {answer.body}")
                return
            found = answer.usage["prompt_tokens_details"]["cached_tokens"]
            if BLOCK * answer.overlap[0] != found:
                self.problems.append(f"predicted {BLOCK * answer.overlap[0]} cached tokens of "
                                     f"{answer.worker}, found {found}")
