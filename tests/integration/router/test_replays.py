# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""A router that starts beside engines with a long past and publishers like vLLM's. It learns all
that their buffers hold before it trusts them."""

import pytest
from stack import SLOWDOWN
from vllm_fleet import Joining, Publishers, count_errors, held, router_beside

READY_S = 30
# Instrumented programs test the threads, not the load that they bear.
MANY = 40 if SLOWDOWN == 1 else 10


@pytest.mark.parametrize("live", [0, 100])
def test_router_completes_a_replay_that_vllm_cuts_short(build, logs, live):
    with Publishers(published=4000, blocks=4, block_size=512, live=live) as engines, \
            router_beside(build, engines, logs) as stack:
        joined = Joining(stack).wait(READY_S)
        assert joined.blocks_when_ready["w0"] >= 4000 * 4
        last = engines.end_traffic()[0] - 1
        stack.wait_until(lambda: stack.worker_states()[0]["events"]["seq"] == last)
        assert held(stack, 0) == (True, engines.announced(build, 0))
        assert count_errors(stack, "state_dropped") == count_errors(stack, "late_join") == 0
        assert count_errors(stack, "replay_cut") > 0, "the publisher drops nothing"


def test_router_completes_many_replays_within_its_memory_limit(build, logs):
    flags = ["--events-held-bytes-max", "16MiB"]
    with Publishers(engines=MANY, published=200, blocks=28, live=5) as engines, \
            router_beside(build, engines, logs, flags=flags) as stack:
        joined = Joining(stack).wait(READY_S)
        assert min(joined.blocks_when_ready.values()) >= 200 * 28
        last = [count - 1 for count in engines.end_traffic()]
        stack.wait_until(lambda: [w["events"]["seq"] for w in stack.worker_states()] == last)
        for kind in ("replay_timeout", "state_dropped", "late_join"):
            assert count_errors(stack, kind) == 0
        assert joined.held_bytes <= 16 << 20
        assert held(stack, 7) == (True, engines.announced(build, 7))
