# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Compares the router's index with the caches of simulated engines, block by block."""

import collections
import contextlib
import dataclasses
import http.client
import json
import pathlib
import subprocess
import threading
import time

from stack import SLOWDOWN

# The time from the event of a removal to the removal from the index: engine's send, network,
# router's thread. The router's own audit allows the same time.
ANNOUNCEMENT_S = 0.25 * SLOWDOWN


class ProcessorWaits:
    """Measures how long threads of processes waited for a processor. The scheduler counts it in
    /proc/PID/task/*/schedstat: time on the processor and time on the run queue, in ns.
    `processes()` lists the running ones (Popen). All waits of a later process or thread count."""

    def __init__(self, processes=list):
        self._processes = processes

    def now(self):
        """Returns {(process, thread): ns of waiting so far}."""
        waits = {}
        for process in self._processes():
            # The process or a thread may end meanwhile.
            with contextlib.suppress(OSError):
                for task in pathlib.Path(f"/proc/{process.pid}/task").iterdir():
                    with contextlib.suppress(OSError):
                        waited = int((task / "schedstat").read_text().split()[1])
                        waits[process.pid, task.name] = waited
        return waits

    def since(self, before):
        """Returns seconds: the longest wait of a thread since `before`, summed over processes."""
        longest = collections.Counter()
        for (pid, thread), waited in self.now().items():
            more = waited - before.get((pid, thread), 0)
            longest[pid] = max(longest[pid], more)
        return sum(longest.values()) / 1e9


