# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Measures a router's memory while clients or engines fill it: its peak, whether the router gives
it back, and whether it serves small clients meanwhile."""

import pathlib
import re
import threading
import time

from stack import post
from truth import ProcessorWaits

MIB = 1 << 20
LEDGER_BYTES = 1536 * MIB
CACHE_BYTES = 32 * MIB
PEAK_BYTES_MAX = LEDGER_BYTES * 11 // 10 + 64 * MIB
# Does not include the time for which the router's threads waited for a processor.
GIVEN_BACK_WITHIN_S = 10
# What may stay: free blocks that the allocator keeps, and the connections of small clients.
STAYS_BYTES_MAX = CACHE_BYTES + 64 * MIB
SMALL_CLIENTS = 4
LOOK_S = 0.05


def status_bytes(pid, field):
    """Reads a field of /proc/PID/status: VmRSS, or VmHWM, the highest so far."""
    text = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    return int(re.search(rf"^{field}:\s+(\d+)", text, re.M).group(1)) * 1024


def resident_bytes(pid):
    return status_bytes(pid, "VmRSS")


class Peak(threading.Thread):
    """The highest resident memory of a process."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        self._pid = pid
        self._over = threading.Event()
        self.bytes = 0
        self.start()

    def run(self):
        while not self._over.wait(LOOK_S):
            try:
                self.bytes = max(self.bytes, resident_bytes(self._pid))
            except (OSError, AttributeError):
                return  # the process has ended

    def end(self):
        self._over.set()
        self.join()
        return self.bytes


class Small(threading.Thread):
    """A client with small requests. The router must serve each of them."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self._port = port
        self._over = threading.Event()
        self.seconds = []
        self.unserved = []
        self.start()

    def run(self):
        turn = 0
        while not self._over.wait(LOOK_S):
            turn += 1
            body = {"model": "demo", "prompt": f"a small question, number {turn}", "max_tokens": 1}
            begin = time.monotonic()
            try:
                status = post(self._port, body, path="/v1/completions").status
            except OSError as error:
                status = repr(error)
            self.seconds.append(time.monotonic() - begin)
            if status != 200:
                self.unserved.append(status)

    def end(self):
        self._over.set()
        self.join()


def p99(seconds):
    ordered = sorted(seconds)
    return ordered[int(len(ordered) * 0.99)] if ordered else 0.0


class Grown:
    """A router that others fill with as much as it holds. `rest`: its bytes at rest. `caches()`:
    bytes that it may keep."""

    def __init__(self, stack, rest, caches=lambda: 0):
        self._stack = stack
        self._rest = rest
        self._caches = caches

    def judge(self, kind, work):
        """Runs `work`, which returns text to print. Returns the problems during the work."""
        pid = self._stack.router.process.pid
        peak, small = Peak(pid), [Small(self._stack.port) for _ in range(SMALL_CLIENTS)]
        done = work()
        for client in small:
            client.end()
        if self._stack.router.process.poll() is not None:
            return [f"the router ended:\n{self._stack.router.log()}"]
        most = peak.end() - self._rest
        stays, after_s = self._wait_until_given_back(pid)
        served = [s for client in small for s in client.seconds]
        unserved = [s for client in small for s in client.unserved]
        print(f"  {kind:17} rest {self._rest / MIB:3.0f} MiB, peak {most / MIB:6.0f} above it, "
              f"{stays / MIB:4.0f} after {after_s:.1f} s; {len(served)} small requests, "
              f"p99 {p99(served):.2f} s; {done}", flush=True)
        problems = []
        if most > PEAK_BYTES_MAX:
            problems.append(f"took {most / MIB:.0f} MiB of {PEAK_BYTES_MAX / MIB:.0f}")
        if stays > STAYS_BYTES_MAX:
            problems.append(f"kept {stays / MIB:.0f} MiB for {GIVEN_BACK_WITHIN_S} s")
        if unserved or not served:
            problems.append(f"{len(unserved)} of {len(served)} small requests were not served: "
                            f"{sorted(set(map(str, unserved)))[:3]}")
        return problems

    def _wait_until_given_back(self, pid):
        waits = ProcessorWaits(lambda: [self._stack.router.process])
        begin, before = time.monotonic(), waits.now()
        while True:
            stays = resident_bytes(pid) - self._rest - self._caches()
            after_s = time.monotonic() - begin - waits.since(before)
            if stays <= STAYS_BYTES_MAX or after_s > GIVEN_BACK_WITHIN_S:
                return stays, after_s
            time.sleep(0.1)
