# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Starts simulated engines and the router as real processes on free ports, and stops them."""

import contextlib
import http.client
import json
import os
import pathlib
import queue
import re
import signal
import subprocess
import threading
import time

# Instrumented programs (make test-asan, make test-tsan) are slower by this factor.
SLOWDOWN = float(os.environ.get("SL_SLOWDOWN", "1"))
READY_S = 30
# A directory in the build tree. Instrumented programs use models with shorter tokenizers.
MODELS = os.environ.get("SL_MODELS", "models")


def freeze(process):
    """Stops a child process. Returns when all its threads have stopped: kill() returns earlier,
    and a thread on another processor may still answer for milliseconds."""
    process.send_signal(signal.SIGSTOP)
    with contextlib.suppress(ChildProcessError):  # send_signal() has reaped the ended process
        seen = os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        if seen.si_code == os.CLD_STOPPED:
            return
    raise RuntimeError(f"{process.args[:2]} has ended and cannot be frozen")


def thaw(process):
    process.send_signal(signal.SIGCONT)


class Program:
    """A started program. A thread reads its output line by line, and errors show this output."""

    def __init__(self, arguments, log_path, stderr=None):
        self.log_path = pathlib.Path(log_path)
        self.log_path.parent.mkdir(parents=True, exist_ok=True)
        self._log = open(self.log_path, "wb")
        environment = {k: v for k, v in os.environ.items() if not k.startswith("SIGHTLINE_")}
        # Several programs run in parallel, so they must not use the default port.
        environment["SIGHTLINE_SELECTION_PORT"] = "0"
        # A process group of its own: Ctrl-C at the terminal reaches only the caller, which stops
        # its programs in order.
        self.process = subprocess.Popen(
            [str(a) for a in arguments], stdout=subprocess.PIPE,
            stderr=self._log if stderr is None else stderr, env=environment, process_group=0
        )
        self.lines = []
        self._queue = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self.process.stdout:
            self._queue.put(line.decode().rstrip("\n"))
        self._queue.put(None)

    def wait_for(self, pattern, seconds=READY_S):
        """Returns the match of the first matching line. Raises an error with the log at the end."""
        deadline = time.monotonic() + seconds * SLOWDOWN
        while True:
            try:
                line = self._queue.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                line = None
            if line is None:
                raise RuntimeError(f"{self.process.args[:2]} said no '{pattern}':\n{self.log()}")
            self.lines.append(line)
            match = re.search(pattern, line)
            if match:
                return match

    def log(self):
        return "\n".join(self.lines) + "\n" + self.log_path.read_text(errors="replace")[-4000:]

    def stop(self, signal_number=signal.SIGTERM):
        """Ends the program. Raises an error unless it exits with status 0 or a test killed it."""
        hangs = False
        if self.process.poll() is None:
            self.process.send_signal(signal_number)
            try:
                self.process.wait(timeout=20 * SLOWDOWN)
            except subprocess.TimeoutExpired:
                hangs = True
                self.process.kill()
                self.process.wait()
        self._log.close()
        status = self.process.returncode
        if hangs or status not in (0, -signal.SIGKILL):
            end = "did not end when told to" if hangs else f"ended with status {status}"
            raise RuntimeError(f"{self.process.args[:2]} {end}:\n{self.log()}")


