# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""What removes a worker from the routing or its blocks from the index, and what must not."""

import json
import subprocess
import threading

import pytest
from fake_engine import FakeEngine, answer_ok, chunk, router, stream_head, token_event
from front import fronted
from stack import SLOWDOWN, post

QUICK = ["--fleet-probe-interval", "150ms", "--fleet-probe-timeout", f"{int(400 * SLOWDOWN)}ms",
         "--fleet-scrape-interval", "100ms"]
# No probe is late, even on a busy machine.
CALM = [*QUICK, "--fleet-probe-timeout", "60s"]
BODY = {"model": "demo", "messages": [{"role": "user", "content": "hello"}], "max_tokens": 4}


def completion(first, count=80):
    return {"model": "demo", "max_tokens": 1, "prompt": list(range(first, first + count))}


def worker(stack, name):
    return next(w for w in stack.worker_states() if w["name"] == name)


def learn(stack, first=1000):
    """Sends a prompt and waits until the router knows its engine. Returns that engine's name."""
    answer = post(stack.port, completion(first), path="/v1/completions")
    assert answer.status == 200
    stack.wait_until(lambda: worker(stack, answer.worker)["blocks"] >= 5)
    return answer.worker


def front_of(fronts, name):
    return next(front for front in fronts if front.name == name)


def no_state_but(stack, *states):
    """Checks that the log has no other worker states."""
    log = stack.router.log_path.read_text()
    told = [line for line in log.splitlines() if "worker state" in line]
    bad = [line for line in told if not any(f'"{s}"' in line or f"={s}" in line for s in states)]
    assert not bad, bad


class Repeating:
    """Repeats an action in several threads while the block runs."""

    def __init__(self, action):
        self.action = action
        self.error = None
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._run) for _ in range(3)]

    def _run(self):
        try:
            while not self._stop.wait(0.01):
                self.action()
        except Exception as error:
            self.error = error

    def __enter__(self):
        for thread in self._threads:
            thread.start()

    def __exit__(self, *_):
        self._stop.set()
        for thread in self._threads:
            thread.join()
        assert self.error is None, self.error


@pytest.mark.parametrize("sign", ["answers", "events"])
def test_slow_probes_do_not_remove_a_serving_worker(build, logs, sign):
    patient = [*QUICK, "--fleet-probe-timeout", f"{int(1000 * SLOWDOWN)}ms"]
    with fronted(build, logs, 3, patient) as (stack, fronts):
        name = learn(stack)
        front = front_of(fronts, name)
        blocks = worker(stack, name)["blocks"]
        prompts = iter(range(2000, 1000000, 20))

        def answer():
            # Each engine gets its share of prompts that no engine holds.
            assert post(stack.port, completion(next(prompts), 20), path="/v1/completions").worker

        def event():
            # Past the router: it sees only the engine's events.
            post(front.target, completion(next(prompts), 20), path="/v1/completions")

        with Repeating(answer if sign == "answers" else event):
            asked = front.asked["/health"]
            front.silent.add("/health")
            stack.wait_until(lambda: front.asked["/health"] >= asked + 3)
            assert worker(stack, name)["state"] == "ready"
            assert worker(stack, name)["blocks"] >= blocks
        no_state_but(stack, "starting", "unverified", "ready")


def test_router_avoids_a_silent_worker_and_keeps_its_blocks(build, logs):
    with fronted(build, logs, 3, QUICK) as (stack, fronts):
        name = learn(stack)
        front = front_of(fronts, name)
        blocks = worker(stack, name)["blocks"]
        front.silent.add("/health")
        stack.wait_until(lambda: worker(stack, name)["state"] == "down")
        assert worker(stack, name)["reason"] == "no answer in time"
        assert worker(stack, name)["blocks"] == blocks
        assert post(stack.port, completion(1000), path="/v1/completions").worker != name
        front.silent.clear()
        stack.wait_until(lambda: worker(stack, name)["state"] == "ready")
        assert worker(stack, name)["blocks"] == blocks
        assert worker(stack, name)["events"]["connections_lost"] == 0
        assert worker(stack, name)["events"]["drops"] == 0


