# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Engines with several data-parallel ranks behind one URL, checked with the engines' counters."""

import collections
import contextlib
import http.client
import json
import random
import re
import socket
import threading

import pytest
from fake_engine import FakeEngine, answer_ok, bound_to
from pictures import png
from predictions import BLOCK, cached, picture_body, predicted, reusable, send_all
from stack import SLOWDOWN, Stack, post
from truth import Names

ENGINES = 2
RANKS = 2
ENGINE_FLAGS = ["--blocks", "16384", "--block-size", str(BLOCK), "--data-parallel-size", RANKS]


def completion(first, blocks=4):
    tokens = [first] + list(range(3000, 3000 + blocks * BLOCK))
    return {"model": "demo", "max_tokens": 1, "prompt": tokens}


def rank_of(answer):
    return answer.headers.get("x-sightline-dp-rank")


def by_rank(stack, name):
    """Returns a counter of all engines: (worker, rank) -> value."""
    values = {}
    for i, worker in enumerate(stack.workers):
        page = stack.get(stack.engine_port(i), "/metrics")[1].decode()
        for rank, value in re.findall(rf'^{name}{{engine="(\d+)"[^}}]*}} (\S+)$', page, re.M):
            values[worker["name"], rank] = float(value)
    return values


def ranks_of(stack, worker=0):
    return stack.worker_states()[worker]["ranks"]


@pytest.fixture(scope="module")
def stack(build, shared_logs):
    with Stack(build, engines=ENGINES, engine_flags=ENGINE_FLAGS,
               logs=shared_logs / "ranks") as running:
        yield running


def test_second_pass_over_images_finds_99_percent_of_reusable_blocks(stack):
    pictures = [png(448, 448, seed=i) for i in range(300)]
    first = send_all(stack, [picture_body(p) for p in pictures])
    stack.wait_until_heard()
    before = by_rank(stack, "vllm:prefix_cache_hits_total")
    random.Random(2).shuffle(pictures)
    answers = send_all(stack, [picture_body(p) for p in pictures])
    after = by_rank(stack, "vllm:prefix_cache_hits_total")
    hits = sum(after.values()) - sum(before.values())
    assert hits >= 0.99 * reusable(answers)
    assert all(predicted(a) <= cached(a) for a in answers)
    found = collections.Counter()
    for answer in answers:
        found[answer.worker, rank_of(answer)] += cached(answer)
    assert {unit: after[unit] - before[unit] for unit in after} == found
    # Each rank got its share, and every request reached the rank that the router reports.
    sent = collections.Counter((a.worker, rank_of(a)) for a in first + answers)
    assert len(sent) == ENGINES * RANKS and min(sent.values()) >= 75, sent
    assert by_rank(stack, "sl_sim_requests_total") == sent


def test_index_of_each_rank_equals_its_cache(stack):
    send_all(stack, [picture_body(png(224, 224, seed=7000 + i)) for i in range(40)])
    stack.wait_until_heard()
    names = Names(stack.build, stack.name)
    for i, worker in enumerate(stack.workers):
        path = f"/v1/index?worker={worker['name']}"
        claimed = json.loads(stack.get(stack.admin_port, path)[1])["ranks"]
        assert [entry["rank"] for entry in claimed] == list(range(RANKS))
        for entry in claimed:
            path = f"/sim/blocks?rank={entry['rank']}"
            held = json.loads(stack.get(stack.engine_port(i), path)[1])["blocks"]
            assert entry["counts"] and set(entry["blocks"]) == names.of(held) and len(held) > 40
    names.close()


def test_a_client_cannot_choose_the_rank(stack):
    for header in ("0", "7", "first"):
        answer = post(stack.port, completion(1), path="/v1/completions",
                      headers={"X-data-parallel-rank": header})
        assert answer.status == 200, answer.body
        stack.wait_until_heard()
        again = post(stack.port, completion(1), path="/v1/completions",
                     headers={"X-data-parallel-rank": str(1 - int(rank_of(answer)))})
        assert rank_of(again) == rank_of(answer) and predicted(again) == cached(again) > 0


