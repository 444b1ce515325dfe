# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""The frontend role and the router role in separate processes."""

import concurrent.futures
import contextlib
import http.client
import json
import signal
import threading
import time

import pytest

from stack import SLOWDOWN, Program, Stack, freeze, post, thaw
from truth import ProcessorWaits

NAME = "demo"
SLOWLY = ("--decode-tokens-per-s", "40")


class Parted:
    """Simulated engines, routers in front of them, and a frontend that uses the routers."""

    def __init__(self, build, logs, routers=2, token_file=None, engine_flags=(),
                 frontend_flags=None):
        self.build, self.logs, self.token_file = build, logs, token_file
        # If flags are given, start_frontend() does not wait until the frontend is ready.
        self.frontend_flags = frontend_flags
        self.engines = Stack(build, engines=2, logs=logs, served_model_name=NAME,
                             engine_flags=list(engine_flags))
        self.selection_ports = [0] * routers  # any free ones, and the same again at a restart
        self.routers = [None] * routers
        self.admin_ports = [None] * routers
        self.frontend = None

    def __enter__(self):
        try:
            self.engines.start_engines()
            for i in range(len(self.routers)):
                self.start_router(i)
            self.start_frontend()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        with contextlib.ExitStack() as everything:
            everything.callback(self.engines.stop)
            for program in [*self.routers, self.frontend]:
                if program is not None:
                    everything.callback(program.stop)

    def _serve(self, *flags):
        tokens = ["--selection-token-file", self.token_file] if self.token_file else []
        return [self.build / "bin/sightline", "serve", "--model-path", self.engines.model_path,
                "--served-model-name", NAME, "--admin-port", "0", "--drain-timeout", "300ms",
                *tokens, *flags]

    def start_router(self, i):
        workers = []
        for worker in self.engines.workers:
            workers += ["--worker", ",".join(f"{k}={v}" for k, v in worker.items())]
        program = Program(self._serve("--roles", "router", "--selection-port",
                                      self.selection_ports[i], *workers),
                          self.logs / f"router{i}.log")
        self.routers[i] = program
        found = program.wait_for(r"^ready: http://[^:]+:(\d+) \(admin http://[^:]+:(\d+)\)")
        self.selection_ports[i], self.admin_ports[i] = map(int, found.groups())
        self.wait_until(lambda: [w["state"] for w in self.workers(i)] == ["ready"] * 2)

    def start_frontend(self):
        urls = ",".join(f"http://127.0.0.1:{port}" for port in self.selection_ports)
        command = self._serve("--roles", "frontend", "--routers", urls, "--port", "0",
                              *(self.frontend_flags or []))
        self.frontend = Program(command, self.logs / "frontend.log")
        found = self.frontend.wait_for(
            r"^ready: http://[^:]+:(\d+)/v1 \(admin http://[^:]+:(\d+)\)")
        self.port, self.admin_port = int(found.group(1)), int(found.group(2))
        if all(self.routers) and self.frontend_flags is None:
            self.wait_until(lambda: self.get(self.admin_port, "/readyz")[0] == 200)

    def get(self, port, path):
        return self.engines.get(port, path)

    def workers(self, i):
        return json.loads(self.get(self.admin_ports[i], "/v1/workers")[1])

    def in_flight(self, i):
        """Returns the number of requests for which the router has reserved load."""
        loads = json.loads(self.get(self.selection_ports[i], "/loads")[1])
        return sum(rank["load"]["in_flight"] for worker in loads for rank in worker["ranks"])

    def wait_until(self, condition, seconds=30):
        deadline = time.monotonic() + seconds * SLOWDOWN
        while not condition():
            assert time.monotonic() < deadline, f"not so after {seconds} s"
            time.sleep(0.05)

    def wait_until_known(self):
        """Waits until every router has applied all events and freed the load of ended requests."""
        for i, program in enumerate(self.routers):
            view = Stack(self.build, workers=self.engines.workers, logs=self.logs)
            view.router, view.admin_port = program, self.admin_ports[i]
            view.wait_until_heard()
            self.wait_until(lambda: self.in_flight(i) == 0)

    @contextlib.contextmanager
    def within(self, seconds):
        """Limits the time of the block, except the time that programs waited for a processor."""
        programs = [program for program in (*self.routers, self.frontend) if program is not None]
        waits = ProcessorWaits(lambda: [program.process for program in programs])
        begin, before = time.monotonic(), waits.now()
        yield
        took = time.monotonic() - begin - waits.since(before)
        assert took < seconds * SLOWDOWN, took

    def has_chosen(self, i):
        """Returns whether the router has chosen a worker for a request that has ended."""
        return b'reservations_ended_total{reason="told"}' in self.get(self.admin_ports[i],
                                                                       "/metrics")[1]

    def home(self):
        """Returns the router that this frontend uses first."""
        assert post(self.port, body("whom do you ask")).status == 200
        self.wait_until(lambda: any(map(self.has_chosen, range(len(self.routers)))))
        return next(i for i in range(len(self.routers)) if self.has_chosen(i))