def test_workers_stay_routed_when_most_are_slow_together(build, logs):
    with fronted(build, logs, 3, QUICK) as (stack, fronts):
        name = learn(stack)
        for front in fronts:
            front.silent.add("/health")
        stack.wait_until(lambda: "sightline_workers_kept_routed 3\n" in stack.router_metrics())
        seen = {f.name: f.asked["/health"] for f in fronts}
        stack.wait_until(lambda: all(f.asked["/health"] > seen[f.name] + 1 for f in fronts))
        answer = post(stack.port, completion(1000), path="/v1/completions")
        assert answer.status == 200 and answer.worker == name and answer.overlap[0] >= 4
        left_alone = next(w for w in stack.worker_states() if w["name"] != name)
        assert left_alone["state"] == "ready"
        kept = "no answer in time: still gets requests, because most workers are slow"
        assert kept in left_alone["reason"]
        for front in fronts:
            front.silent.clear()
        stack.wait_until(lambda: "sightline_workers_kept_routed 0\n" in stack.router_metrics())
        stack.wait_until(lambda: all(w["reason"] is None for w in stack.worker_states()))
        log = stack.router.log_path.read_text()
        ends = log.count("slow workers get no more requests")
        assert log.count("they still get requests") == ends >= 1


@pytest.mark.parametrize("path,answer", [
    ("/kv_event_sources", (404, "{}")), ("/kv_event_sources", (200, "garbage")),
    ("/metrics", (404, "")), ("/metrics", (200, "vllm: \x01")), ("/v1/models", (404, "{}")),
    ("/v1/models", (401, '{"error":"Unauthorized"}')), ("/v1/models", (500, "")),
    ("/health", (401, "")),
])
def test_one_failing_endpoint_does_not_remove_a_worker(build, logs, path, answer):
    with fronted(build, logs, 1, CALM) as (stack, (front,)):
        name = learn(stack)
        blocks = worker(stack, name)["blocks"]
        front.answers[path] = answer
        asked = front.asked["/health"]
        stack.wait_until(lambda: front.asked["/health"] >= asked + 5)
        assert worker(stack, name)["state"] == "ready"
        assert worker(stack, name)["blocks"] == blocks
        assert post(stack.port, completion(1000), path="/v1/completions").overlap[0] >= 4
        no_state_but(stack, "starting", "unverified", "ready")


def test_slow_answer_does_not_blame_a_worker_that_answers_others(build, logs):
    release = threading.Event()

    def behave(connection, request):
        if b"slow" in request[3]:
            release.wait(60 * SLOWDOWN)
            return False
        return answer_ok(connection, request)

    flags = ["--fleet-request-timeout", "1s", *CALM]
    with router(build, logs, FakeEngine("only", behave), flags=flags) as stack:
        slow = {**BODY, "messages": [{"role": "user", "content": "slow"}]}
        with Repeating(lambda: post(stack.port, BODY)):
            for _ in range(2):
                assert post(stack.port, slow).status == 504
        release.set()
        no_state_but(stack, "starting", "unverified")


def test_request_that_makes_an_engine_hang_up_blames_no_worker(build, logs):
    def behave(connection, request):
        return b"broken" not in request[3] and answer_ok(connection, request)

    with router(build, logs, FakeEngine("only", behave), flags=CALM) as stack:
        for _ in range(3):
            assert post(stack.port, b"{\"input\":\"broken\"}", path="/v1/embeddings").status == 502
            assert post(stack.port, BODY).status == 200
            assert post(stack.port, b"{}", path="/v1/rerank").status == 200
        no_state_but(stack, "starting", "unverified")


def test_passed_answer_of_404_proves_that_the_worker_serves(build, logs):
    def behave(connection, _request):
        connection.sendall(b"HTTP/1.1 404 X\r\ncontent-length: 0\r\n\r\n")
        return True

    with router(build, logs, FakeEngine("only", behave), flags=CALM) as stack:
        for _ in range(3):
            assert post(stack.port, b"{}", path="/v1/rerank").status == 404
        no_state_but(stack, "starting", "unverified")


class Guarded(FakeEngine):
    """Requires its key on /v1 like vLLM, or on all paths."""

    def __init__(self, name, key, guards_all=False):
        super().__init__(name, answer_ok)
        self.key = key
        self.guards_all = guards_all
        self.keys_seen = set()

    def quiet_answer(self, path, headers):
        given = headers.get("authorization")
        self.keys_seen.add(given)
        guarded = self.guards_all or path.startswith("/v1")
        if guarded and given != f"Bearer {self.key}":
            return 401, '{"error":"Unauthorized"}'
        return super().quiet_answer(path, headers)


