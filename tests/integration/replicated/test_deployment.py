# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""How tests and demos wait until routers know what the engines hold."""

import json
import types

from deployment import Deployment
from stack import Stack


class Growing(Deployment):
    """An engine that gets a block at each look, up to a last one. Its router knows each block."""

    LAST = 5

    def __init__(self):
        self.blocks = 0
        self.agents = [None]
        self.routers = [types.SimpleNamespace(is_running=lambda: True)]
        self.engines = types.SimpleNamespace(get=self._get, engine_port=lambda _: 0)

    def _get(self, _port, _path):
        self.blocks = min(self.blocks + 1, self.LAST)
        return 200, json.dumps({"blocks": [{}] * self.blocks})

    def view(self, _router):
        return types.SimpleNamespace(
            router=types.SimpleNamespace(log=lambda: ""),
            worker_states=lambda: [{"blocks": self.blocks}],
            wait_until=lambda condition: Stack.wait_until(self.view(None), condition, 1))


def test_wait_reads_the_blocks_again_at_each_look():
    growing = Growing()
    growing.wait_until_heard()
    assert growing.blocks == Growing.LAST


class Talking(Stack):
    """A rank that keeps publishing. Its messages are received immediately."""

    def __init__(self):
        self.workers = [{}]
        self.sequence = 0

    def worker_states(self):
        return [{"ranks": [{}]}]

    def heard(self, _worker, _rank):
        self.sequence += 1
        return self.sequence

    def announced(self, _worker, _rank):
        return self.sequence

    def wait_until(self, condition, seconds=1):
        assert any(condition() for _ in range(10)), f"not so after {seconds} s"


def test_wait_reads_the_sequence_again_at_each_look():
    Talking().wait_until_heard()