def test_explain_log_and_answer_name_the_same_rank(stack):
    send_all(stack, [picture_body(png(336, 336, seed=4242))])
    stack.wait_until_heard()
    body = picture_body(png(336, 336, seed=4242))
    plan = json.loads(post(stack.admin_port, body, path="/v1/explain").body)
    assert [(w["name"], w["rank"]) for w in plan["workers"]] == [
        (f"w{i}", r) for i in range(ENGINES) for r in range(RANKS)]
    answer = post(stack.port, body, headers={"x-request-id": "which-rank"})
    assert (answer.worker, rank_of(answer)) == (plan["choice"], str(plan["choice_rank"]))
    chosen = [w for w in plan["workers"] if w["overlap_blocks"] > 0]
    assert [(w["name"], w["rank"]) for w in chosen] == [(plan["choice"], plan["choice_rank"])]
    assert chosen[0]["overlap_blocks"] == answer.overlap[0]

    def line():
        return re.search(r"Best: worker_(\S+) dp_rank=(\d+) with (\d+)/\d+ blocks overlap"
                         r".*request_id=which-rank", stack.router.log())

    stack.wait_until(line)
    assert line().groups() == (answer.worker, rank_of(answer), str(answer.overlap[0]))


def begin_stream(stack, body):
    """Returns (connection, rank) of a stream that has begun. To end it, close the connection."""
    connection = http.client.HTTPConnection("127.0.0.1", stack.port, timeout=30 * SLOWDOWN)
    connection.request("POST", "/v1/completions", json.dumps({**body, "stream": True}),
                       {"content-type": "application/json"})
    response = connection.getresponse()
    assert response.status == 200
    return connection, response.headers["x-sightline-dp-rank"]


def test_running_requests_count_for_their_own_rank(build, logs):
    flags = ENGINE_FLAGS + ["--decode-tokens-per-s", "20"]
    with Stack(build, engines=1, engine_flags=flags, logs=logs,
               router_flags=["--fleet-scrape-interval", "50ms"]) as slow:
        streams = [begin_stream(slow, {**completion(i), "max_tokens": 20_000}) for i in (1, 2)]
        assert {rank for _, rank in streams} == {"0", "1"}
        assert [r["in_flight"] for r in ranks_of(slow)] == [1, 1]
        slow.wait_until(lambda: [r["running"] for r in ranks_of(slow)] == [1, 1])
        assert 'sightline_worker_inflight{worker="w0"} 2\n' in slow.router_metrics()
        for connection, _ in streams:
            connection.close()
        slow.wait_until(lambda: [r["in_flight"] for r in ranks_of(slow)] == [0, 0])
        slow.wait_until(lambda: [r["running"] for r in ranks_of(slow)] == [0, 0])


def test_passed_requests_go_to_a_rank_too(stack):
    answer = post(stack.port, {"input": "x"}, path="/v1/embeddings")
    assert answer.status == 404 and rank_of(answer) in ("0", "1")


