# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Injects faults into a deployment at random: NATS, its messages, agents, routers and frontends.
Only one fault is active at a time, so another router or frontend can serve every request."""

import collections
import contextlib
import random
import threading
import time

from nats_tap import Faults
from replayer import Replayer
from stack import SLOWDOWN

# Longer than replica.stale_after (5 s), after which a worker without news counts without overlap.
SILENCE_S_MAX = 7.0
DOWN_S_MAX = 2.0
# The delay of all messages in one direction. It too can exceed replica.stale_after.
LAG_S_MAX = 8.0
SKEW_S_MAX = 1.0
REPLAYED_ASKS = 3000
# When a router is cut off, its connection ends, or its agents are silent for replica.stale_after.
# At their next poll, the frontends choose other routers.
PASSED_OVER_S = 20 * SLOWDOWN
KINDS = ("nats killed", "nats frozen", "cut off", "in silence", "messages lost", "all late",
         "subjects overtaken", "asks replayed", "router cut off", "agent killed", "agent frozen",
         "router killed", "router frozen", "frontend killed", "frontend frozen")


class Breaker(threading.Thread):
    """Injects and ends faults until the stop event is set. After join() no fault is left."""

    def __init__(self, deployment, taps, stop, seed):
        super().__init__(name="breaker", daemon=True)
        self._deployment = deployment
        self._taps = taps  # name of a node -> its tap
        self._stop_event = stop
        self._rng = random.Random(seed)
        self.counts = collections.Counter(dict.fromkeys(KINDS, 0))
        self.troubles = []  # (port of a router or frontend, Unix times from and to)
        self.passed_over_s = []  # seconds until the frontends saw that a cut-off router was behind
        self.replayed = 0
        self.away = set()  # ports of processes that run but are not ready yet: clients avoid them
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
        except Exception as failure:  # raised after join()
            self.failure = failure

    def has_struck_everywhere(self):
        return all(self.counts.values())

    def _pause(self, kind):
        if kind in ("router cut off", "asks replayed"):
            return  # they last until they have taken effect
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
        """Waits until every frontend sees that a router is behind the others."""
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
