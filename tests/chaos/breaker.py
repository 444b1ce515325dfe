# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Breaks a deployment at random: NATS, what it delivers, agents, routers. One thing at a time is
broken, so that every request can be served by another router or frontend."""

import collections
import contextlib
import random
import threading
import time

from nats_tap import Faults
from replayer import Replayer
from stack import SLOWDOWN

# Longer than a view that is not renewed may count (replica.stale_after, 5 s).
SILENCE_S_MAX = 7.0
DOWN_S_MAX = 2.0
# All of a direction comes so late: what a view may be old, and longer.
LAG_S_MAX = 8.0
SKEW_S_MAX = 1.0
REPLAYED_ASKS = 3000
# A router that is cut off has its frontends ask others: its connection ends, or its agents are
# silent for replica.stale_after; then comes the frontends' next poll.
PASSED_OVER_S = 20 * SLOWDOWN
KINDS = ("nats killed", "nats frozen", "cut off", "in silence", "messages lost", "all late",
         "subjects overtaken", "asks replayed", "router cut off", "agent killed", "agent frozen",
         "router killed", "router frozen", "frontend killed", "frontend frozen")


class Breaker(threading.Thread):
    """Breaks and mends until told to stop; everything is whole again after join()."""

    def __init__(self, deployment, taps, stop, seed):
        super().__init__(name="breaker", daemon=True)
        self._deployment = deployment
        self._taps = taps  # name of a node -> its tap
        self._stop_event = stop
        self._rng = random.Random(seed)
        self.counts = collections.Counter(dict.fromkeys(KINDS, 0))
        self.troubles = []  # (port of a router or frontend, Unix times from and to)
        self.passed_over_s = []  # until the frontends asked others than a router that was cut off
        self.replayed = 0
        self.away = set()  # ports of those that run but are not ready yet: no one is sent there
        self.failure = None

    def run(self):
        kinds = []
        try:
            while not self._stop_event.wait(self._rng.uniform(0.1, 0.8)):
                kinds = kinds or self._rng.sample(KINDS, len(KINDS))
                kind = kinds.pop()
                self.counts[kind] += 1
                with self._broken(kind):
                    self._pause(kind)
        except Exception as failure:  # told by whoever joins
            self.failure = failure

    def has_struck_everywhere(self):
        return all(self.counts.values())

    def _pause(self, kind):
        if kind in ("router cut off", "asks replayed"):
            return  # they last until they have had their effect
        is_long = kind in ("in silence", "messages lost", "all late")
        longest = SILENCE_S_MAX if is_long else DOWN_S_MAX
        self._stop_event.wait(self._rng.uniform(0.1, longest))

    @contextlib.contextmanager
    def _broken(self, kind):
        deployment, rng = self._deployment, self._rng
        if kind == "nats killed":
            deployment.nats.kill()
            yield
            deployment.nats.start()
        elif kind == "nats frozen":
            deployment.nats.freeze()
            yield
            deployment.nats.thaw()
        elif kind in ("cut off", "in silence", "messages lost", "all late", "subjects overtaken"):
            with self._tapped(kind):
                yield
        elif kind == "asks replayed":
            with Replayer(deployment.nats, rng.randrange(2**32)) as replayer:
                replayer.wait_until_sent(REPLAYED_ASKS, self._stop_event)
                yield
            self.replayed += replayer.sent
        elif kind == "router cut off":
            tap = self._taps[rng.choice(deployment.routers).name]
            rng.choice((tap.cut, tap.hush))()
            self._wait_until_passed_over()
            yield
            tap.heal()
        else:
            role, _, how = kind.partition(" ")
            node = rng.choice(getattr(deployment, role + "s"))
            begin = time.time()
            if how == "frozen":
                node.freeze()
                yield
                node.thaw()
            else:
                node.kill()
                yield
                if role != "agent":
                    self.away.add(node.port)
                node.start()
                if role != "agent":
                    deployment.wait_until_healthy(node)
                    self.away.discard(node.port)
            if role != "agent":
                self.troubles.append((node.port, begin, time.time()))

    def _wait_until_passed_over(self):
        """Until every frontend knows that a router knows less than others."""
        begin = time.monotonic()
        left = list(self._deployment.frontends)
        while left and not self._stop_event.wait(0.05):
            left = [frontend for frontend in left if self._routers_behind(frontend) == 0]
            if time.monotonic() - begin > PASSED_OVER_S:
                raise AssertionError(f"{[f.name for f in left]} still ask a router first that has "
                                     f"been cut off from NATS for {PASSED_OVER_S:.0f} s")
        if not left:
            self.passed_over_s.append(time.monotonic() - begin)

    def _routers_behind(self, frontend):
        text = self._deployment.view(frontend).get(frontend.admin_port, "/metrics")[1].decode()
        for line in text.splitlines():
            if line.startswith('sightline_routers_known{state="behind"}'):
                return float(line.rpartition(" ")[2])
        return 0

    @contextlib.contextmanager
    def _tapped(self, kind):
        rng = self._rng
        some = rng.sample(sorted(self._taps), rng.randrange(1, 1 + len(self._taps) // 2))
        for tap in map(self._taps.get, some):
            if kind == "cut off":
                tap.cut()
            elif kind == "in silence":
                tap.hush()
            elif kind == "all late":
                late = rng.uniform(0.2, LAG_S_MAX)
                tap.lag(**{rng.choice(("to_client", "to_server")): late})
            elif kind == "subjects overtaken":
                tap.skew(rng.uniform(0.1, SKEW_S_MAX))
            else:
                tap.set_faults(Faults(*(rng.uniform(0, 0.15) for _ in range(4))))
        yield
        for name in some:
            self._taps[name].heal()
