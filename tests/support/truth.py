# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Compares what the router's index holds with what simulated engines hold, block by block."""

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

# From the removal's announcement to its disappearance from the index: engine's send, network,
# router's thread. The router's own audit allows as much.
ANNOUNCEMENT_S = 0.25 * SLOWDOWN


class ProcessorWaits:
    """How long threads of processes waited for a processor, by the scheduler (/proc/PID/schedstat:
    time on the processor, time on the run queue, both in ns). `processes()` lists those that run
    (Popen); a process or thread that begins later has waited since then."""

    def __init__(self, processes=list):
        self._processes = processes

    def now(self):
        """{(process, thread): ns so far}"""
        waits = {}
        for process in self._processes():
            # It may end meanwhile, as each of its threads may.
            with contextlib.suppress(OSError):
                for task in pathlib.Path(f"/proc/{process.pid}/task").iterdir():
                    with contextlib.suppress(OSError):
                        waited = int((task / "schedstat").read_text().split()[1])
                        waits[process.pid, task.name] = waited
        return waits

    def since(self, before):
        """Seconds: of each process, what the thread that waited longest has waited since."""
        longest = collections.Counter()
        for (pid, thread), waited in self.now().items():
            more = waited - before.get((pid, thread), 0)
            longest[pid] = max(longest[pid], more)
        return sum(longest.values()) / 1e9


class Names:
    """Names of blocks as the router writes them, from their content by the router's own library."""

    def __init__(self, build, model):
        self._model = model
        self._known = {}  # engine hash -> digest
        self._process = subprocess.Popen([str(build / "bin/block_digests")], text=True,
                                         stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._lock = threading.Lock()

    def of(self, blocks):
        """The digests of blocks as /sim/blocks lists them."""
        with self._lock:
            new = [b for b in blocks if b["hash"] not in self._known]
            if new:
                line = json.dumps({"model": self._model, "blocks": new})
                self._process.stdin.write(line + "\n")
                self._process.stdin.flush()
                digests = json.loads(self._process.stdout.readline())
                for block, digest in zip(new, digests):
                    # A block whose ancestors were evicted before anybody looked has no name yet.
                    if digest is not None:
                        self._known[block["hash"]] = digest
            return {self._known.get(b["hash"]) for b in blocks} - {None}

    def close(self):
        self._process.stdin.close()
        self._process.wait(timeout=10 * SLOWDOWN)


@dataclasses.dataclass
class Truth:
    """One look at an engine; None for numbers of messages: none yet."""
    life: int
    sequence: int
    delivered: int
    pending_events: int
    blocks: set
    unnamed: int = 0  # held blocks that are not in `blocks`: an ancestor was never seen


@dataclasses.dataclass
class Claim:
    """One look at the router's view of a worker."""
    state: str
    counts: bool  # the index entries are believed
    blocks: set
    # Number of the engine's last message that was applied before the blocks were listed; None: not
    # known. Of an engine that an agent reads it is not known: its beats overtake its frames.
    applied: int | None = None


class Judge:
    """Looks at engines and router of a stack."""

    def __init__(self, stack, processes=None):
        """processes(): those on the way from the engines to the index; the stack's if None."""
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
        """(claimed but not held, held but not claimed); call it when nothing moves."""
        truth, claim = self.truth(engine), self.claim(engine)
        return claim.blocks - truth.blocks, truth.blocks - claim.blocks

    def equal(self, engine):
        claim = self.claim(engine)
        return claim.counts and self.differences(engine) == (set(), set())


@dataclasses.dataclass
class Out:
    """When a removal was announced, and how long threads had waited for a processor."""
    at: float
    waits: dict


class Watch:
    """Looks again and again whether the router claims blocks that an engine no longer holds.

    A claim above the truth is legal while the worker's entries do not count, and until the
    announcement of the removal is out: until a message at or above the one that carries it has
    been sent live, and bound_s longer, without the time for which threads of the judge's processes
    waited for a processor: beside other work the router is not to blame for it. It is illegal at
    once where the router has applied all that the engine has announced. A restarted engine has
    announced nothing; there the time runs from the restart. Use as a context manager; leaving it
    raises on illegal claims.
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
        self._since = {e: {} for e in self.engines}  # block -> [carried by, Out or None]
        self._life = {}
        self._before = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._failure = None

    def __enter__(self):
        self._thread.start()
        return self

    def wait_for_looks(self, count=1):
        """Until so many whole looks at all engines have begun and ended."""
        # One may be under way at the call.
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
                # A block on trial is looked at again at once: meanwhile it may be held again, and
                # be removed again, which is another trial.
                on_trial = any(self._since.values())
                self._stop.wait(min(self.pause_s, 0.01) if on_trial else self.pause_s)
        except BaseException as failure:  # raised by __exit__
            self._failure = failure

    def _truth(self, engine):
        """Nothing while the engine is down: what it holds then cannot be asked."""
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
        # Equal, not above: what is above is the number of an earlier life.
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
