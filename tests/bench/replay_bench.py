#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Measures how a starting router learns the blocks of running engines.

Method: publishers with vLLM's sockets (tests/support/vllm_publisher.py) have old messages in their
buffers, and send live ones from the first replay on. One `sightline serve` starts beside them. The
bench measures the seconds until every worker is `ready`, and the router's CPU seconds, peak memory
and peak descriptors. It checks that no worker is ready before its blocks are in the index. With
--compare it compares the index with the published blocks, block by block, which takes the longest.
The exit status is 1 if a worker was ready too early, or blocks are missing or differ.
"""

import argparse
import pathlib
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "hack"), str(ROOT / "tests/support")]

from vllm_fleet import Joining, Publishers, held, router_beside  # noqa: E402

# (engines, messages in each buffer, blocks of 256 tokens in a message, live messages a second)
CASES = {
    "deep": (1, 10_000, 28, 50),       # 22 KB a message
    "deeper": (1, 10_000, 56, 50),     # 44 KB
    "wide": (100, 300, 28, 2),
    "fleet": (1000, 20, 4, 0.5),
}
READY_S = 60


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / 100


def measure(build, name, compare):
    engines, published, blocks, live = CASES[name]
    with Publishers(engines, published=published, blocks=blocks, live=live) as publishers, \
            router_beside(build, publishers, build / "bench-logs") as stack:
        joined = Joining(stack).wait(READY_S)
        spent = cpu_seconds(stack.router.process.pid)
        last = [count - 1 for count in publishers.end_traffic()]
        stack.wait_until(lambda: [w["events"]["seq"] for w in stack.worker_states()] == last)
        early = sum(b < published * blocks for b in joined.blocks_when_ready.values())
        whole = all(w["blocks"] == count * blocks
                    for w, count in zip(stack.worker_states(), publishers.counts))
        if compare:
            whole = whole and held(stack, 0) == (True, publishers.announced(build, 0))
        print(f"{name}: {engines} engines x {published} messages of {blocks} blocks, "
              f"{live}/s live: ready in {joined.seconds:.1f} s, {early} too early, "
              f"{'whole' if whole else 'NOT WHOLE'}{', equal' if whole and compare else ''}; "
              f"{spent:.1f} CPU s, {joined.rss_mib:.0f} MiB, {joined.descriptors} descriptors, "
              f"{joined.held_bytes / (1 << 20):.1f} MiB waiting at most", flush=True)
        return early == 0 and whole


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", nargs="?", default="build/release", type=pathlib.Path)
    parser.add_argument("--cases", type=lambda text: text.split(","), default=list(CASES))
    parser.add_argument("--compare", action="store_true")
    arguments = parser.parse_args()
    print(__doc__.split("\n\n", 1)[1])
    begin = time.monotonic()
    sound = [measure(arguments.build.resolve(), name, arguments.compare)
             for name in arguments.cases]
    print(f"took {time.monotonic() - begin:.0f} s")
    return 0 if all(sound) else 1


if __name__ == "__main__":
    sys.exit(main())
