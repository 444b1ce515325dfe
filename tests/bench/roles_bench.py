#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Measures the cost of running the frontend role and the router role in separate processes.

Method: one instant engine (`sightline simulate`) is behind a single process, and also behind a
frontend and a router. One client on a kept connection streams short answers to prompts of 2 KB. It
uses both ways in turns of 50 requests. The time to first token is the client's time to the first
event, and the figure is the median of all turns. CPU is the mean user and system time of the
processes per request, from /proc/PID/stat. The first turn of each way does not count.
"""

import argparse
import http.client
import json
import os
import pathlib
import statistics
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "hack"))

from stack import Program, Stack  # noqa: E402

TICK_S = 1 / os.sysconf("SC_CLK_TCK")
TURN = 50


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) * TICK_S


def stream(connection, number):
    """Sends a request. Returns the seconds to the first event of its answer."""
    text = f"question {number % 40} " + "of the same words as before " * 70
    body = json.dumps({"model": "demo", "stream": True, "max_tokens": 2,
                       "messages": [{"role": "user", "content": text}]})
    begin = time.perf_counter()
    connection.request("POST", "/v1/chat/completions", body, {"content-type": "application/json"})
    answer = connection.getresponse()
    answer.readline()
    first = time.perf_counter() - begin
    answer.read()
    if answer.status != 200:
        raise SystemExit(f"status {answer.status}")
    return first


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--turns", type=int, default=20)
    options = parser.parse_args()
    print(__doc__)
    with tempfile.TemporaryDirectory() as home:
        logs = pathlib.Path(home)
        with Stack(options.build, engines=1, logs=logs) as single:
            worker = ",".join(f"{k}={v}" for k, v in single.workers[0].items())
            common = [options.build / "bin/sightline", "serve", "--model-path", single.model_path,
                      "--served-model-name", "demo", "--admin-port", 0]
            router = Program([*common, "--roles", "router", "--worker", worker],
                             logs / "router.log")
            at = router.wait_for(r"^ready: (http://\S+)").group(1)
            frontend = Program([*common, "--roles", "frontend", "--routers", at, "--port", 0],
                               logs / "frontend.log")
            port = int(frontend.wait_for(r"^ready: http://[^:]+:(\d+)/v1").group(1))
            time.sleep(2)
            ways = {"single": (single.port, [single.router]), "apart": (port, [frontend, router])}
            try:
                measure(ways, options.turns)
            finally:
                frontend.stop()
                router.stop()


def measure(ways, turns):
    firsts = {way: [] for way in ways}
    cpu = {way: [] for way in ways}
    for turn in range(turns + 1):
        for way, (port, programs) in ways.items():
            connection = http.client.HTTPConnection("127.0.0.1", port)
            before = [cpu_seconds(p.process.pid) for p in programs]
            times = [stream(connection, turn * TURN + i) for i in range(TURN)]
            connection.close()
            time.sleep(0.1)
            if turn == 0:
                continue
            firsts[way] += times
            cpu[way].append([cpu_seconds(p.process.pid) - b for p, b in zip(programs, before)])
    for way in ways:
        used = [sum(turn[i] for turn in cpu[way]) / turns / TURN * 1e3
                for i in range(len(ways[way][1]))]
        shown = " + ".join(f"{ms:.2f}" for ms in used)
        print(f"{way:8} first token p50 {statistics.median(firsts[way]) * 1e3:.3f} ms, "
              f"CPU a request {shown} ms")
    added = statistics.median(firsts["apart"]) - statistics.median(firsts["single"])
    print(f"added to the first token, p50: {added * 1e3:.3f} ms")


if __name__ == "__main__":
    main()