def body(text, **more):
    return {"model": NAME, "messages": [{"role": "user", "content": text}], "max_tokens": 8,
            "temperature": 0, **more}


@contextlib.contextmanager
def endless(parted, count=4):
    """Runs streams as long as the block runs, unless they end earlier."""
    def run():
        with contextlib.suppress(OSError):
            post(parted.port, body("go on", stream=True, max_tokens=4000))

    threads = [threading.Thread(target=run, daemon=True) for _ in range(count)]
    for thread in threads:
        thread.start()
    yield


def test_frontend_and_router_answer_like_a_single_process(build, logs):
    texts = ["one " * 300, "one " * 300 + "two", "short"]

    def answers(port, wait_until_known):
        seen = []
        for text in texts:
            answer = post(port, body(text))
            content = json.loads(answer.body)["choices"][0]["message"]["content"]
            seen.append((answer.status, content, answer.usage["prompt_tokens"], answer.overlap))
            wait_until_known()
        return seen

    with Stack(build, logs=logs / "single", served_model_name=NAME) as single:
        wanted = answers(single.port, single.wait_until_heard)
    with Parted(build, logs) as parted:
        assert answers(parted.port, parted.wait_until_known) == wanted
        assert wanted[1][3][0] > 0, "the second prompt begins with the first"
        refused = post(parted.port, body("x", model="nobody"))
        assert refused.status == 404


