# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""The order of preparation of some clients' long prompts and another client's short prompt."""

import http.client
import json
import threading

from fake_engine import FakeEngine, answer_ok, router
from stack import SLOWDOWN, post

LARGE = 6
PROMPTS = "/v1/completions"
ACTIVE = "sightline_requests_active"
ENDED = "sightline_requests_total"


class LongEngine(FakeEngine):
    """Accepts prompts of a million tokens."""

    def quiet_answers(self):
        answers = super().quiet_answers()
        status, models = answers["/v1/models"]
        models = json.loads(models)
        models["data"][0]["max_model_len"] = 1 << 20
        return {**answers, "/v1/models": (status, json.dumps(models))}


def hostile(i):
    """Returns 12 MB in which each byte is costly: a letter under marks that change their order."""
    prompt = f"{i}a" + "\u0301\u0316" * 3_000_000
    return json.dumps({"model": "demo", "max_tokens": 1, "prompt": prompt},
                      ensure_ascii=False).encode()


def ordinary():
    """Returns a prompt of 70 KB, which is too long for an I/O thread."""
    return json.dumps({"model": "demo", "max_tokens": 1, "prompt": "word " * 14_000}).encode()


def send(port, body):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120 * SLOWDOWN)
    connection.request("POST", PROMPTS, body, {"content-type": "application/json"})
    return connection


def test_router_prepares_an_ordinary_prompt_before_earlier_long_ones(build, logs):
    with router(build, logs, LongEngine("a", answer_ok),
                flags=["--compute-threads", 1]) as stack:
        connections = []
        senders = [threading.Thread(
            target=lambda i=i: connections.append(send(stack.port, hostile(i))))
            for i in range(LARGE)]
        for sender in senders:
            sender.start()
        for sender in senders:
            sender.join()
        stack.wait_until(lambda: stack.router_count(ACTIVE) >= LARGE - 1)
        ended_before = stack.router_count(ENDED)
        assert post(stack.port, ordinary(), path=PROMPTS).status == 200
        ended = stack.router_count(ENDED) - ended_before
        # The router does not prepare waiting prompts whose clients have left.
        for connection in connections:
            connection.close()
        stack.wait_until(lambda: stack.router_count(ACTIVE) == 0)
        # One more long prompt may begin before the ordinary one arrives.
        assert ended <= 3, "more than the ordinary prompt and the long ones in progress"
        left = stack.router_count("sightline_client_disconnects_total")
        assert left >= LARGE - ended_before - 3, "one was under way when the others' clients left"
