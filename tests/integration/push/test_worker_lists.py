# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Worker lists pushed to a running router."""

import os
import pathlib
import time

import pytest
from fake_engine import FakeEngine, answer_ok
from pushes import TOKEN, chat, flags, list_of, names, pushed, put
from stack import SLOWDOWN, Stack, post

NEXT_TOKEN = "the-one-that-follows-it"


def test_push_answers_with_the_difference_or_the_held_list(build, logs, tokens):
    with Stack(build, engines=2, logs=logs, router_flags=flags(tokens)) as stack:
        first, second = stack.workers
        status, answer = put(stack, pushed(3, [first]))
        assert status == 200
        assert (answer["verdict"], answer["source"], answer["generation"]) == ("taken", "push", 3)
        assert answer["difference"] == {"added": [], "removed": ["w1"], "changed": [], "kept": 1}
        stack.wait_until(lambda: names(stack) == ["w0"])
        revision = stack.worker_states()[0]["revision"]

        status, again = put(stack, pushed(3, [first]))
        assert (status, again["verdict"]) == (200, "same")
        for body, part in ((pushed(2, [second]), "later generation: 3"),
                           (pushed(3, [second]), "another list of generation 3"),
                           (pushed(9, [second], "r2"), "another revision")):
            status, answer = put(stack, body)
            assert status == 409 and part in answer["error"]["message"]
            assert answer["held"] == {"source": "push", "revision": "0", "generation": 3,
                                      "digest": again["digest"], "count": 1}

        status, answer = put(stack, pushed(4, [second, {**first, "drain": True}]))
        assert status == 200
        assert answer["difference"] == {"added": ["w1"], "removed": [], "changed": ["w0"],
                                        "kept": 0}
        stack.wait_until(lambda: [w["state"] for w in stack.worker_states()]
                         == ["ready", "draining"])
        assert stack.worker_states()[1]["revision"] > revision
        assert post(stack.port, chat()).worker == "w1"
        held = list_of(stack)
        assert (held["source"], held["generation"], held["count"]) == ("push", 4, 2)
        assert held["pushed"]["workers"][0] == second
        metrics = stack.router_metrics()
        for result, count in (("taken", 2), ("same", 1), ("older", 1), ("forked", 1),
                              ("other-revision", 1)):
            counter = f'sightline_pushes_total{{what="workers",result="{result}"}}'
            assert f"{counter} {count}\n" in metrics
        assert "sightline_worker_list_generation 4\n" in metrics


def test_a_worker_in_both_lists_keeps_its_index(build, logs, tokens):
    with Stack(build, engines=2, logs=logs, router_flags=flags(tokens)) as stack:
        words = {"model": "demo", "max_tokens": 1, "prompt": list(range(1000, 1400))}
        holder = post(stack.port, words, path="/v1/completions").worker
        stack.wait_until_heard()
        other = next(w for w in stack.workers if w["name"] != holder)
        kept = next(w for w in stack.workers if w["name"] == holder)
        assert put(stack, pushed(1, [{**other, "drain": False}, kept]))[0] == 200
        again = post(stack.port, words, path="/v1/completions")
        assert again.worker == holder and again.overlap[0] > 20


