# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Runs two real workers outside of Kubernetes as endpoints of a MultimodalRouter. The operator runs
as it is installed, on a real control plane with real pods (hack/testbed, as root). Exit status 0:
each prediction of the router equals the engine's report, and repeated pictures reuse the cache."""

import argparse
import contextlib
import json
import pathlib
import signal
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
for place in ("hack", "tests", "tests/cluster/operator"):
    sys.path.insert(0, str(ROOT / place))
sys.dont_write_bytecode = True

from engine import BLOCK_SIZE, MODEL, Engine, free_ports, wait_until_ready  # noqa: E402
from installed import condition, exchange, router, status  # noqa: E402
from pictures import image_part, png, text_part  # noqa: E402
from testbed import bed as beds  # noqa: E402
from testbed import checks, installation, network  # noqa: E402
from testbed.commands import Commands  # noqa: E402
from testbed.namespace import Namespace  # noqa: E402

BED, WORKERS, READY_S = "vllm", 2, 300
PORT = 8000
PICTURES = 6
QUESTIONS = ("What is shown?", "What is shown?", "Which colours does it have?")


def with_endpoints(engines):
    pool = {"name": "outside", "endpoints": [
        {"name": f"vllm{i}", "url": engine.url} for i, engine in enumerate(engines)]}
    source = {"pvc": {"claimName": "models"}}
    return router({"model": {"name": MODEL, "source": source}, "pools": [pool],
                   "kv": {"blockSize": BLOCK_SIZE}})


def ask(home, address, seed, question):
    """Returns (worker, blocks predicted, blocks of the prompt, blocks that the engine reused)."""
    parts = [image_part(png(448, 448, seed=seed)), text_part(question)]
    body = json.dumps({"model": MODEL, "max_tokens": 4, "temperature": 0,
                       "messages": [{"role": "user", "content": parts}]})
    answer, text = exchange(home, address, PORT, "POST", "/v1/chat/completions", body)
    assert answer.status == 200, (answer.status, text)
    details = json.loads(text)["usage"].get("prompt_tokens_details") or {}
    known, _, whole = answer.getheader("x-sightline-overlap").partition("/")
    return (answer.getheader("x-sightline-worker"), int(known), int(whole),
            (details.get("cached_tokens") or 0) // BLOCK_SIZE)


def judge(home):
    """Returns the problems as texts."""
    problems = []
    address = home.get("service", "demo")["spec"]["clusterIP"]
    print(f"{'picture':>7}  {'worker':24}{'predicted':>9}{'reported':>9}", flush=True)
    for turn, question in enumerate(QUESTIONS):
        for seed in range(PICTURES):
            worker, known, whole, reported = ask(home, address, seed, question)
            print(f"{seed:7}  {worker:24}{f'{known}/{whole}':>9}{reported:9}", flush=True)
            if known != reported:
                problems.append(f"picture {seed}: {known} predicted, {reported} reported")
            if turn > 0 and known < 0.8 * whole:
                problems.append(f"picture {seed}: only {known} of {whole} are known")
        # An engine publishes its last blocks with its next step.
        home.until(lambda: condition(home, "IndexConsistent") == "True OneBlockSize",
                   "the index is consistent")
    if status(home)["workers"] != f"{WORKERS}/{WORKERS}":
        problems.append(f"workers {status(home)['workers']}")
    return problems


def run(build, logs):
    lacking = checks.lacking()
    if lacking:
        sys.exit("this machine cannot run pods:\n"
                 + "\n".join(f"  {what}: {fix}" for what, fix in lacking))
    commands = Commands(BED)
    model = build / "models/tiny-qwen2-vl"
    with contextlib.ExitStack() as running:
        running.callback(commands.down)
        commands.up("--pods")
        commands.must("images", "--build", build)
        ports = free_ports()
        engines = [Engine(model, logs / f"endpoint{i}.log", ports, host=beds.NODE_IP)
                   for i in range(WORKERS)]
        with network.inside(commands.bed):
            for engine in engines:
                running.callback(engine.stop)
                engine.log_path.unlink(missing_ok=True)
                engine.start()
            print(f"starting {WORKERS} workers; their logs: {logs}", flush=True)
            print(f"  ready after {wait_until_ready(engines):.0f} s", flush=True)
        installation.install(commands.kubectl)
        home = running.enter_context(Namespace(commands.bed, "live engines"))
        home.mount_directory("models", model)
        home.apply(with_endpoints(engines))
        try:
            home.wait("mmr/demo", "Ready", READY_S)
        except AssertionError:
            print(home.describe())
            raise
        print(home.kubectl("get", "mmr"), flush=True)
        return judge(home)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", required=True, help="build directory of the programs")
    parser.add_argument("--logs", required=True, help="directory for the engines' logs")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    problems = run(pathlib.Path(options.build).resolve(), pathlib.Path(options.logs))
    for problem in problems:
        print(f"  {problem}", file=sys.stderr)
    print("as predicted" if not problems else f"{len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
