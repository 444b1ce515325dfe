# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""The admin port, while some of its requests take long."""

import json
import socket
import threading

from fake_engine import FakeEngine, answer_ok
from pictures import text_part
from stack import SLOWDOWN, Stack, post

EXPLAINS_MAX = 16


class ProbedEngine(FakeEngine):
    """Counts the router's probes."""

    asked = 0

    def quiet_answers(self):
        self.asked += 1
        return super().quiet_answers()


def test_explain_requests_that_wait_block_nothing_else(build, logs):
    engine = ProbedEngine("a", answer_ok)
    flags = ["--media-allow-private-addresses", "--media-fetch-timeout", "300s",
             "--fleet-probe-interval", "100ms"]
    with socket.create_server(("127.0.0.1", 0), backlog=64) as silent, engine, \
            Stack(build, workers=[engine.worker], ready_states=("unverified",), logs=logs,
                  router_flags=flags) as stack:
        silent.settimeout(30 * SLOWDOWN)
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/p.png"
        image = {"type": "image_url", "image_url": {"url": url}}
        body = {"model": "demo", "messages": [{"role": "user", "content": [image, text_part("x")]}]}
        answers = []
        threads = [threading.Thread(target=lambda: answers.append(
            post(stack.admin_port, body, path="/v1/explain"))) for _ in range(EXPLAINS_MAX)]
        for thread in threads:
            thread.start()
        downloads = [silent.accept()[0] for _ in threads]

        assert stack.get(stack.admin_port, "/healthz")[0] == 200
        asked = engine.asked
        stack.wait_until(lambda: engine.asked > asked + 20)
        assert stack.worker_states()[0]["state"] == "unverified"
        refused = post(stack.admin_port, body, path="/v1/explain")
        assert refused.status == 503 and "16" in json.loads(refused.body)["error"]["message"]
        assert 'sightline_limit_hits_total{limit="explains"} 1' in stack.router_metrics()

        silent.close()  # the port refuses a second attempt
        for download in downloads:
            download.close()
        for thread in threads:
            thread.join()
        assert [a.status for a in answers] == [answers[0].status] * EXPLAINS_MAX
        assert answers[0].status in (400, 422)
        assert post(stack.admin_port, {"prompt": "x"}, path="/v1/explain").status == 200


def test_explain_counts_all_prompts_of_a_batch(build, logs):
    def raw_prefill_blocks(stack, prompt):
        answer = post(stack.admin_port, {"model": "demo", "prompt": prompt}, path="/v1/explain")
        explained = json.loads(answer.body)
        return explained["workers"][0]["terms"]["raw_prefill_blocks"]

    text = "the kettle is on the stove and sings " * 200
    with Stack(build, engines=1, whole_tokenizer=True, logs=logs) as stack:
        one = raw_prefill_blocks(stack, text)
        batch = raw_prefill_blocks(stack, ["hi"] + [text] * 50)
        assert 40 * one < batch < 80 * one
        ids = list(range(10_000, 12_000))
        batch_of_ids = raw_prefill_blocks(stack, [[1]] + [ids] * 50)
        assert 40 * 125 < batch_of_ids < 80 * 125
        # The tokens of the first prompt decide the overlap of a batch.
        assert post(stack.port, {"model": "demo", "prompt": ids[:64], "max_tokens": 1},
                    path="/v1/completions").status == 200
        stack.wait_until_heard()
        answer = post(stack.admin_port, {"model": "demo", "prompt": [ids[:64], ids]},
                      path="/v1/explain")
        assert json.loads(answer.body)["workers"][0]["overlap_blocks"] == 3


def readiness(stack, query=""):
    status, body = stack.get(stack.admin_port, "/readyz?verbose" + query)
    return status, body.decode().splitlines()


def test_router_is_ready_while_a_worker_can_take_requests(build, logs):
    engine = FakeEngine("a", answer_ok)
    with engine, Stack(build, workers=[engine.worker], ready_states=("unverified",), logs=logs,
                       router_flags=["--fleet-probe-interval", "100ms"]) as stack:
        known = ["[+] workers: 1 from flags, environment and file", "[+] learnt"]
        assert readiness(stack) == (
            200, ["[+] model", "[+] listening", "[+] engines", *known, "ready"])
        engine.close()
        stack.wait_until(lambda: stack.worker_states()[0]["state"] == "down")
        status, lines = readiness(stack)
        assert (status, lines[5]) == (503, "not ready")
        engines = "[-] engines: 0 of 1 workers may take a request. Worker a is down: "
        assert lines[2].startswith(engines)
        assert readiness(stack, "&exclude=engines") == (
            200, ["[+] model", "[+] listening", "[+] engines excluded", *known, "ready"])
        assert stack.get(stack.admin_port, "/healthz")[0] == 200
        assert stack.get(stack.port, "/health")[0] == 200


def test_router_without_workers_is_ready_if_engines_are_excluded(build, logs):
    file = logs / "none.yaml"
    logs.mkdir(parents=True, exist_ok=True)
    file.write_text("workers: []\n")
    with Stack(build, workers=[], logs=logs, router_flags=["--config", file]) as stack:
        status, lines = readiness(stack)
        assert status == 503 and "[-] engines: 0 of 0 workers may take a request" in lines
        assert readiness(stack, "&exclude=engines")[0] == 200