def test_killing_a_router_under_load_fails_no_request(build, logs):
    with Parted(build, logs) as parted:
        statuses, lock = [], threading.Lock()
        stop = threading.Event()

        def client(i):
            while not stop.is_set():
                status = post(parted.port, body(f"client {i} " * 20)).status
                with lock:
                    statuses.append(status)

        threads = [threading.Thread(target=client, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        parted.wait_until(lambda: len(statuses) > 10)
        home = parted.home()
        parted.routers[home].stop(signal.SIGKILL)
        parted.routers[home] = None
        seen = len(statuses)
        parted.wait_until(lambda: len(statuses) > seen + 20)
        stop.set()
        for thread in threads:
            thread.join()
        assert set(statuses) == {200}
        parted.wait_until(lambda: parted.in_flight(1 - home) == 0)


def test_frontend_without_routers_answers_503_within_a_second(build, logs):
    with Parted(build, logs, routers=2) as parted:
        assert post(parted.port, body("hello")).status == 200
        for i in range(2):
            parted.routers[i].stop(signal.SIGKILL)
            parted.routers[i] = None
        with parted.within(1):
            answer = post(parted.port, body("hello"))
        assert answer.status == 503
        assert b"no router is available: connection refused" in answer.body
        status, why = parted.get(parted.admin_port, "/readyz?verbose")
        assert status == 503 and b"connection refused" in why
        parted.start_router(0)
        parted.wait_until(lambda: post(parted.port, body("hello")).status == 200)


def test_frozen_router_delays_requests_for_a_bounded_time(build, logs):
    with Parted(build, logs) as parted:
        home = parted.home()
        freeze(parted.routers[home].process)
        with parted.within(2):
            assert post(parted.port, body("hello")).status == 200
        thaw(parted.routers[home].process)


@contextlib.contextmanager
def frozen(parted):
    """Freezes all routers."""
    try:
        for router in parted.routers:
            freeze(router.process)
        yield
    finally:
        for router in parted.routers:
            thaw(router.process)


def metric(parted, series):
    """Returns a metric of the frontend, or 0 as long as it has none."""
    lines = parted.get(parted.admin_port, "/metrics")[1].decode().splitlines()
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(series + " "))


@pytest.mark.parametrize("is_noticed", [False, True])
def test_frontend_waits_when_all_routers_are_slow_once(build, logs, is_noticed):
    """A request that comes after the frontend has found the routers silent waits too."""
    with Parted(build, logs) as parted, concurrent.futures.ThreadPoolExecutor(1) as other:
        assert post(parted.port, body("hello")).status == 200
        asked = metric(parted, "sightline_selection_failovers_total")
        with frozen(parted):
            if is_noticed:
                parted.wait_until(
                    lambda: metric(parted, 'sightline_routers_known{state="failed"}') == 2)
            late = other.submit(post, parted.port, body("hello"))
            # The frontend tries each router, then one of them again.
            parted.wait_until(
                lambda: metric(parted, "sightline_selection_failovers_total") >= asked + 2)
        assert late.result().status == 200


def test_frontend_waits_for_the_router_that_answered_last(build, logs):
    with Parted(build, logs) as parted, concurrent.futures.ThreadPoolExecutor(1) as other, \
            contextlib.ExitStack() as frozen_ones:
        first = parted.home()
        asked = metric(parted, "sightline_selection_failovers_total")
        for count, i in enumerate((first, 1 - first), 1):
            freeze(parted.routers[i].process)
            frozen_ones.callback(thaw, parted.routers[i].process)
            parted.wait_until(
                lambda: metric(parted, 'sightline_routers_known{state="failed"}')
                == count)  # noqa: B023
        late = other.submit(post, parted.port, body("hello"))
        parted.wait_until(
            lambda: metric(parted, "sightline_selection_failovers_total") >= asked + 2)
        thaw(parted.routers[1 - first].process)
        assert late.result().status == 200


def test_frontend_stops_waiting_for_silent_routers(build, logs):
    with Parted(build, logs) as parted:
        assert post(parted.port, body("hello")).status == 200
        with frozen(parted):
            assert post(parted.port, body("hello")).status == 503
            with parted.within(1.5):
                answer = post(parted.port, body("hello"))
        assert answer.status == 503 and b"no answer in time" in answer.body


def test_restarted_router_reserves_running_requests_again(build, logs):
    with Parted(build, logs, routers=1, engine_flags=SLOWLY) as parted:
        with endless(parted, 3):
            parted.wait_until(lambda: parted.in_flight(0) == 3)
            parted.routers[0].stop(signal.SIGKILL)
            parted.start_router(0)
            parted.wait_until(lambda: parted.in_flight(0) == 3)


def test_router_frees_the_load_of_a_killed_frontend(build, logs):
    with Parted(build, logs, routers=1, engine_flags=SLOWLY) as parted:
        with endless(parted, 3):
            parted.wait_until(lambda: parted.in_flight(0) == 3)
            parted.frontend.stop(signal.SIGKILL)
            parted.frontend = None
            begin = time.monotonic()
            parted.wait_until(lambda: parted.in_flight(0) == 0, 20)
            assert time.monotonic() - begin > 8, "the frontend gets time to come back"


def test_selection_port_refuses_requests_without_a_token(build, logs, tmp_path):
    tokens = tmp_path / "tokens"
    tokens.write_text("a-token-of-enough-bytes\n")
    with Parted(build, logs, routers=1, token_file=tokens) as parted:
        assert post(parted.port, body("hello")).status == 200
        assert parted.get(parted.selection_ports[0], "/loads")[0] == 401
        assert parted.get(parted.admin_port, "/v1/workers")[0] == 404


def expect_refused_by_its_router(parted, *names):
    """The client and the admin port get the reason. The frontend sends nothing to an engine."""
    def told(answer):
        return answer[0] == 503 and all(name in answer[1] for name in names)

    parted.wait_until(lambda: told(parted.get(parted.admin_port, "/readyz?verbose")))
    answer = post(parted.port, body("hello"))
    assert answer.status == 503, answer.body
    assert b"no router is available" in answer.body
    assert parted.in_flight(0) == 0 and not parted.has_chosen(0)


def test_frontend_with_another_identity_key_refuses_requests(build, logs, tmp_path):
    key = tmp_path / "key"
    key.write_bytes(bytes(range(32)))
    with Parted(build, logs, routers=1,
                frontend_flags=["--identity-key-file", key]) as parted:
        expect_refused_by_its_router(parted, b"uses block keys of", b"but this frontend those of")


def test_frontend_with_a_wrong_token_refuses_requests(build, logs, tmp_path):
    tokens, others = tmp_path / "tokens", tmp_path / "others"
    tokens.write_text("a-token-of-enough-bytes\n")
    others.write_text("another-token-of-enough-bytes\n")
    with Parted(build, logs, routers=1, token_file=tokens,
                frontend_flags=["--selection-token-file", others]) as parted:
        parted.wait_until(lambda: b"rejected the token of this frontend (selection.token_file)"
                          in parted.get(parted.admin_port, "/readyz?verbose")[1])
        assert post(parted.port, body("hello")).status == 503
        metrics = parted.get(parted.admin_ports[0], "/metrics")[1]
        assert b'sightline_selection_requests_total{code="401"}' in metrics
        assert not parted.has_chosen(0)


def test_frontend_accepts_pushed_settings_but_no_worker_lists(build, logs, tmp_path):
    tokens = tmp_path / "admin"
    tokens.write_text("a-token-of-enough-bytes\n")

    def put(parted, path, sent):
        connection = http.client.HTTPConnection("127.0.0.1", parted.admin_port, timeout=60)
        connection.request("PUT", path, json.dumps(sent),
                           {"authorization": "Bearer a-token-of-enough-bytes"})
        with contextlib.closing(connection):
            return connection.getresponse().status

    with Parted(build, logs, routers=1,
                frontend_flags=["--admin-token-file", tokens]) as parted:
        parted.wait_until(lambda: parted.get(parted.admin_port, "/readyz")[0] == 200)
        assert post(parted.port, body("hello")).status == 200
        assert put(parted, "/v1/settings", {"settings": {"media.images_max": 0}}) == 200
        picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
        refused = post(parted.port, body([picture]))
        assert refused.status == 400 and b"at most 0 media items" in refused.body, refused.body
        lists = {"revision": "0", "generation": 1, "workers": []}
        assert put(parted, "/v1/workers", lists) in (404, 405)


@pytest.mark.parametrize("flags, fix", [
    (["--roles", "frontend"], "--routers"),
    (["--roles", "router", "--routers", "http://h:1", "--worker", "url=http://h:1"],
     "--roles frontend"),
    (["--worker", "url=http://h:1", "--selection-host", "0.0.0.0"], "--selection-token-file"),
    (["--roles", "frontend", "--routers", "http://h:1", "--worker", "url=http://h:1"],
     "--roles frontend,router"),
])
def test_router_refuses_contradictory_settings_and_names_the_fix(build, logs, flags, fix):
    program = Program([build / "bin/sightline", "serve", "--model-path", "/none", *flags],
                      logs / "refused.log")
    assert program.process.wait(30) == 2
    assert fix in program.log_path.read_text()
