# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Starts two real workers and the router, runs the plan, and compares predictions and engines."""

import argparse
import contextlib
import datetime
import importlib.metadata
import os
import pathlib
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "hack"))
sys.dont_write_bytecode = True

import plan  # noqa: E402
from engine import (  # noqa: E402
    BLOCK_SIZE,
    CACHE_BLOCKS,
    MODEL,
    Engine,
    free_ports,
    wait_until_ready,
)
from judge import Judge  # noqa: E402
from replicated import Replicated  # noqa: E402
from stack import Stack  # noqa: E402
from table import HEADER, markdown_of, print_verdict, problems_of  # noqa: E402

WORKERS = 2
ROUTER_FLAGS = ["--routing-seed", "1", "--media-allow-private-addresses"]


def run_plan(judge, stack, engines):
    for part in (plan.texts, plan.completions, plan.pictures, plan.offsets, plan.two_pictures,
                 plan.identities, plan.salts, plan.fields, plan.roles, plan.streams,
                 plan.conversations, plan.crowds, plan.eviction, plan.late_join):
        part(judge)

    plan.long_past(judge, engines[0])

    def engine_of(worker):
        url = next(w["url"] for w in stack.worker_states() if w["name"] == worker)
        return next(engine for engine in engines if engine.url == url)

    def restart(worker):
        engine = engine_of(worker)
        print(f"     killing {worker} and starting it again ...", flush=True)
        engine.kill()
        engine.start()
        wait_until_ready([engine])
        stack.wait_until(lambda: all(
            w["state"] in ("ready", "unverified") for w in stack.worker_states()), seconds=60)

    plan.after_loss(judge, "reset", lambda worker: engine_of(worker).reset_prefix_cache())
    plan.after_loss(judge, "restart", restart)


def machine():
    text = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8")
    vectors = "AVX-512" if "avx512f" in text else "AVX2"
    return f"x86-64 with {vectors}, {os.cpu_count()} cores"


def made_with(stack, seconds):
    """Returns date, versions, machine and time of the run."""
    router = subprocess.run([stack.build / "bin/sightline", "--version"], check=True,
                            capture_output=True, text=True).stdout.strip()
    versions = [f"{name} {importlib.metadata.version(name)}"
                for name in ("vllm", "torch", "transformers", "openai")]
    return "; ".join([datetime.date.today().isoformat(), router, ", ".join(versions), machine(),
                      f"{seconds / 60:.0f} minutes"])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", required=True, help="build directory of the router")
    parser.add_argument("--logs", required=True, help="directory for the processes' logs")
    parser.add_argument("--report", required=True, help="Markdown file to write")
    parser.add_argument("--replicas", action="store_true",
                        help="two routers, used in turn, that get KV events from agents")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    start = time.monotonic()
    model = pathlib.Path(options.build).resolve() / "models/tiny-qwen2-vl"
    logs = pathlib.Path(options.logs)
    with contextlib.ExitStack() as running:
        ports = free_ports()
        engines = [Engine(model, logs / f"engine{i}.log", ports) for i in range(WORKERS)]
        for engine in engines:
            running.callback(engine.stop)
            engine.log_path.unlink(missing_ok=True)
            engine.start()
        print(f"starting {WORKERS} workers, {CACHE_BLOCKS} blocks of {BLOCK_SIZE} tokens each; "
              f"their logs: {logs}", flush=True)
        print(f"  ready after {wait_until_ready(engines):.0f} s", flush=True)
        kind = Replicated if options.replicas else Stack
        stack = running.enter_context(kind(
            options.build, model="tiny-qwen2-vl", served_model_name=MODEL, logs=logs,
            workers=[{"url": engine.url} for engine in engines], router_flags=ROUTER_FLAGS))
        judge = Judge(stack)
        running.callback(judge.close)
        print(HEADER, flush=True)
        run_plan(judge, stack, engines)
    problems = list(problems_of(judge.rows))
    pathlib.Path(options.report).write_text(
        f"{made_with(stack, time.monotonic() - start)}\n\n{markdown_of(judge.rows)}",
        encoding="utf-8")
    print_verdict(judge.rows, problems)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
