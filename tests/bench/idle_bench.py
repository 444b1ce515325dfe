#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Measures the CPU cost of a router without requests.

Method: one `sightline serve` runs with its default settings and N simulated engines (`sightline
simulate --instant`, 64 in a process). Each engine has health, metrics, event and replay endpoints.
For the second row, N servers answer /metrics with 69 KB, like a busy vLLM, and have no events.
When every worker is settled, the bench pauses. Then it reads the CPU time of the router's threads
from /proc/PID/task/*/schedstat twice, the given seconds apart. It reads memory and descriptors at
the end. The engines are other processes, and their CPU time does not count.
"""

import argparse
import collections
import contextlib
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "hack"))

from stack import Program, Stack  # noqa: E402

ENGINES_PER_PROCESS = 64
SETTLE_S = 5
METRICS_BYTES = 69_000  # the size of vLLM 0.32's metrics after some requests
# Number of workers -> the share of a core that the router may use.
BOUNDS = {100: 0.05}


def start_engines(build, count, logs):
    programs, workers = [], []
    while len(workers) < count:
        here = min(ENGINES_PER_PROCESS, count - len(workers))
        program = Program(
            [build / "bin/sightline", "simulate", "--instant", "--engines", here]
            + ["--base-port", 0, "--events-base-port", 0, "--replay-base-port", 0]
            + ["--served-model-name", "demo"], logs / f"simulate-{len(programs)}.log")
        programs.append(program)
        for _ in range(here):
            line = program.wait_for(r"((?:name|url)=[^\s']+)").group(1)
            fields = dict(part.split("=", 1) for part in line.split(","))
            workers.append({**fields, "name": f"w{len(workers)}"})
        program.wait_for("^ready")
    return programs, workers


def thread_seconds(pid):
    """Returns CPU seconds by thread name. Threads whose names differ only in a number count
    together."""
    spent = collections.Counter()
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        try:
            name = re.sub(r"-?\d+$", "", (task / "comm").read_text().strip())
            spent[name] += int((task / "schedstat").read_text().split()[0]) / 1e9
        except OSError:
            continue
    return spent


def resident_mib(pid):
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"^VmRSS:\s+(\d+) kB", status, re.M).group(1)) / 1024


@contextlib.contextmanager
def simulated(build, count):
    programs, workers = start_engines(build, count, build / "bench-logs")
    try:
        yield workers
    finally:
        for program in programs:
            program.stop(signal.SIGKILL)


@contextlib.contextmanager
def talkative(build, count):
    metrics = build / "bench-logs/metrics.txt"
    metrics.parent.mkdir(parents=True, exist_ok=True)
    text = (ROOT / "tests/data/fleet/metrics-busy.txt").read_text()
    line = 'vllm:request_time_{}_seconds_bucket{{engine="0",le="{}.0",model_name="demo"}} 12.0\n'
    for i in range(METRICS_BYTES):
        if len(text) >= METRICS_BYTES:
            break
        text += line.format(i // 20, i % 20)
    metrics.write_text(text)
    program = subprocess.Popen(
        [build / "bin/load_generator", "engine", "1000", "1", str(count), metrics],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        ports = program.stdout.readline().split()[1:]
        yield [{"name": f"w{i}", "url": f"http://127.0.0.1:{port}"}
               for i, port in enumerate(ports)]
    finally:
        program.stdin.close()
        program.wait()


def measure(build, workers, what, seconds):
    started = time.monotonic()
    with Stack(build, model="qwen3-vl", workers=workers, logs=build / "bench-logs",
               router_flags=["--log-level", "warn"],
               ready_states=("ready", "unverified")) as stack:
        ready_s = time.monotonic() - started
        time.sleep(SETTLE_S)
        pid = stack.router.process.pid
        before = thread_seconds(pid)
        time.sleep(seconds)
        spent = thread_seconds(pid)
        spent.subtract(before)
        cores = {name: value / seconds for name, value in spent.most_common() if value > 0}
        total = sum(cores.values())
        print(f"{len(workers):5} {what}: {total:.4f} core, {resident_mib(pid):.0f} MiB resident, "
              f"{len(os.listdir(f'/proc/{pid}/fd'))} descriptors, settled in {ready_s:.1f} s")
        print("      " + ", ".join(f"{n} {v:.4f}" for n, v in list(cores.items())[:6]))
        bound = BOUNDS.get(len(workers))
        if bound:
            print(f"      bound {bound} core: {'held' if total <= bound else 'MISSED'}")
        sys.stdout.flush()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", nargs="?", default="build/release", type=pathlib.Path)
    parser.add_argument("--workers", type=lambda text: [int(n) for n in text.split(",")],
                        default=[100, 1000])
    parser.add_argument("--seconds", type=float, default=20.0)
    arguments = parser.parse_args()
    print(__doc__.split("\n\n", 1)[1])
    for count in arguments.workers:
        for engines in (simulated, talkative):
            with engines(arguments.build.resolve(), count) as workers:
                measure(arguments.build.resolve(), workers, engines.__name__, arguments.seconds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
