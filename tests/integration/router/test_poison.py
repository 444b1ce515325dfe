# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Requests that kill their engines, and how often the router sends a request again."""

import json
import threading

import openai
import pytest
from fake_engine import FakeEngine, answer_ok, response, router
from stack import SLOWDOWN, post


def chat(text):
    return {"model": "demo", "messages": [{"role": "user", "content": text}], "max_tokens": 4}


POISON = chat("poison")
ONE_THREAD = ["--io-threads", "1"]


class Mortal(FakeEngine):
    """Dies of poison: its process ends, or its supervisor restarts the process immediately."""

    def __init__(self, name, is_restarted=False):
        super().__init__(name, self.behave_or_die)
        self.is_restarted = is_restarted
        self.deaths = 0

    def behave_or_die(self, connection, request):
        if b"poison" not in request[3]:
            return answer_ok(connection, request)
        self.deaths += 1
        if not self.is_restarted:
            self.close()
        return False


def warm_up(stack, engines):
    """Leaves a kept connection to each engine, on the router's only I/O thread."""
    together = threading.Barrier(len(engines))
    for engine in engines:
        engine.behave = lambda connection, request: (
            together.wait(20 * SLOWDOWN), answer_ok(connection, request))[1]
    clients = [threading.Thread(target=post, args=(stack.port, chat("warm"))) for _ in engines]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    for engine in engines:
        engine.behave = engine.behave_or_die


def deaths(engines):
    return sum(engine.deaths for engine in engines)


def ask_sdk(stack, path="chat"):
    client = openai.OpenAI(base_url=f"http://127.0.0.1:{stack.port}/v1", api_key="none")
    assert client.max_retries == 2
    with pytest.raises(openai.APIStatusError) as failure:
        if path == "chat":
            client.chat.completions.create(**POISON)
        else:
            client.embeddings.create(model="demo", input="poison")
    return failure.value


@pytest.mark.parametrize("is_restarted", [False, True])
@pytest.mark.parametrize("is_warm", [False, True])
def test_a_poison_request_kills_two_of_six_engines(build, logs, is_warm, is_restarted):
    engines = [Mortal(name, is_restarted) for name in "abcdef"]
    with router(build, logs, *engines, flags=ONE_THREAD) as stack:
        if is_warm:
            warm_up(stack, engines)
        failure = ask_sdk(stack)
        assert deaths(engines) == 2
        assert failure.status_code == 502
        assert failure.response.headers["x-should-retry"] == "false"
        assert "not sent again" in failure.message
        # Clients that ignore the header get the same answer, and no engine gets the request.
        body = next(engine.requests[-1][3] for engine in engines if engine.deaths)
        for _ in range(3):
            again = post(stack.port, body)
            assert (again.status, again.headers["x-should-retry"]) == (502, "false")
            assert "not sent again" in json.loads(again.body)["error"]["message"]
        assert deaths(engines) == 2
        assert stack.router_count('sightline_lost_requests_total{outcome="stopped"}') == 1
        assert stack.router_count('sightline_lost_requests_total{outcome="refused"}') == 3
        # Other requests are served: another body of that length, and a shorter one.
        assert post(stack.port, body.replace(b"poison", b"poisom")).status == 200
        assert post(stack.port, chat("hello")).status == 200


def test_a_large_poison_request_kills_two_engines(build, logs):
    # A compute thread computes the id of a large request.
    engines = [Mortal(name) for name in "abcd"]
    body = json.dumps({**POISON, "padding": "x" * 4_000_000}).encode()
    with router(build, logs, *engines, flags=ONE_THREAD) as stack:
        for _ in range(3):
            answer = post(stack.port, body)
            assert (answer.status, answer.headers["x-should-retry"]) == (502, "false")
        assert deaths(engines) == 2
        assert stack.router_count('sightline_lost_requests_total{outcome="refused"}') == 2
        assert post(stack.port, body.replace(b"poison", b"poisom")).status == 200