def models_of(stack):
    return json.loads(stack.get(stack.port, "/v1/models")[1])["data"]


@pytest.mark.parametrize("guards_all", [False, True])
def test_guarded_engine_is_routed_and_its_reason_names_the_fix(build, logs, guards_all):
    with router(build, logs, Guarded("only", "sk-1", guards_all), flags=QUICK) as stack:
        state = worker(stack, "only")
        assert state["state"] == "unverified"
        assert "/v1/models answers 401: give this worker api_key_file=FILE" in state["reason"]
        assert post(stack.port, BODY, headers={"authorization": "Bearer client"}).status == 200
        stack.wait_until(lambda: worker(stack, "only")["state"] == "unverified")


def test_router_uses_the_key_file_only_for_its_own_requests(build, logs, tmp_path):
    key = tmp_path / "key"
    engine = Guarded("only", "sk-right", guards_all=True)
    given = {**engine.worker, "api_key_file": str(key)}
    engine.__class__ = type("WithFile", (Guarded,), {"worker": given})
    with router(build, logs, engine, flags=QUICK) as stack:
        assert f"api_key_file={key} cannot be read" in worker(stack, "only")["reason"]
        key.write_text("sk-wrong\n")
        stack.wait_until(lambda: "is not the engine's" in worker(stack, "only")["reason"])
        key.write_text("sk-right\n")
        stack.wait_until(lambda: "api_key_file" not in worker(stack, "only")["reason"])
        assert worker(stack, "only")["reason"] == "the engine has no KV event source"
        assert [m["id"] for m in models_of(stack)] == ["demo"]
        # The engine refuses the old key once. Then the router reads the file again.
        engine.key = "sk-next"
        key.write_text("sk-next\n")
        stack.wait_until(lambda: "Bearer sk-next" in engine.keys_seen)
        stack.wait_until(lambda: "401" not in worker(stack, "only")["reason"])
        # Clients' own credentials pass unchanged, and the router adds no others.
        assert post(stack.port, BODY, headers={"authorization": "Bearer client"}).status == 200
        assert engine.requests[-1][2]["authorization"] == "Bearer client"
        assert post(stack.port, BODY).status == 200
        assert "authorization" not in engine.requests[-1][2]
        shown = stack.get(stack.admin_port, "/v1/workers")[1].decode() + stack.router_metrics()
        shown += stack.call("POST", stack.admin_port, "/v1/explain", json.dumps(BODY))[1].decode()
        arguments = [*map(str, stack.router.process.args), "--print-config"]
        shown += subprocess.run(arguments, capture_output=True, text=True, check=True).stdout
        assert str(key) in shown
        shown += stack.router.log_path.read_text()
        assert not {"sk-wrong", "sk-right", "sk-next"} & set(shown.replace('"', " ").split())
        assert "sk-" not in shown


def test_an_engine_that_streams_during_hung_probes_stays_routed(build, logs):
    release = threading.Event()

    class Busy(FakeEngine):
        hangs = False

        def quiet_answers(self):
            if self.hangs:
                release.wait(60 * SLOWDOWN)
            return super().quiet_answers()

    both = threading.Barrier(2)

    def drip(connection, _request):
        # Both requests must be placed first: the first one's prefill counts until its first token.
        both.wait(30 * SLOWDOWN)
        connection.sendall(stream_head())
        while not release.wait(0.02):
            connection.sendall(chunk(token_event("x")))
        connection.sendall(chunk("data: [DONE]\n\n") + b"0\r\n\r\n")
        return True

    engines = [Busy("a", drip), Busy("b", drip)]
    with router(build, logs, *engines, flags=QUICK) as stack:
        answers = []
        threads = [threading.Thread(
            target=lambda: answers.append(post(stack.port, {**BODY, "stream": True})))
            for _ in engines]
        for thread in threads:
            thread.start()
        stack.wait_until(lambda: all(engine.requests for engine in engines))
        started = stack.router.log_path.read_text().count("worker state")
        engines[0].hangs = True
        # One engine of two is a share that the router would leave out.
        stack.wait_until(lambda: len(stack.worker_states()) == 2)
        probes = 4 * (0.4 + 0.15) * SLOWDOWN
        threading.Event().wait(probes)
        assert stack.router.log_path.read_text().count("worker state") == started
        release.set()
        for thread in threads:
            thread.join()
        assert [answer.status for answer in answers] == [200, 200]
