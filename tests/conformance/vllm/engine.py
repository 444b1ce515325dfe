# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Runs a real vLLM worker as a local process: start, kill, restart, reset of its cache."""

import http.client
import json
import os
import pathlib
import random
import signal
import socket
import subprocess
import sys
import time

BLOCK_SIZE = 32
MODEL = "tiny"
# A few requests fill this cache. The longest prompt takes half of it.
CACHE_BLOCKS = 256
TOKENS_MAX = 4096
READY_S = 1200

KERNEL_PORTS = pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range")

ENVIRONMENT = {
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "OMP_NUM_THREADS": "1",
    # Opens POST /reset_prefix_cache.
    "VLLM_SERVER_DEV_MODE": "1",
    "HF_HUB_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_ENGINE_READY_TIMEOUT_S": "1200",
}


def free_ports():
    """Yields free ports below the kernel's ephemeral range: no process gets one in a restart."""
    given_from = int(KERNEL_PORTS.read_text(encoding="ascii").split()[0])
    for port in random.sample(range(given_from // 2, given_from), given_from // 2):
        with socket.socket() as probe:
            try:
                probe.bind(("", port))
            except OSError:
                continue
        yield port


class Engine:
    """One worker. Its ports stay the same over restarts. `ports` yields free ones."""

    def __init__(self, model_path, log_path, ports, host="127.0.0.1"):
        self.model_path = pathlib.Path(model_path)
        self.log_path = pathlib.Path(log_path)
        self.port, self.events_port, self.replay_port = (next(ports) for _ in range(3))
        self.host = host
        self.url = f"http://{host}:{self.port}"
        self.process = None

    def start(self):
        events = {
            "enable_kv_cache_events": True,
            "publisher": "zmq",
            "endpoint": f"tcp://*:{self.events_port}",
            "replay_endpoint": f"tcp://*:{self.replay_port}",
        }
        program = pathlib.Path(sys.executable).parent / "vllm"
        arguments = ["nice", "-n", "5", program, "serve", self.model_path]
        arguments += ["--load-format", "dummy", "--dtype", "float32", "--enforce-eager"]
        arguments += ["--block-size", BLOCK_SIZE, "--num-gpu-blocks-override", CACHE_BLOCKS]
        arguments += ["--kv-cache-memory-bytes", 64 << 20, "--max-model-len", TOKENS_MAX]
        # Half a prompt per step: vLLM computes long prompts, and publishes their blocks, in pieces.
        arguments += ["--max-num-seqs", 8, "--max-num-batched-tokens", TOKENS_MAX // 2]
        arguments += ["--served-model-name", MODEL, "--host", self.host, "--port", self.port]
        arguments += ["--enable-prompt-tokens-details", "--skip-mm-profiling"]
        arguments += ["--kv-events-config", json.dumps(events)]
        self.log_path.parent.mkdir(parents=True, exist_ok=True)
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                [str(a) for a in arguments], stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                env={**os.environ, **ENVIRONMENT}, start_new_session=True,
            )

    def kill(self):
        """Kills all of the worker's processes with SIGKILL, like a crash."""
        self._signal(signal.SIGKILL)

    def stop(self):
        if self.process is None:
            return
        self._signal(signal.SIGTERM)
        try:
            self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            pass
        # Its child processes outlive it when SIGTERM comes early in its start.
        self._signal(signal.SIGKILL)

    def _signal(self, number):
        try:
            os.killpg(self.process.pid, number)
        except ProcessLookupError:
            pass
        if number == signal.SIGKILL:
            self.process.wait()

    def get(self, path):
        return self._ask("GET", path)

    def compute(self, prompts):
        """Sends these token ids as prompts, one after the other."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=60)
        for ids in prompts:
            body = {"model": MODEL, "max_tokens": 1, "temperature": 0, "prompt": ids}
            connection.request("POST", "/v1/completions", json.dumps(body),
                               {"content-type": "application/json"})
            answer = connection.getresponse()
            content = answer.read()
            if answer.status != 200:
                raise RuntimeError(f"{self.url} refused a prompt: {answer.status} {content!r}")
        connection.close()

    def reset_prefix_cache(self):
        status, body = self._ask("POST", "/reset_prefix_cache")
        if status != 200:
            raise RuntimeError(f"{self.url} refused to reset its cache: {status} {body!r}")

    def _ask(self, method, path):
        connection = http.client.HTTPConnection(self.host, self.port, timeout=60)
        try:
            connection.request(method, path)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def is_ready(self):
        if self.process.poll() is not None:
            tail = self.log_path.read_text(errors="replace")[-3000:]
            raise RuntimeError(f"the worker at {self.url} exited:\n{tail}")
        try:
            return self.get("/health")[0] == 200
        except OSError:
            return False


def wait_until_ready(engines):
    """Returns the seconds until all workers serve. Prints a line every 30 s while it waits."""
    start = time.monotonic()
    said = start
    while not all(engine.is_ready() for engine in engines):
        now = time.monotonic()
        if now - start > READY_S:
            logs = ", ".join(str(engine.log_path) for engine in engines)
            raise RuntimeError(f"no worker after {READY_S} s; their logs: {logs}")
        if now - said > 30:
            said = now
            print(f"  still starting after {now - start:.0f} s", flush=True)
        time.sleep(0.5)
    return time.monotonic() - start