class Relay:
    """A TCP port in front of another port. It can be cut off."""

    def __init__(self, target, keeper):
        self.target = target
        # Bound but not listening: no other process gets the relay's port while it is cut off.
        self.keeper = keeper
        self.port = keeper.getsockname()[1]
        self.listener = None
        self.open = []
        self.lock = threading.Lock()

    def listen(self):
        self.listener = socket.create_server(("127.0.0.1", self.port))
        threading.Thread(target=self._accept, args=(self.listener,), daemon=True).start()

    def cut(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        with self.lock:
            for end in self.open:
                end.close_both()
            self.open.clear()

    def _accept(self, listener):
        while True:
            try:
                near = listener.accept()[0]
            except OSError:
                return
            pipe = Pipe(near, socket.create_connection(("127.0.0.1", self.target)))
            with self.lock:
                self.open.append(pipe)


class Pipe:
    def __init__(self, near, far):
        self.ends = near, far
        for a, b in ((near, far), (far, near)):
            threading.Thread(target=self._copy, args=(a, b), daemon=True).start()

    def _copy(self, source, sink):
        try:
            while (content := source.recv(65536)):
                sink.sendall(content)
        except OSError:
            pass
        self.close_both()

    def close_both(self):
        for end in self.ends:
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


def bound_in_a_row(count):
    """Returns sockets that are bound to this many consecutive ports."""
    for _ in range(100):
        first = 0
        with contextlib.ExitStack() as attempt:
            bound = []
            try:
                for i in range(count):
                    bound.append(attempt.enter_context(bound_to(first + i if first else 0)))
                    first = first or bound[0].getsockname()[1]
            except OSError:
                continue
            attempt.pop_all()
            return bound
    raise RuntimeError("no free ports in a row")


def test_a_rank_without_events_has_no_overlap_until_they_return(build, logs):
    with Stack(build, engines=1, engine_flags=ENGINE_FLAGS, logs=logs) as stack:
        sources = json.loads(stack.get(stack.engine_port(0), "/kv_event_sources")[1])
        relays = []
        for rank, keeper in enumerate(bound_in_a_row(RANKS)):
            engine_port = int(sources[str(rank)]["endpoint"].rsplit(":", 1)[1])
            relays.append(Relay(engine_port, keeper))
            relays[rank].listen()
        # The same engine with given endpoints: those of the first rank, then ports counting up.
        stack.router.stop()
        stack.workers[0].update(events=f"tcp://127.0.0.1:{relays[0].port}", dp=RANKS)
        stack.start_router()
        # Images so large that recent work, not the random draw, sends some to each rank.
        bodies = [picture_body(png(896, 896, seed=i)) for i in range(8)]
        answers = send_all(stack, bodies, parallel=1)
        stack.wait_until_heard()
        assert {rank_of(a) for a in answers} == {"0", "1"}
        relays[1].cut()
        stack.wait_until(lambda: ranks_of(stack)[1]["state"] == "unverified")
        assert ranks_of(stack)[1]["reason"]
        line = "rank state worker=w0 rank=1 state=unverified"
        stack.wait_until(lambda: line in stack.router.log())
        listed = json.loads(stack.get(stack.admin_port, "/v1/index?worker=w0")[1])
        assert [entry["counts"] for entry in listed["ranks"]] == [True, False]
        assert ranks_of(stack)[0]["state"] == stack.worker_states()[0]["state"] == "ready"
        for body, before in zip(bodies, answers):
            plan = json.loads(post(stack.admin_port, body, path="/v1/explain").body)
            overlap = {w["rank"]: w["overlap_blocks"] for w in plan["workers"]}
            assert overlap[1] == 0 and (overlap[0] > 0) == (rank_of(before) == "0")
        assert all(predicted(a) <= cached(a) for a in send_all(stack, bodies, parallel=1))
        relays[1].listen()
        stack.wait_until(lambda: ranks_of(stack)[1]["state"] == "ready")
        stack.wait_until_heard()
        again = send_all(stack, bodies, parallel=1)
        assert all(predicted(a) == cached(a) > 0 for a in again)


def test_router_excludes_a_worker_with_a_wrong_number_of_ranks(build, logs):
    with Stack(build, engines=1, engine_flags=ENGINE_FLAGS, worker_extra=",dp=3",
               ready_states=("excluded",), logs=logs) as stack:
        worker = stack.worker_states()[0]
        assert "2 data-parallel ranks, but this worker has dp=3" in worker["reason"]
        assert 'sightline_rank_mismatch_total{worker="w0"} 1\n' in stack.router_metrics()
        answers = send_all(stack, [picture_body(png(224, 224, seed=1))] * 4, parallel=1)
        assert all(a.overlap[0] == 0 and rank_of(a) is None for a in answers)


class FakeRanks(FakeEngine):
    """Reports two ranks in its metrics. The second rank has more load."""

    def quiet_answers(self):
        lines = [f'vllm:num_requests_{what}{{engine="{rank}"}} {rank * 3}.0'
                 for what in ("running", "waiting") for rank in range(RANKS)]
        metrics = "\n".join(lines) + "\n"
        return {**super().quiet_answers(), "/metrics": (200, metrics)}


def test_request_that_fails_on_a_rank_goes_to_another_worker(build, logs):
    def die(_connection, _request):
        return False

    with FakeRanks("bad", die) as bad, FakeEngine("good", answer_ok) as good:
        with Stack(build, workers=[bad.worker, good.worker], ready_states=("unverified",),
                   router_flags=["--routing-policy", "round-robin"], logs=logs) as stack:
            load = [(r["rank"], r["running"], r["waiting"]) for r in ranks_of(stack)]
            assert load == [(0, 0, 0), (1, 3, 3)]
            for _ in range(3):
                body = {"model": "demo", "messages": [{"role": "user", "content": "hello"}]}
                answer = post(stack.port, body, headers={"X-data-parallel-rank": "5"})
                assert answer.status == 200 and answer.worker == "good"
                assert rank_of(answer) is None, "a worker with one rank gets no rank"
            tried = [headers["x-request-id"] for _, _, headers, _ in bad.requests]
            assert tried and len(set(tried)) == len(tried), "the failed worker got a request twice"
            assert bad.requests[0][2]["x-data-parallel-rank"] in ("0", "1")
            assert all("x-data-parallel-rank" not in request[2] for request in good.requests)
