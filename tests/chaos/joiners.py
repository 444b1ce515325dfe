# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Routers that join over NATS repeatedly and receive dumps of the blocks that engines hold."""

import re
import time

from deployment import Deployment
from grown import MIB, PEAK_BYTES_MAX, Grown, resident_bytes, status_bytes
from stack import post

ENGINES, JOINERS = 2, 5
BLOCKS = 200_000
ENGINE_FLAGS = ["--threads", 1, "--blocks", BLOCKS, "--prefill-tokens-per-s", 50_000_000]
PROMPT_TOKENS = 30_000
PROMPTS = 100


def index_bytes(view):
    """Returns the part of a router's memory budget that its index uses. The router keeps it."""
    found = re.search(r'^sightline_memory_bytes{share="index"} (\S+)$', view.router_metrics(), re.M)
    return int(float(found.group(1)))


def fill(deployment):
    """Fills the engines' caches with the blocks of long prompts."""
    for i in range(PROMPTS):
        prompt = [1000 + (i * 7 + j * 31) % 20_000 for j in range(PROMPT_TOKENS)]
        answer = post(deployment.routers[0].port, {"model": "demo", "prompt": prompt,
                                                   "max_tokens": 1}, path="/v1/completions")
        if answer.status != 200:
            raise RuntimeError(f"a long prompt is answered {answer.status}: {answer.body[:200]}")
    deployment.wait_until_heard()


def join_again(deployment, seconds):
    """Restarts the joiners until the time is over. Returns the highest peak and the joins."""
    until = time.monotonic() + seconds
    most, joined = 0, 0
    joiners = deployment.routers[1:]
    while True:
        for joiner in joiners:
            joiner.kill()
        for joiner in joiners:
            joiner.launch()
        for joiner in joiners:
            joiner.wait()
        for joiner in joiners:
            deployment.wait_until_ready(joiner)
            most = max(most, status_bytes(joiner.pid, "VmHWM"))
            joined += 1
        if time.monotonic() > until:
            return most, joined


def judge(build, seconds, logs, router_flags):
    """Returns the problems while five routers joined and received dumps."""
    problems = []
    with Deployment(build, engines=ENGINES, routers=1 + JOINERS, logs=logs,
                    engine_flags=ENGINE_FLAGS, router_flags=router_flags) as deployment:
        rests = {node.name: resident_bytes(node.pid) for node in deployment.nodes}
        first = deployment.routers[0]
        rest = rests[first.name]
        view = deployment.view(first)
        fill(deployment)

        def work():
            most, joined = join_again(deployment, seconds)
            above = most - rest
            if above > PEAK_BYTES_MAX:
                problems.append(f"a joiner took {above / MIB:.0f} MiB")
            agents = max(status_bytes(agent.pid, "VmHWM") - rests[agent.name]
                         for agent in deployment.agents)
            if agents > PEAK_BYTES_MAX:
                problems.append(f"an agent took {agents / MIB:.0f} MiB")
            return (f"{joined} joined, with {above / MIB:.0f} MiB at most above rest; "
                    f"agents {agents / MIB:.0f}")

        problems += Grown(view, rest, lambda: index_bytes(view)).judge("joiners", work)
    return problems
