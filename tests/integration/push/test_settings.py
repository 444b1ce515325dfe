# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Pushes change settings while the router runs."""

import socket
import threading

from fake_engine import FakeEngine, answer_ok
from pictures import image_part, png, text_part
from pushes import chat, flags, put, put_settings, settings_of
from stack import SLOWDOWN, Stack, post

def ask(stack, first=2000):
    prompt = {"model": "demo", "max_tokens": 1, "prompt": list(range(first, first + 400))}
    answer = post(stack.port, prompt, path="/v1/completions")
    assert answer.status == 200
    stack.wait_until_heard()
    return answer.worker


def test_pushed_policy_applies_to_the_next_request_until_removed(build, logs, tokens):
    with Stack(build, engines=2, logs=logs, router_flags=flags(tokens)) as stack:
        holder = ask(stack)
        assert {ask(stack) for _ in range(6)} == {holder}
        status, answer = put_settings(stack, {"routing.policy": "round-robin"})
        assert status == 200 and answer == {
            "changed": [{"name": "routing.policy", "before": "kv", "after": "round-robin"}],
            "pushed": ["routing.policy"]}
        turns = [ask(stack) for _ in range(6)]
        assert sorted(turns) == ["w0"] * 3 + ["w1"] * 3
        row = settings_of(stack)["routing.policy"]
        assert (row["value"], row["origin"], row["live"]) == ("round-robin", "push", True)
        assert "sightline_settings_pushed 1\n" in stack.router_metrics()
        assert put_settings(stack, {})[1]["changed"][0]["after"] == "kv"
        assert len({ask(stack, 5000) for _ in range(4)}) == 1
        assert settings_of(stack)["routing.policy"]["origin"] == "default"


def test_router_rejects_a_push_with_one_wrong_setting(build, logs, tokens):
    engine = FakeEngine("a", answer_ok)
    with engine, Stack(build, workers=[engine.worker], ready_states=("unverified",), logs=logs,
                       router_flags=flags(tokens, "--media-images-max", "7")) as stack:
        before = settings_of(stack)
        for wrong, part in (({"routing.overlap_credit": 11}, "0..10"),
                            ({"server.port": 1}, "server.port cannot change"),
                            ({"identity.key_file": "/etc/hostname"}, "files of this machine"),
                            ({"media.allow_private_addresses": True}, "network of this machine"),
                            ({"workers": "url=http://h:1"}, "PUT /v1/workers"),
                            ({"routing.polcy": "kv"}, "did you mean 'routing.policy'"),
                            ({"log.level": None}, "must be a string")):
            status, answer = put_settings(stack, {"routing.policy": "random", **wrong})
            assert status == 400 and part in answer["error"]["message"], answer
        assert put(stack, "{", path="/v1/settings")[0] == 400
        assert put(stack, " " * (65 << 10), path="/v1/settings")[0] == 413
        assert settings_of(stack) == before
        assert before["media.images_max"]["origin"] == "flag --media-images-max"
        assert before["admin.token_file"]["value"] == str(tokens)
        assert not before["admin.token_file"]["live"]


def test_pushed_request_limits_apply_to_the_next_request(build, logs, tokens):
    picture = image_part(png(64, 64, seed=1))
    with Stack(build, engines=1, logs=logs, router_flags=flags(tokens)) as stack:
        def asked(content):
            return post(stack.port, chat(content)).status

        two = [picture, picture, text_part("and?")]
        assert asked(two) == 200
        assert put_settings(stack, {"media.images_max": 1})[0] == 200
        assert asked(two) == 400
        assert put_settings(stack, {"media.image_bytes_max": 1024})[0] == 200
        assert asked([image_part(bytes(2048))]) == 413
        assert put_settings(stack, {"model.max_model_len": 100})[0] == 200
        assert asked("word " * 300) == 400
        assert put_settings(stack, {})[0] == 200
        assert asked("word " * 300) == 200 and asked(two) == 200


def test_pushed_concurrency_limit_applies_immediately(build, logs, tokens):
    begun, go_on = threading.Semaphore(0), threading.Event()

    def held(connection, request):
        begun.release()
        go_on.wait(30 * SLOWDOWN)
        return answer_ok(connection, request)

    engine = FakeEngine("a", held)
    with engine, Stack(build, workers=[engine.worker], ready_states=("unverified",), logs=logs,
                       router_flags=flags(tokens)) as stack:
        first = threading.Thread(target=post, args=(stack.port, chat()))
        first.start()
        assert begun.acquire(timeout=30 * SLOWDOWN)
        assert put_settings(stack, {"server.concurrent_requests_max": 1})[0] == 200
        assert post(stack.port, chat()).status == 503
        assert put_settings(stack, {"server.concurrent_requests_max": 2})[0] == 200
        second = threading.Thread(target=post, args=(stack.port, chat()))
        second.start()
        assert begun.acquire(timeout=30 * SLOWDOWN)
        go_on.set()
        first.join()
        second.join()


def test_pushed_fetch_timeout_applies_to_the_next_download(build, logs, tokens):
    more = flags(tokens, "--media-allow-private-addresses")
    with socket.create_server(("127.0.0.1", 0)) as silent, \
            Stack(build, engines=1, logs=logs, router_flags=more) as stack:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/p.png"
        image = {"type": "image_url", "image_url": {"url": url}}
        assert put_settings(stack, {"media.fetch_timeout": "300ms"})[0] == 200
        answer = post(stack.port, chat([image]))
        assert answer.status == 408
        assert b"300 ms" in answer.body


def test_pushed_log_level_applies_immediately(build, logs, tokens):
    engine = FakeEngine("a", answer_ok)
    with engine, Stack(build, workers=[engine.worker], ready_states=("unverified",), logs=logs,
                       router_flags=flags(tokens)) as stack:
        # The router logs each change as an info line before it answers.
        assert put_settings(stack, {"log.level": "error"})[0] == 200
        assert put_settings(stack, {"log.level": "error", "routing.policy": "random"})[0] == 200
        assert put_settings(stack, {})[0] == 200
        stack.wait_until(lambda: "name=routing.policy before=random" in stack.router.log())
        assert "after=random" not in stack.router.log()
