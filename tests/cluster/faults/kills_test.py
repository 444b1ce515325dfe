# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Kills the operator at random requests, before the API server receives them or after it has
executed them. This is repeated while an object changes. The whole final state of each spec must
equal the final state without kills."""

import dataclasses
import itertools
import random
import threading

from steps import STEPS, Life, undisturbed

KILLS, KILLS_FULL = 20, 200
# Counted from the operator's start. An operator that needs fewer requests is killed at rest.
REQUESTS_MAX = 60


@dataclasses.dataclass(frozen=True)
class Kill:
    request: int
    is_done: bool


def plan_of(seed, kills):
    """Returns [(step, its kills)], the same for the same seed."""
    dice = random.Random(f"kills {seed}")
    steps, left = [], kills
    for step in itertools.cycle(STEPS):
        if left == 0:
            return steps
        count = min(left, dice.randint(1, 5))
        left -= count
        steps.append((step, [Kill(dice.randint(1, REQUESTS_MAX), dice.random() < 0.5)
                             for _ in range(count)]))


class Killer:
    """Counts the requests of the running operator, and kills it at the chosen one."""

    def __init__(self, proxy, operator):
        self._proxy, self._operator = proxy, operator
        self._lock = threading.Lock()
        self._kill, self._seen = None, 0
        self.struck = threading.Event()
        proxy.on_request = self._on_request

    def arm(self, kill):
        with self._lock:
            self._kill, self._seen = kill, 0
        self.struck.clear()

    def _on_request(self, method, path, is_done):
        with self._lock:
            if self._kill is None or "watch=true" in path or is_done != self._kill.is_done:
                return False
            self._seen += 1
            if self._seen != self._kill.request:
                return False
            self._kill = None
        self._operator.kill()
        self.struck.set()
        return True

    def restart(self):
        with self._lock:
            self._kill = None
        self._operator.kill()
        self._operator.wait()
        self._proxy.cut_all()
        self._operator.start()


def test_the_same_seed_gives_the_same_plan():
    assert plan_of("7", 30) == plan_of("7", 30) != plan_of("8", 30)
    assert sum(len(kills) for _, kills in plan_of("7", 30)) == 30


def test_kills_at_any_request_change_no_final_state(make_home, proxy, operator, seed, is_full):
    wanted = undisturbed(make_home("undisturbed")).ends
    life, killer = Life(make_home("killed")), Killer(proxy, operator)
    table = {"before": 0, "after": 0, "at rest": 0}
    for (name, spec), kills in plan_of(seed, KILLS_FULL if is_full else KILLS):
        for number, kill in enumerate(kills):
            killer.arm(kill)
            if number == 0:
                life.apply(spec)
            life.await_state(wanted[name], f"it has become {name}", killer.struck.is_set)
            struck = "after" if kill.is_done else "before"
            table[struck if killer.struck.is_set() else "at rest"] += 1
            killer.restart()
        life.await_state(wanted[name], f"it has become {name} after {kills}")
    print(f"kills of the operator by the request: {table}")
    assert table["before"] and table["after"]