def test_a_passed_poison_request_kills_at_most_two_engines(build, logs):
    engines = [Mortal(name) for name in "abcdef"]
    with router(build, logs, *engines) as stack:
        failure = ask_sdk(stack, "embeddings")
        assert deaths(engines) == 2
        assert failure.response.headers["x-should-retry"] == "false"
        assert post(stack.port, b'{"input":"fine","model":"demo"}',
                    path="/v1/embeddings").status == 200


def test_router_forgets_a_lost_request_after_an_answer(build, logs):
    lost = []

    def lose_the_first_of_each(connection, request):
        lost.append(request)
        return False if len(lost) % 2 else answer_ok(connection, request)

    engines = [FakeEngine(name, lose_the_first_of_each) for name in "ab"]
    with router(build, logs, *engines, flags=["--fleet-probe-interval", "1s"]) as stack:
        for _ in range(4):
            assert post(stack.port, chat("unlucky")).status == 200
        assert len(lost) == 8


def test_router_resends_after_a_closed_idle_connection_without_blame(build, logs):
    def close_when_kept(connection, request):
        sockets.append(connection)
        return sockets.count(connection) == 1 and answer_ok(connection, request)

    sockets = []
    a, b = (FakeEngine(name, close_when_kept) for name in "ab")
    with router(build, logs, a, b, flags=ONE_THREAD) as stack:
        for number in range(8):
            assert post(stack.port, chat(f"{number}")).status == 200
        assert {w["state"] for w in stack.worker_states()} == {"unverified"}
        # Each connection's second request was lost and sent again to the same engine.
        for engine in (a, b):
            bodies = [request[3] for request in engine.requests]
            assert all(bodies.count(body) == 2 for body in bodies[1:])
        assert len(a.requests) + len(b.requests) > 8


def test_a_dead_engine_with_a_kept_connection_is_one_loss(build, logs):
    class DiesOfTheFirst(Mortal):
        def behave_or_die(self, connection, request):
            return super().behave_or_die(connection, request) if not died else answer_ok(
                connection, request)

        def close(self):
            died.append(self.name)
            super().close()

    died = []
    engines = [DiesOfTheFirst(name) for name in "ab"]
    with router(build, logs, *engines, flags=ONE_THREAD) as stack:
        warm_up(stack, engines)
        answer = post(stack.port, POISON)
        assert answer.status == 200
        assert answer.headers["x-sightline-worker"] != died[0]


def test_an_engines_own_504_is_final(build, logs):
    def too_slow(connection, _request):
        connection.sendall(response(504, "upstream request timeout"))
        return True

    engines = [FakeEngine(name, too_slow) for name in "ab"]
    with router(build, logs, *engines) as stack:
        answer = post(stack.port, chat("long"))
        assert answer.status == 504
        assert json.loads(answer.body)["error"]["type"] == "TimeoutError"
        assert sum(len(engine.requests) for engine in engines) == 1
        assert "x-should-retry" not in answer.headers


def test_router_limits_concurrent_retries(build, logs):
    together = threading.Barrier(4)
    release = threading.Event()

    def drop_four_together(_connection, _request):
        together.wait(20 * SLOWDOWN)
        return False

    def answer_later(connection, request):
        release.wait(20 * SLOWDOWN)
        return answer_ok(connection, request)

    a, b = FakeEngine("a", drop_four_together), FakeEngine("b", answer_later)
    with router(build, logs, a, b) as stack:
        answers = []
        clients = [threading.Thread(target=lambda n=n: answers.append(
            post(stack.port, chat(f"{n}")))) for n in range(8)]
        # One after the other: each goes to the engine that has fewer requests.
        for n, client in enumerate(clients, start=1):
            client.start()
            stack.wait_until(lambda: len(a.requests) + len(b.requests) >= n)
        stack.wait_until(lambda: answers)
        stack.wait_until(lambda: len(b.requests) == 7)
        assert stack.router_count("sightline_retries_refused_total") == 1
        release.set()
        for client in clients:
            client.join()
        assert sorted(answer.status for answer in answers) == [200] * 7 + [502]
        assert "x-should-retry" not in answers[0].headers
        # The retries have ended, so there is room for others.
        a.behave = lambda _connection, _request: False
        assert post(stack.port, chat("one more")).status == 200
