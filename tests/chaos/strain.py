# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Faults of the chaos run that hit the router itself, and requests that kill their engines."""

import http.client
import json
import os
import pathlib
import random
import resource
import signal
import threading
import time

from clients import ENDS_WITHIN_S
from faults import POISON, ask_engine

PAUSE_S_MAX = 2.0
# Descriptors that the router may still open while they are scarce.
SPARE_DESCRIPTORS = 2
# A request that the router refused for lack of descriptors may fail a little later.
DESCRIPTORS_TAIL_S = 1.0
# An OpenAI SDK sends a request three times, unless an answer says x-should-retry: false.
SENDS_MAX = 3
# docs/api.md: the router sends a request again after one loss, but not after two.
DEATHS_OF_SEND_MAX = 2
# docs/api.md: a death that fails other requests too does not count before these are answered. Four
# deaths that have only this request in common count against it in any case.
DEATHS_MAX = 4


class Log:
    """Reads the router's standard error and writes it to a file, except during pauses."""

    def __init__(self, path):
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = open(path, "wb")
        self._reads = threading.Event()
        self._reads.set()
        self._end, self.writer = os.pipe()
        self._thread = threading.Thread(target=self._copy, name="log-reader", daemon=True)
        self._thread.start()

    def _copy(self):
        while True:
            self._reads.wait()
            piece = os.read(self._end, 65536)
            if not piece:
                return
            self._file.write(piece)
            self._file.flush()

    def pause(self):
        self._reads.clear()

    def resume(self):
        self._reads.set()

    def close(self):
        """Call this after the router has ended: then the file has the rest of its output."""
        os.close(self.writer)
        self.resume()
        self._thread.join()
        self._file.close()
        os.close(self._end)


class Strain(threading.Thread):
    """Repeats four acts until the stop event is set. The log is not read for a while. Descriptors
    run out for a while. SIGHUP is sent. A request kills every engine that reads it."""

    def __init__(self, stack, log, stop, seed):
        super().__init__(name="strain", daemon=True)
        self.counts = dict.fromkeys(("unread log", "no descriptors", "SIGHUP", "poison"), 0)
        self.scarce = []  # (from, to) in Unix times, while descriptors had run out
        self.sends = {}  # poison request -> (from, to) in Unix times, one for each send
        self._stack = stack
        self._log = log
        self._stop_event = stop
        self._rng = random.Random(seed)

    def run(self):
        acts = (self._leave_log_unread, self._take_descriptors, self._hang_up, self._poison)
        while not self._stop_event.wait(self._rng.uniform(0.2, 1.5)):
            for act in self._rng.sample(acts, len(acts)):
                act()

    @property
    def _pid(self):
        return self._stack.router.process.pid

    def _leave_log_unread(self):
        self._log.pause()
        self._stop_event.wait(self._rng.uniform(0.2, PAUSE_S_MAX))
        self._log.resume()
        self.counts["unread log"] += 1

    def _take_descriptors(self):
        whole = resource.prlimit(self._pid, resource.RLIMIT_NOFILE)
        used = max(int(fd) for fd in os.listdir(f"/proc/{self._pid}/fd"))
        begin = time.time()
        resource.prlimit(self._pid, resource.RLIMIT_NOFILE,
                         (used + 1 + SPARE_DESCRIPTORS, whole[1]))
        self._stop_event.wait(self._rng.uniform(0.1, 1.0))
        resource.prlimit(self._pid, resource.RLIMIT_NOFILE, whole)
        self.scarce.append((begin, time.time() + DESCRIPTORS_TAIL_S))
        self.counts["no descriptors"] += 1

    def _hang_up(self):
        os.kill(self._pid, signal.SIGHUP)
        self.counts["SIGHUP"] += 1

    def _poison(self):
        request = f"{POISON}{self.counts['poison']}"
        for i in range(len(self._stack.workers)):
            ask_engine(self._stack.engine_port(i), "POST", "/fault",
                       {"kind": "restart", "p": 1, "request": request})
        sends = self.sends[request] = []
        is_wanted = True
        while is_wanted and len(sends) < SENDS_MAX:
            begin = time.time()
            is_wanted = self._wants_retry(request)
            sends.append((begin, time.time()))
        self.counts["poison"] += 1

    def _wants_retry(self, request):
        body = {"model": "demo", "max_tokens": 4, "prompt": f"the poison of {request}"}
        connection = http.client.HTTPConnection("127.0.0.1", self._stack.port,
                                                timeout=ENDS_WITHIN_S)
        try:
            headers = {"content-type": "application/json", "x-request-id": request}
            connection.request("POST", "/v1/completions", json.dumps(body), headers)
            answer = connection.getresponse()
            answer.read()
            return answer.status >= 500 and answer.headers.get("x-should-retry") != "false"
        except (OSError, http.client.HTTPException):
            return True
        finally:
            connection.close()

    def explains(self, outcome):
        """True if descriptors had run out while the request ran, and its outcome shows no more
        than that."""
        overlaps = any(begin <= outcome.end and outcome.start <= end
                       for begin, end in self.scarce)
        return overlaps and outcome.status in (0, 503) and not outcome.wrong


def poison_problems(strain, listed):
    """listed: for each worker name its strikes, as GET /fault lists them."""
    deaths = {request: [] for request in strain.sends}
    for strikes in listed.values():
        for strike in strikes:
            if strike["kind"] == "restart" and strike["request"].startswith(POISON):
                deaths[strike["request"]].append(strike["time_s"])
    problems = []
    for request, times in deaths.items():
        if len(times) > DEATHS_MAX:
            problems.append(f"{request} killed {len(times)} engines, allowed are {DEATHS_MAX}")
        for begin, end in strain.sends[request]:
            count = sum(begin <= when <= end for when in times)
            if count > DEATHS_OF_SEND_MAX:
                problems.append(f"{request}, sent once, killed {count} engines, allowed are "
                                f"{DEATHS_OF_SEND_MAX}")
    if strain.counts["poison"] and not any(deaths.values()):
        problems.append("no poison killed an engine")
    return problems


def config_file(directory):
    """Writes a configuration file. The router reloads it on SIGHUP."""
    path = pathlib.Path(directory) / "router.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("fleet:\n  probe_interval: 250ms\n")
    return path
