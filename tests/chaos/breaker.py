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

# Longer than a view that is not renewed may count (replica.stale_after, 5 s).
SILENCE_S_MAX = 7.0
DOWN_S_MAX = 2.0
KINDS = ("nats killed", "nats frozen", "cut off", "in silence", "messages lost", "agent killed",
         "agent frozen", "router killed", "router frozen", "frontend killed", "frontend frozen")


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

    def _pause(self, kind):
        longest = SILENCE_S_MAX if kind in ("in silence", "messages lost") else DOWN_S_MAX
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
        elif kind in ("cut off", "in silence", "messages lost"):
            with self._tapped(kind):
                yield
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

    @contextlib.contextmanager
    def _tapped(self, kind):
        rng = self._rng
        some = rng.sample(sorted(self._taps), rng.randrange(1, 1 + len(self._taps) // 2))
        for tap in map(self._taps.get, some):
            if kind == "cut off":
                tap.cut()
            elif kind == "in silence":
                tap.hush()
            else:
                tap.set_faults(Faults(*(rng.uniform(0, 0.15) for _ in range(4))))
        yield
        for name in some:
            self._taps[name].heal()