def test_router_refuses_pushes_without_a_token_of_its_file(build, logs, tokens):
    engine = FakeEngine("a", answer_ok)
    with engine, Stack(build, workers=[engine.worker], ready_states=("unverified",), logs=logs,
                       router_flags=flags(tokens)) as stack:
        for token in (None, "", "a-token-of-another", TOKEN + "x", TOKEN[:-1]):
            for path in ("/v1/workers", "/v1/settings"):
                status, answer = put(stack, pushed(1, []), token, path)
                assert status == 401 and "--admin-token-file" in answer["error"]["message"]
        assert names(stack) == ["a"]
        # Rotation: while the file has both tokens, both are valid. Then only the new one is.
        generation = 0
        for content, good, bad in ((f"{TOKEN}\n{NEXT_TOKEN}\n", (TOKEN, NEXT_TOKEN), ()),
                                   (f"{NEXT_TOKEN}\n", (NEXT_TOKEN,), (TOKEN,))):
            fresh = tokens.with_name("fresh")
            fresh.write_text(content)
            os.replace(fresh, tokens)
            for token in bad:
                stack.wait_until(lambda: put(stack, "", token)[0] == 401)
            for token in good:
                generation += 1
                stack.wait_until(
                    lambda: put(stack, pushed(generation, [engine.worker]), token)[0] == 200)
        # With an unusable file every PUT is refused. GET needs no token.
        tokens.write_text("short\n")
        stack.wait_until(lambda: put(stack, "", NEXT_TOKEN)[0] == 401)
        assert list_of(stack)["generation"] == generation
        assert f'what="workers",result="unauthorized"}}' in stack.router_metrics()


def test_router_without_token_file_refuses_every_put(build, logs):
    engine = FakeEngine("a", answer_ok)
    with engine, Stack(build, workers=[engine.worker], ready_states=("unverified",),
                       logs=logs) as stack:
        for path in ("/v1/workers", "/v1/settings"):
            status, answer = put(stack, pushed(1, []), TOKEN, path)
            assert status == 403 and "--admin-token-file" in answer["error"]["message"]
        assert list_of(stack)["source"] == "file"
        assert stack.get(stack.admin_port, "/v1/settings")[0] == 200


def test_router_rejects_a_malformed_list_and_names_the_error(build, logs, tokens):
    engine = FakeEngine("a", answer_ok)
    good = {"name": "b", "url": "http://127.0.0.1:1"}
    with engine, Stack(build, workers=[engine.worker], ready_states=("unverified",), logs=logs,
                       router_flags=flags(tokens)) as stack:
        cases = [(pushed(1, [good, {**good, "name": name}]), 400, "workers[1]")
                 for name in ("a/../b", "x" * 64, "tab\there", "w*", ".>", "ü", "", "nul\0")]
        cases += [
            (pushed(1, [{**good, "api_key_file": "/etc/hostname"}]), 400, "must not name a file"),
            (pushed(1, [{**good, "url": "http://[::1"}]), 400, "workers[0]"),
            (pushed(1, [{**good, "typo": 1}]), 400, "workers[0]"),
            (pushed(0, [good]), 400, "generation"),
            (pushed(1, [good] * 10_001), 413, "more than 10000"),
            (" " * (4 << 20) + "{}", 413, "more than 4194304 bytes"),
            ("x" * (65 << 20), 413, ""),
            ("{", 400, ""),
            ("[" * 100_000, 413, ""),
            (b"\xff\xfe{}", 400, ""),
        ]
        for body, want_status, part in cases:
            status, answer = put(stack, body)
            shown = str(body)[:80]
            assert status == want_status and part in answer["error"]["message"], (shown, answer)
        assert names(stack) == ["a"]
        assert list_of(stack)["source"] == "file"


def test_file_changes_after_a_push_change_no_worker(build, logs, tokens, tmp_path):
    engines = [FakeEngine(name, answer_ok) for name in "abc"]
    config = tmp_path / "router.yaml"

    def write(workers):
        lines = [f"  - {{name: {w['name']}, url: \"{w['url']}\"}}\n" for w in workers]
        fresh = tmp_path / "fresh.yaml"
        fresh.write_text("workers:\n" + "".join(lines))
        os.replace(fresh, config)

    def reloads(stack, result):
        return stack.router_count(f'sightline_config_reloads_total{{result="{result}"}}')

    a, b, c = [engine.worker for engine in engines]
    write([a])
    with engines[0], engines[1], engines[2], \
            Stack(build, workers=[], ready_states=("unverified",), logs=logs,
                  router_flags=flags(tokens, "--config", config)) as stack:
        stack.wait_until(lambda: names(stack) == ["a"])
        write([b])
        stack.wait_until(lambda: reloads(stack, "applied") == 1 and names(stack) == ["b"])
        assert put(stack, pushed(1, [c]))[0] == 200
        stack.wait_until(lambda: names(stack) == ["c"])
        for turn, workers in enumerate(([a], [a, b]), 1):
            write(workers)
            stack.wait_until(lambda: reloads(stack, "outranked") == turn)
        assert names(stack) == ["c"]
        assert stack.router.log().count("its workers are ignored") == 2