class Stack:
    """N simulated engines with one router in front of them. Use it as a context manager."""

    def __init__(self, build, model="qwen2-vl", engines=2, **options):
        self.build = pathlib.Path(build).resolve()
        # Some tests need the token ids and token counts of the whole tokenizer.
        models = "models" if options.pop("whole_tokenizer", False) else MODELS
        self.model_path = self.build / models / model
        self.name = options.pop("served_model_name", "demo")
        self.logs = pathlib.Path(options.pop("logs", self.build / "stack-logs"))
        self.engine_count = engines
        self.engine_flags = options.pop("engine_flags", [])
        self.router_flags = options.pop("router_flags", [])
        # A file descriptor that replaces the log file.
        self.router_stderr = options.pop("router_stderr", None)
        self.worker_extra = options.pop("worker_extra", "")
        # Goes before the router's command line: a program that changes its environment and starts
        # it.
        self.router_prefix = options.pop("router_prefix", [])
        self.ports = options.pop("ports", {"engines": (0, 0, 0), "router": 0, "admin": 0})
        self.simulator = None
        self.router = None
        # Workers (name, url, …) that replace the simulated engines. With an empty list, the router
        # gets no --worker flag.
        given = options.pop("workers", None)
        self.simulates = given is None
        self.workers = list(given or [])
        self.ready_states = options.pop("ready_states", ("ready",))
        if options:
            raise TypeError(f"unknown options {sorted(options)}")

    def __enter__(self):
        try:
            if self.simulates:
                self.start_engines()
            self.start_router()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_):
        self.stop()

    def start_engines(self):
        base, events, replay = self.ports["engines"]
        self.simulator = Program(
            [self.build / "bin/sightline", "simulate", "--engines", self.engine_count]
            + ["--base-port", base, "--events-base-port", events, "--replay-base-port", replay]
            + ["--model-path", self.model_path, "--served-model-name", self.name]
            + list(self.engine_flags),
            self.logs / "simulate.log",
        )
        self.workers = []
        for i in range(self.engine_count):
            line = self.simulator.wait_for(r"((?:name|url)=[^\s']+)").group(1)
            fields = dict(part.split("=", 1) for part in line.split(","))
            fields["name"] = f"w{i}"
            self.workers.append(fields)
        self.simulator.wait_for(r"^ready")

    def start_router(self):
        flags = []
        for worker in self.workers:
            value = ",".join(f"{k}={v}" for k, v in worker.items()) + self.worker_extra
            flags += ["--worker", value]
        self.router = Program(
            list(self.router_prefix)
            + [self.build / "bin/sightline", "serve", "--model-path", self.model_path]
            + ["--served-model-name", self.name]
            + ["--port", self.ports["router"], "--admin-port", self.ports["admin"]]
            + flags
            + list(self.router_flags),
            self.logs / "serve.log",
            stderr=self.router_stderr,
        )
        match = self.router.wait_for(r"ready: http://[^:]+:(\d+)/v1 \(admin http://[^:]+:(\d+)\)")
        self.port, self.admin_port = int(match.group(1)), int(match.group(2))
        self.wait_until(self.are_workers_ready)

    def are_workers_ready(self):
        states = self.worker_states()
        # A router with replicas first requests their worker list.
        return len(states) >= len(self.workers) and all(
            w["state"] in self.ready_states and all(r["state"] == w["state"] for r in w["ranks"])
            for w in states)

    def stop(self):
        with contextlib.ExitStack() as both:
            for program in (self.simulator, self.router):
                if program is not None:
                    both.callback(program.stop)

    def wait_until(self, condition, seconds=READY_S):
        deadline = time.monotonic() + seconds * SLOWDOWN
        while not condition():
            if time.monotonic() > deadline:
                raise RuntimeError(f"not so after {seconds} s:\n{self.router.log()}")
            time.sleep(0.02)

    # Reports of the processes.

    def get(self, port, path):
        return self.call("GET", port, path)

    def call(self, method, port, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30 * SLOWDOWN)
        connection.request(method, path, body)
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        return answer.status, body

    def worker_states(self):
        return json.loads(self.get(self.admin_port, "/v1/workers")[1])

    def engine_port(self, i):
        return int(self.workers[i]["url"].rsplit(":", 1)[1])

    def engine_metrics(self, i):
        """Returns the engine's own counters as {name: sum over label sets}."""
        totals = {}
        for line in self.get(self.engine_port(i), "/metrics")[1].decode().splitlines():
            match = re.match(r"([A-Za-z_:]+)(?:\{[^}]*\})? ([-+0-9.eE]+)$", line)
            if match:
                totals[match.group(1)] = totals.get(match.group(1), 0.0) + float(match.group(2))
        return totals

    def router_metrics(self):
        return self.get(self.admin_port, "/metrics")[1].decode()

    def router_count(self, name):
        """Returns the sum of the router's counters with this name. If the name has labels, returns
        that counter's value. Returns 0 if the counter does not exist."""
        labels = "" if "{" in name else r"(?:{.*})?"
        found = re.findall(rf"^{re.escape(name)}{labels} (\d+)$", self.router_metrics(), re.M)
        return sum(map(int, found))

    def wait_until_heard(self):
        """Waits until the router has applied all events that every rank of every engine has sent.
        An engine makes its event message before its answer. So the messages cover all answers."""
        for i in range(len(self.workers)):
            for rank in range(len(self.worker_states()[i]["ranks"])):
                self.wait_until(lambda: self.heard(i, rank) == self.announced(i, rank))

    def take_turn(self):
        """Switches to the next of several routers. This class has only one."""

    def ranks_read(self):
        """Returns (replay endpoint, sequence of the last applied message) of every rank, as the
        reader of its events reports it."""
        return [(rank["replay_endpoint"], rank["events"]["seq"])
                for worker in self.worker_states() for rank in worker["ranks"]]

    def is_told(self):
        """Returns whether all routers have received the events that were read."""
        return True

    def announced(self, i, rank):
        """Returns the sequence of the last event message of an engine's rank, or None."""
        answer = self.get(self.engine_port(i), f"/sim/blocks?rank={rank}")[1]
        return json.loads(answer)["sequence"]

    def heard(self, i, rank):
        """Returns the sequence of the rank's last event message that the router has applied."""
        events = self.worker_states()[i]["ranks"][rank]["events"]
        return events and events["seq"]


class Answer:
    """A complete answer of the router."""

    def __init__(self):
        self.status = 0
        self.headers = {}
        self.body = b""
        self.events = []
        self.first_token_s = None
        self.usage = None

    @property
    def overlap(self):
        x, _, y = self.headers.get("x-sightline-overlap", "0/0").partition("/")
        return int(x), int(y)

    @property
    def worker(self):
        return self.headers.get("x-sightline-worker")


def post(port, body, path="/v1/chat/completions", headers=None, host="127.0.0.1"):
    """Sends a request and reads its whole answer. It reads a stream event by event."""
    answer = Answer()
    connection = http.client.HTTPConnection(host, port, timeout=120 * SLOWDOWN)
    start = time.monotonic()
    payload = body if isinstance(body, (bytes, str)) else json.dumps(body)
    connection.request(
        "POST", path, payload, {"content-type": "application/json", **(headers or {})}
    )
    response = connection.getresponse()
    answer.status = response.status
    answer.headers = {k.lower(): v for k, v in response.getheaders()}
    if answer.headers.get("content-type", "").startswith("text/event-stream"):
        for line in response:
            answer.body += line
            if not line.startswith(b"data: "):
                continue
            if answer.first_token_s is None:
                answer.first_token_s = time.monotonic() - start
            data = line[6:].strip()
            answer.events.append(data)
            if data.startswith(b"{"):
                answer.usage = json.loads(data).get("usage") or answer.usage
    else:
        answer.body = response.read()
        answer.first_token_s = time.monotonic() - start
        if answer.body.startswith(b"{"):
            answer.usage = json.loads(answer.body).get("usage")
    connection.close()
    return answer