class Names:
    """Computes the digests of blocks from their content, with the router's own library."""

    def __init__(self, build, model):
        self._model = model
        self._known = {}  # engine hash -> digest
        self._process = subprocess.Popen([str(build / "bin/block_digests")], text=True,
                                         stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._lock = threading.Lock()

    def of(self, blocks):
        """Returns the digests of blocks in the format of /sim/blocks."""
        with self._lock:
            new = [b for b in blocks if b["hash"] not in self._known]
            if new:
                line = json.dumps({"model": self._model, "blocks": new})
                self._process.stdin.write(line + "\n")
                self._process.stdin.flush()
                digests = json.loads(self._process.stdout.readline())
                for block, digest in zip(new, digests):
                    # A block has no digest yet if its ancestors were evicted before any look.
                    if digest is not None:
                        self._known[block["hash"]] = digest
            return {self._known.get(b["hash"]) for b in blocks} - {None}

    def close(self):
        self._process.stdin.close()
        self._process.wait(timeout=10 * SLOWDOWN)


@dataclasses.dataclass
class Truth:
    """One look at an engine. `sequence` and `delivered` are None before the first message."""
    life: int
    sequence: int
    delivered: int
    pending_events: int
    blocks: set
    unnamed: int = 0  # blocks that are not in `blocks`, because no look saw an ancestor


@dataclasses.dataclass
class Claim:
    """One look at the router's view of a worker."""
    state: str
    counts: bool  # the router uses the index entries
    blocks: set
    # Sequence of the last message that the router applied before it listed the blocks, or None. It
    # is None if an agent reads the engine, because the agent's heartbeats overtake its frames.
    applied: int | None = None


class Judge:
    """Looks at the engines and the router of a stack."""

    def __init__(self, stack, processes=None):
        """processes() returns the processes from the engines to the index (None: the stack's)."""
        self.stack = stack
        self.processes = processes or self._of_stack
        self.names = Names(stack.build, stack.name)

    def close(self):
        self.names.close()

    def _of_stack(self):
        programs = [self.stack.router, self.stack.simulator]
        return [program.process for program in programs if program is not None]

    def truth(self, engine):
        status, body = self.stack.get(self.stack.engine_port(engine), "/sim/blocks")
        assert status == 200, body
        told = json.loads(body)
        blocks = self.names.of(told["blocks"])
        return Truth(told["life"], told["sequence"], told["delivered"], told["pending_events"],
                     blocks, len(told["blocks"]) - len(blocks))

    def _applied(self, name):
        worker = next(w for w in self.stack.worker_states() if w["name"] == name)
        ranks = [rank["events"] for rank in worker["ranks"] if rank["events"]]
        return ranks[0]["seq"] if len(ranks) == 1 and "agent" not in ranks[0] else None

    def claim(self, engine):
        name = self.stack.workers[engine]["name"]
        applied = self._applied(name)
        status, body = self.stack.get(self.stack.admin_port, f"/v1/index?worker={name}")
        assert status == 200, body
        told = json.loads(body)
        blocks = {digest for rank in told["ranks"] for digest in rank["blocks"]}
        return Claim(told["state"], told["counts"], blocks, applied)

    def differences(self, engine):
        """Returns (blocks in the index only, blocks of the engine only). Call it while the engine
        is quiet."""
        truth, claim = self.truth(engine), self.claim(engine)
        return claim.blocks - truth.blocks, truth.blocks - claim.blocks

    def equal(self, engine):
        claim = self.claim(engine)
        return claim.counts and self.differences(engine) == (set(), set())


@dataclasses.dataclass
class Out:
    """The time of a removal's message, and how long threads had waited for a processor then."""
    at: float
    waits: dict


class Watch:
    """Repeatedly checks whether the router claims blocks that an engine has removed.

    A claim of such a block is legal in these cases:
      - the worker's entries do not count
      - the engine has not yet sent the message with the removal, or a later one, live
      - it sent that message less than bound_s ago. The time for which threads of the judge's
        processes waited for a processor does not count: other load is not the router's fault
    If the entries count, it is always illegal once the router has applied all messages of the
    engine. A restarted engine has sent none, so there the time runs from the restart. Use it as a
    context manager. Its end raises an error after illegal claims.
    """

    def __init__(self, judge, engines, pause_s=0.01, bound_s=ANNOUNCEMENT_S):
        self.judge = judge
        self._waits = ProcessorWaits(judge.processes)
        self.pause_s = pause_s
        self.bound_s = bound_s
        self.engines = list(engines)
        self.samples = 0
        self._rounds = 0
        self.claimed_above = 0  # samples with legal claims above the truth
        self.illegal = []
        self._since = {e: {} for e in self.engines}  # block -> [removal's sequence, Out or None]
        self._life = {}
        self._before = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._failure = None

    def __enter__(self):
        self._thread.start()
        return self

    def wait_for_looks(self, count=1):
        """Waits until this many whole looks at all engines have begun and ended."""
        # A look may have begun before the call, so one more is needed.
        wanted = self._rounds + count + 1
        deadline = time.monotonic() + 30 * SLOWDOWN
        while self._rounds < wanted and self._thread.is_alive():
            assert time.monotonic() < deadline, "the watch does not come to look"
            time.sleep(0.005)

    def __exit__(self, kind, *_):
        self._stop.set()
        self._thread.join(timeout=30 * SLOWDOWN)
        if kind is None:
            if self._failure is not None:
                raise self._failure
            assert self.samples > 0
            assert not self.illegal, self.illegal[:5]

    def _run(self):
        try:
            while not self._stop.is_set():
                for engine in self.engines:
                    self.look(engine)
                self._rounds += 1
                # Looks again soon after a suspicious claim. Otherwise the engine may store and
                # remove the block again, and the next claim would be another case.
                on_trial = any(self._since.values())
                self._stop.wait(min(self.pause_s, 0.01) if on_trial else self.pause_s)
        except BaseException as failure:  # raised by __exit__
            self._failure = failure

    def _truth(self, engine):
        """Returns None while the engine is down, because it cannot list its blocks then."""
        try:
            return self.judge.truth(engine)
        except (OSError, http.client.HTTPException):
            return None

    def look(self, engine):
        before = self._truth(engine)
        asked = time.monotonic()
        claim = self.judge.claim(engine)
        after = self._truth(engine)
        if before is None or after is None:
            return
        self.samples += 1
        pending = self._since[engine]
        if before.life != after.life:
            return
        if self._life.get(engine) != after.life:
            self._life[engine] = after.life
            pending.clear()
        above = claim.blocks - before.blocks - after.blocks if claim.counts else set()
        self.claimed_above += bool(above)
        for block in list(pending):
            if block not in above:
                del pending[block]
        carried_by = -1 if after.sequence is None else after.sequence
        carried_by += 1 if after.pending_events else 0
        delivered = -1 if after.delivered is None else after.delivered
        # A higher number comes from before the engine's restart, so the numbers must be equal.
        knows_all = claim.applied is not None and claim.applied == carried_by
        out = None
        for block in above:
            entry = pending.setdefault(block, [carried_by, None])
            if entry[1] is None and delivered >= entry[0]:
                entry[1] = out = out or Out(time.monotonic(), self._waits.now())
            late_s = 0.0 if entry[1] is None else asked - entry[1].at
            if late_s > self.bound_s:
                late_s -= self._waits.since(entry[1].waits)
            if knows_all or late_s > self.bound_s:
                self.illegal.append({"engine": engine, "block": block, "state": claim.state,
                                     "carried_by": entry[0], "late_s": late_s,
                                     "applied": claim.applied, "sequence": after.sequence,
                                     "delivered": delivered, "unnamed": after.unnamed})