def test_pushed_worker_gets_its_key_from_the_file_by_url(build, logs, tokens, tmp_path):
    class KeyedEngine(FakeEngine):
        keys = None

        def quiet_answer(self, path, headers):
            self.keys = (self.keys or set()) | {headers.get("authorization")}
            return super().quiet_answer(path, headers)

    key = tmp_path / "key"
    key.write_text("secret-of-the-engine")
    known, other = KeyedEngine("known", answer_ok), KeyedEngine("other", answer_ok)
    with known, other, Stack(build, workers=[{**known.worker, "api_key_file": key}], logs=logs,
                             ready_states=("unverified",), router_flags=flags(tokens)) as stack:
        assert put(stack, pushed(1, [{**known.worker, "name": "x"},
                                     {**other.worker, "name": "known"}]))[0] == 200
        known.keys = None
        stack.wait_until(lambda: known.keys and other.keys)
        assert known.keys == {"Bearer secret-of-the-engine"}
        assert other.keys == {None}


def test_router_without_workers_waits_for_a_push(build, logs, tokens):
    with Stack(build, engines=1, logs=logs, router_flags=flags(tokens)) as stack:
        workers = stack.workers
        stack.router.stop()
        stack.workers = []
        stack.start_router()
        status, text = stack.get(stack.admin_port, "/readyz?verbose")
        assert status == 503 and b"[-] workers: no worker list: flags, environment and file" in text
        assert put(stack, pushed(1, workers))[0] == 200
        stack.wait_until(lambda: stack.get(stack.admin_port, "/readyz")[0] == 200)
        text = stack.get(stack.admin_port, "/readyz?verbose")[1].decode()
        assert "[+] workers: 1 pushed, generation 1\n" in text and "[+] learnt\n" in text


def memory_bytes(stack):
    status = pathlib.Path(f"/proc/{stack.router.process.pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) << 10


@pytest.mark.alone
def test_router_accepts_and_drops_ten_thousand_workers(build, logs, tokens):
    engine = FakeEngine("a", answer_ok)
    with engine, Stack(build, workers=[engine.worker], ready_states=("unverified",), logs=logs,
                       router_flags=["--admin-token-file", tokens, "--fleet-probe-interval", "60s",
                                     "--log-level", "warn"]) as stack:
        port = engine.port  # one server accepts the connections of all workers
        many = [{"name": f"w{i}", "url": f"http://127.0.{i // 250}.{i % 250 + 1}:{port}"}
                for i in range(10_000)]
        before = memory_bytes(stack)
        begin = time.monotonic()
        status, answer = put(stack, pushed(1, many))
        answered = time.monotonic() - begin
        assert (status, len(answer["difference"]["added"])) == (200, 10_000)
        stack.wait_until(lambda: len(names(stack)) == 10_000, seconds=60)
        listed = time.monotonic() - begin
        grown = memory_bytes(stack) - before
        assert post(stack.port, chat()).status in (200, 503)
        begin = time.monotonic()
        assert put(stack, pushed(2, [engine.worker]))[0] == 200
        stack.wait_until(lambda: names(stack) == ["a"], seconds=60)
        gone = time.monotonic() - begin
        print(f"answered after {answered:.2f} s, listed after {listed:.2f} s, "
              f"{grown / 10_000:.0f} bytes a worker; dropped after {gone:.2f} s")
        assert answered < 5 * SLOWDOWN
        # Instrumented programs also keep shadow memory.
        assert grown < 10_000 * 40_000 * SLOWDOWN
        stack.wait_until(lambda: post(stack.port, chat()).status == 200)
