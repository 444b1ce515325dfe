# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""The faults of the chaos run: which are injected, and which failed requests they explain."""

import bisect
import datetime
import http.client
import json
import random
import re
import threading

RESTART_MS_MAX = 600
STALL_MS_MAX = 3000
# After a restart: the engine's start, and the router's probes that notice it.
RESTART_TAIL_S = RESTART_MS_MAX / 1000 + 2.0
# From a fault until the router notices it: two times its patience, and a margin.
NOTICED_S = 6.0
# The router sends requests to suspect workers where it has no others.
UNROUTABLE = ("starting", "down", "draining")
ANSWER_KINDS = ("status500", "garbage", "die-midstream", "stall")
KINDS = ("drop", "duplicate", "reorder", "delay", "restart", "die-midstream", "stall",
         "status500", "garbage", "wrong-block-size", "cut-replay", "slow-probe")
ENGINE_STOPS = "the server stopped before the request was answered"
# The ids of requests that kill their engines begin with this.
POISON = "poison-"
# The router waits one second for the answer to a probe.
SLOW_PROBE_MS_MAX = 3000


def ask_engine(port, method, path, body=None):
    """Returns the answer's JSON, or None while the engine is down."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request(method, path, None if body is None else json.dumps(body))
        answer = connection.getresponse()
        content = answer.read()
        return json.loads(content) if answer.status == 200 and content else None
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()


class Injector(threading.Thread):
    """Starts and ends faults at random until the stop event is set."""

    def __init__(self, ports, stop, seed, kinds=KINDS):
        super().__init__(name="injector", daemon=True)
        self._ports = ports
        self._kinds = kinds
        self._stop_event = stop
        self._rng = random.Random(seed)
        self._victim = self._rng.randrange(len(ports))

    def run(self):
        turn = 0
        while not self._stop_event.wait(self._rng.uniform(0.1, 0.5)):
            engine = self._rng.randrange(len(self._ports))
            # Each round has every kind once, in a random order.
            if turn % len(self._kinds) == 0:
                kinds = self._rng.sample(self._kinds, len(self._kinds))
            kind = kinds[turn % len(self._kinds)]
            turn += 1
            # Only one engine: the router takes the block size that most engines report.
            engine = self._victim if kind == "wrong-block-size" else engine
            if self._rng.random() < 0.1:
                ask_engine(self._ports[engine], "DELETE", "/fault")
            ask_engine(self._ports[engine], "POST", "/fault", self._fault(kind))

    def _fault(self, kind):
        rng = self._rng
        fault = {"kind": kind, "p": round(rng.uniform(0.05, 0.6), 3), "count": rng.randrange(1, 6)}
        if kind == "restart":
            fault |= {"count": 1, "ms": rng.choice((0, 0, rng.randrange(RESTART_MS_MAX)))}
            if rng.random() < 0.5:
                del fault["p"]
        elif kind == "delay":
            fault["ms"] = rng.randrange(1, 300)
        elif kind == "stall":
            fault |= {"ms": rng.choice((0, rng.randrange(1, STALL_MS_MAX))),
                      "after": rng.randrange(4)}
        elif kind == "die-midstream":
            fault["after"] = rng.randrange(6)
        elif kind == "drop":
            fault["lost"] = rng.random() < 0.3
        elif kind == "garbage":
            fault["target"] = rng.choice(("events", "http"))
        elif kind == "wrong-block-size":
            fault |= {"p": 0.2, "count": 1}
        elif kind == "slow-probe":
            fault["ms"] = rng.randrange(SLOW_PROBE_MS_MAX)
        return fault


class Timeline:
    """The workers' states over time, from the router's log."""

    _LINE = re.compile(r"(\S+)Z \w+ worker state worker=(\S+) state=(\w+)")

    def __init__(self, log, workers):
        self._changes = {worker: [] for worker in workers}  # (Unix time, state), in order
        for line in log.splitlines():
            found = self._LINE.match(line)
            if found and found.group(2) in self._changes:
                when = datetime.datetime.fromisoformat(found.group(1) + "+00:00").timestamp()
                self._changes[found.group(2)].append((when, found.group(3)))

    def _last_change(self, worker, when):
        changes = self._changes[worker]
        at = bisect.bisect_right(changes, when, key=lambda change: change[0])
        return changes[at - 1] if at > 0 else (0.0, "starting")

    def nobody_routable(self, begin, end):
        """Returns since when each worker was unusable, at a moment when all were; else None."""
        moments = {begin, end} | {when for changes in self._changes.values()
                                  for when, _ in changes if begin <= when <= end}
        for moment in moments:
            last = {worker: self._last_change(worker, moment) for worker in self._changes}
            if all(state in UNROUTABLE for _, state in last.values()):
                return {worker: when for worker, (when, _) in last.items()}
        return None


class Strikes:
    """All faults that took effect, from the engines' lists. Explains the failures of requests."""

    def __init__(self, listed, timeline):
        """listed: for each worker name its strikes, as GET /fault lists them."""
        self._timeline = timeline
        self.counts = dict.fromkeys(KINDS, 0)
        self._by_request = {}
        self._restarts = {}
        self._failures = {}
        for worker, strikes in listed.items():
            for strike in strikes:
                self.counts[strike["kind"]] += 1
                if strike["request"] and strike["kind"] in ANSWER_KINDS:
                    self._by_request.setdefault(strike["request"], []).append(
                        (worker, strike["kind"]))
            self._restarts[worker] = sorted(
                s["time_s"] for s in strikes if s["kind"] == "restart")
            self._failures[worker] = sorted(
                s["time_s"] for s in strikes
                if s["kind"] == "restart" or (s["request"] and s["kind"] in ANSWER_KINDS))

    @property
    def failing(self):
        """The number of strikes that can make a request fail."""
        return sum(map(len, self._failures.values()))

    @staticmethod
    def _any_within(times, begin, end):
        at = bisect.bisect_left(times, begin)
        return at < len(times) and times[at] <= end

    def explanation(self, outcome):
        """Returns the fault of that engine and time that explains the outcome, or None. No engine
        fault explains an answer that is missing, wrong or the client's fault. Nor does one explain
        a stream that ends without an error event."""
        if outcome.status < 200 or 300 <= outcome.status < 500 or outcome.wrong or outcome.mute:
            return None
        for worker, kind in self._by_request.get(outcome.request, []):
            if outcome.worker in ("", worker) or outcome.status >= 500:
                return kind
        end = outcome.end + 0.2
        # A restarting engine's own error reaches the client where no other engine can take over.
        is_told = ENGINE_STOPS in outcome.trouble
        if outcome.status == 503 and not outcome.worker and not is_told:
            # All engines must have been unusable, each because of its own fault.
            since = self._timeline.nobody_routable(outcome.start - 0.05, end)
            explained = since is not None and all(
                self._any_within(self._failures[worker], when - NOTICED_S, when + 0.1)
                for worker, when in since.items())
            return "all engines failed" if explained else None
        workers = [outcome.worker] if outcome.worker else list(self._restarts)
        begin = outcome.start - RESTART_TAIL_S
        if any(self._any_within(self._restarts[w], begin, end) for w in workers):
            return "restart"
        return None
