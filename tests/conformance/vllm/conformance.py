# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Starts two real workers and the router, runs the plan, compares prediction and engine."""

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
from engine import BLOCK_SIZE, CACHE_BLOCKS, MODEL, Engine, wait_until_ready  # noqa: E402
from judge import HEADER, Judge, counted  # noqa: E402
from stack import Stack  # noqa: E402

WORKERS = 2
ROWS_MIN = 80
# Requests for which the engine skips its cache prove nothing to the router's own audit.
UNAUDITED_MAX = 2
ROUTER_FLAGS = ["--routing-seed", "1", "--media-allow-private-addresses"]


def run_plan(judge, stack, engines):
    for part in (plan.texts, plan.completions, plan.pictures, plan.offsets, plan.two_pictures,
                 plan.identities, plan.salts, plan.fields, plan.roles, plan.streams,
                 plan.conversations, plan.crowds, plan.eviction):
        part(judge)

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


def problems_of(rows, metrics):
    """Why the run proves nothing or the router was wrong; nothing when all is well."""
    for number, row in enumerate(rows, 1):
        if not row.prompt_equal:
            yield f"row {number}: the engine's prompt is not the one that the router computed"
        elif row.wrong:
            yield f"row {number}: predicted {row.predicted} cached tokens, found {row.actual}"
        if row.not_counted:
            yield f"row {number}: not counted because of {row.not_counted}"
        if not row.audit_agrees:
            yield f"row {number}: the router's own audit says '{row.audit}'"
    if len(rows) < ROWS_MIN:
        yield f"only {len(rows)} requests were judged, wanted are {ROWS_MIN}"
    if sum(row.predicted > 0 for row in rows) < len(rows) / 3:
        yield "less than a third of the requests reused anything: too little is shown"
    for why in ("reset", "restart"):
        at = next((i for i, row in enumerate(rows) if row.first_after == why), None)
        if at is None:
            yield f"no request reached the worker after its {why}"
        elif not any(r.worker == rows[at].worker and r.predicted > 0 for r in rows[at + 1:]):
            yield f"nothing was reused on the worker after its {why}: healing is not shown"
    if sum(row.audit == "" for row in rows) > UNAUDITED_MAX:
        yield f"the router's own audit passed over more than {UNAUDITED_MAX} requests"
    if sum(counted(metrics, "sightline_prompt_token_mismatch_total").values()) != 0:
        yield "the router's own audit saw prompts of another length"


def machine():
    text = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8")
    vectors = "AVX-512" if "avx512f" in text else "AVX2"
    return f"x86-64 with {vectors}, {os.cpu_count()} cores"


def report(rows, sightline_version, seconds):
    """The result as a table per kind and one of all rows, in Markdown."""
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}"
                         for name in ("vllm", "torch", "transformers", "openai"))
    date = datetime.date.today().isoformat()
    lines = [f"{date}; {sightline_version}; {versions}; {machine()}; {seconds:.0f} s.", ""]
    lines += ["| kind | requests | reuse predicted | predicted = actual | first after a loss |",
              "|---|---:|---:|---:|---:|"]
    kinds = list(dict.fromkeys(row.kind for row in rows))
    for kind in kinds + ["all"]:
        of = [row for row in rows if kind in (row.kind, "all")]
        judged = [row for row in of if not row.exempt]
        lines.append(f"| {kind} | {len(of)} | {sum(r.predicted > 0 for r in of)} "
                     f"| {sum(r.equal for r in judged)} of {len(judged)} "
                     f"| {sum(r.exempt for r in of)} |")
    lines += ["", "| # | kind | request | worker | prompt tokens | predicted | actual | equal |",
              "|---:|---|---|---|---:|---:|---:|---|"]
    # Named by their order: the ports in their own names differ from run to run.
    names = {name: f"w{i}" for i, name in enumerate(sorted({row.worker for row in rows}))}
    for number, row in enumerate(rows, 1):
        lines.append(f"| {number} | {row.kind} | {row.what} | {names[row.worker]} "
                     f"| {row.tokens_engine} | {row.predicted} | {row.actual} | {row.verdict()} |")
    return "\n".join(lines) + "\n"


def verdict(rows, problems):
    judged = [row for row in rows if not row.exempt]
    right = sum(not row.wrong for row in judged)
    print(f"\n{len(rows)} requests, {sum(r.predicted > 0 for r in rows)} with predicted reuse; "
          f"predicted = actual on {right} of {len(judged)}; "
          f"{len(rows) - len(judged)} first after a restart or reset, not counted.")
    print(f"Prompt tokens and their ids equal on {sum(r.prompt_equal for r in rows)} of "
          f"{len(rows)}.")
    for problem in problems:
        print(f"conformance: {problem}", file=sys.stderr)
    print("All as predicted." if not problems else "NOT as predicted.")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", required=True, help="build directory of the router")
    parser.add_argument("--logs", required=True, help="directory for the processes' logs")
    parser.add_argument("--report", required=True, help="Markdown file to write")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    start = time.monotonic()
    model = pathlib.Path(options.build).resolve() / "models/tiny-qwen2-vl"
    logs = pathlib.Path(options.logs)
    with contextlib.ExitStack() as running:
        engines = [Engine(model, logs / f"engine{i}.log") for i in range(WORKERS)]
        for engine in engines:
            running.callback(engine.stop)
            engine.log_path.unlink(missing_ok=True)
            engine.start()
        print(f"starting {WORKERS} workers, {CACHE_BLOCKS} blocks of {BLOCK_SIZE} tokens each; "
              f"their logs: {logs}", flush=True)
        print(f"  ready after {wait_until_ready(engines):.0f} s", flush=True)
        stack = running.enter_context(Stack(
            options.build, model="tiny-qwen2-vl", served_model_name=MODEL, logs=logs,
            workers=[{"url": engine.url} for engine in engines], router_flags=ROUTER_FLAGS))
        judge = Judge(stack)
        running.callback(judge.close)
        print(HEADER, flush=True)
        run_plan(judge, stack, engines)
        metrics = stack.router_metrics()
    problems = list(problems_of(judge.rows, metrics))
    version = subprocess.run([stack.build / "bin/sightline", "--version"], check=True,
                             capture_output=True, text=True).stdout.strip()
    pathlib.Path(options.report).write_text(
        report(judge.rows, version, time.monotonic() - start), encoding="utf-8")
    verdict(judge.rows, problems)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
