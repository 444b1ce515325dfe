# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Routing compared with the engines' own counters: reuse, exactness, no false claims, balance."""

import collections
import concurrent.futures
import json
import random
import struct
import zlib

import pytest
from pictures import image_part, png, text_part
from predictions import BLOCK, cached, picture_body, predicted, reusable, send_all
from stack import SLOWDOWN, Stack, post

ENGINES = 4
ENGINE_FLAGS = ["--blocks", "32768", "--block-size", str(BLOCK)]
DISTINCT = 10_000 if SLOWDOWN == 1 else 1_000


@pytest.fixture(scope="module")
def stack(build, shared_logs):
    with Stack(build, engines=ENGINES, engine_flags=ENGINE_FLAGS, whole_tokenizer=True,
               logs=shared_logs / "routing_truth") as running:
        yield running


def check_second_pass(stack, count):
    """Sends all images twice, in two orders. Compares the reuse with the engines' counters."""
    pictures = [png(448, 448, seed=i) for i in range(count)]
    random.Random(1).shuffle(pictures)
    send_all(stack, [picture_body(p) for p in pictures])
    stack.wait_until_heard()
    before = [stack.engine_metrics(i) for i in range(ENGINES)]
    random.Random(2).shuffle(pictures)
    answers = send_all(stack, [picture_body(p) for p in pictures])
    after = [stack.engine_metrics(i) for i in range(ENGINES)]
    name = "vllm:prefix_cache_hits_total"
    hits = sum(a[name] - b[name] for a, b in zip(after, before))
    assert hits >= 0.99 * reusable(answers)
    # The engines' counters and their answers agree.
    assert hits == sum(cached(a) for a in answers)
    assert all(predicted(a) <= cached(a) for a in answers)


def test_second_pass_over_images_finds_99_percent_of_reusable_blocks(stack):
    check_second_pass(stack, 1000)


def test_second_pass_finds_as_much_while_engines_compute(build, logs):
    # 16 clients keep about four prompts in flight on each engine, 28 ms each.
    with Stack(build, engines=ENGINES, logs=logs,
               engine_flags=ENGINE_FLAGS + ["--prefill-tokens-per-s", "10000"]) as slow:
        check_second_pass(slow, 400)


def test_an_image_with_one_changed_byte_claims_no_block(stack):
    base = png(448, 448, seed=123456)
    send_all(stack, [picture_body(base)])
    stack.wait_until_heard()
    at = base.index(b"123456")
    changed = base[:at] + b"923456" + base[at + 6:]
    # The text chunk's checksum must match, or decoders refuse the file.
    start = changed.index(b"tEXt")
    end = at + 6
    changed = changed[:end] + struct.pack(">I", zlib.crc32(changed[start:end])) + changed[end + 4:]
    assert len(changed) == len(base) and changed != base
    same = send_all(stack, [picture_body(base)])[0]
    other = send_all(stack, [picture_body(changed)])[0]
    assert predicted(same) == cached(same) > 15 * BLOCK
    # Only blocks before the image may be claimed. The system text is less than one block here.
    assert predicted(other) == cached(other) == 0


def test_thousands_of_distinct_images_never_claim_a_block(build, logs):
    with Stack(build, engines=ENGINES, engine_flags=ENGINE_FLAGS, logs=logs) as fresh:
        def bodies():
            for seed in range(DISTINCT):
                yield json.dumps(picture_body(png(112, 112, seed=seed + 1_000_000))).encode()

        wrong = 0
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            for answer in pool.map(lambda b: post(fresh.port, b), bodies()):
                assert answer.status == 200
                wrong += answer.overlap[0] > 0 or cached(answer) > 0
        assert wrong == 0


def test_a_shared_system_prompt_leaves_idle_traffic_balanced(build, logs):
    system = "You are a careful assistant of a large shop. " * 12
    with Stack(build, engines=ENGINES, engine_flags=ENGINE_FLAGS, logs=logs) as fresh:
        served = collections.Counter()
        for i in range(400):
            rng = random.Random(i)
            question = " ".join(rng.choice(("boots", "lamp", "kettle", "price", "size", "colour"))
                                for _ in range(40))
            body = {"model": "demo", "max_tokens": 1, "messages": [
                {"role": "system", "content": system}, {"role": "user", "content": question}]}
            answer = post(fresh.port, body)
            assert answer.status == 200
            served[answer.worker] += 1
        assert len(served) == ENGINES
        for worker, count in served.items():
            assert 60 <= count <= 140, served


def test_text_before_an_image_prevents_reuse_of_its_blocks(stack):
    picture = png(448, 448, seed=777)
    send_all(stack, [picture_body(picture)])
    stack.wait_until_heard()
    parts = [text_part("Answer in one short sentence."), image_part(picture)]
    body = {"model": "demo", "max_tokens": 1, "messages": [{"role": "user", "content": parts}]}
    moved = send_all(stack, [body])[0]
    assert predicted(moved) == cached(moved) == 0


def test_turns_of_a_conversation_are_tokenized_once_and_predicted_exactly(stack):
    def known_bytes():
        return sum(float(line.split()[-1]) for line in stack.router_metrics().splitlines()
                   if line.startswith('sightline_token_cache_text_bytes_total{result="hit"}'))

    rng = random.Random(9)
    messages = []
    before = known_bytes()
    for turn in range(5):
        words = " ".join(rng.choice(("ship", "river", "\u6cb3", "caf\u00e9")) +
                         str(rng.randrange(9999)) for _ in range(1200))
        messages.append({"role": ("user", "assistant")[turn % 2], "content": words})
        answer = send_all(stack, [{"model": "demo", "max_tokens": 1, "messages": messages}])[0]
        # The engine tokenizes the prompt without this cache.
        assert predicted(answer) == cached(answer)
        assert turn == 0 or cached(answer) > 0
        stack.wait_until_heard()
    # Each of the first four turns of about 10 KB comes again: four times, three times, …
    assert known_bytes() - before > 80_000


def test_a_prompt_of_whole_blocks_reuses_all_but_the_last(stack):
    body = {"model": "demo", "max_tokens": 1, "prompt": list(range(1000, 1000 + 16 * BLOCK))}
    post(stack.port, body, path="/v1/completions")
    stack.wait_until_heard()
    again = post(stack.port, body, path="/v1/completions")
    assert again.headers["x-sightline-overlap"] == "15/16"
    assert cached(again) == 15 * BLOCK


def test_a_batch_is_routed_by_its_first_prompt_without_audit(stack):
    def audited():
        # A request leaves this gauge last, after all its metrics are counted.
        stack.wait_until(lambda: stack.router_count("sightline_requests_active") == 0)
        return [line for line in stack.router_metrics().splitlines()
                if line.startswith(("sightline_predictions_total",
                                    "sightline_prompt_token_mismatch_total"))]

    prompts = [list(range(n, n + 4 * BLOCK)) for n in (3000, 5000)]
    before = audited()
    answer = post(stack.port, {"model": "demo", "max_tokens": 1, "prompt": prompts},
                  path="/v1/completions")
    assert answer.status == 200 and answer.headers["x-sightline-overlap"] == "0/4"
    # The engine reports the sum over the batch. The router knows only the first prompt.
    assert audited() == before


def test_salt_separates_tenants_but_allows_reuse_within_one(stack):
    body = picture_body(png(448, 448, seed=888))
    first = {**body, "cache_salt": "tenant-a"}
    send_all(stack, [first])
    stack.wait_until_heard()
    again, other = send_all(stack, [first])[0], send_all(stack, [{**body, "cache_salt": "b"}])[0]
    assert predicted(again) == cached(again) > 0
    assert predicted(other) == cached(other) == 0


def test_no_reuse_is_predicted_if_the_engine_skips_its_cache(stack):
    body = {"model": "demo", "max_tokens": 1, "prompt": list(range(7000, 7000 + 4 * BLOCK + 1))}
    post(stack.port, body, path="/v1/completions")
    stack.wait_until_heard()
    again = post(stack.port, body, path="/v1/completions")
    assert again.headers["x-sightline-overlap"] == "4/4"
    for skipping in ({"prompt_logprobs": 0}, {"echo": True, "logprobs": 1}):
        answer = post(stack.port, {**body, **skipping}, path="/v1/completions")
        assert answer.status == 200
        assert answer.headers["x-sightline-overlap"] == "0/4"


def test_explain_predicts_what_serving_then_does(stack):
    body = picture_body(png(336, 448, seed=999))
    send_all(stack, [body])
    stack.wait_until_heard()
    explained = post(stack.admin_port, body, path="/v1/explain")
    assert explained.status == 200, explained.body
    plan = json.loads(explained.body)
    answer = send_all(stack, [body])[0]
    assert plan["choice"] == answer.worker
    chosen = next(w for w in plan["workers"] if w["name"] == plan["choice"])
    assert chosen["eligible"] and chosen["overlap_blocks"] == answer.overlap[0] > 0
    assert plan["block_size"] == BLOCK
    assert len(plan["token_ids"]) == answer.usage["prompt_tokens"]
    assert len(plan["block_digests"]) == len(plan["token_ids"]) // BLOCK == answer.overlap[1]
    assert all(len(digest) == 16 for digest in plan["block_digests"])
    media = plan["media"][0]
    assert (media["width"], media["height"]) == (336, 448)
    assert media["length"] == 12 * 16
    pads = plan["token_ids"][media["start"]:media["start"] + media["length"]]
    assert set(pads) == {151655}
    assert plan["token_ids"][media["start"] - 1] == 151652
    assert "<|image_pad|>" in plan["prompt"]


def test_explain_accepts_completions_with_text_and_token_ids(stack):
    for prompt, want_text in (("The kettle is red.", "The kettle is red."), ([785, 374, 2518], "")):
        explained = post(stack.admin_port, {"model": "demo", "prompt": prompt}, path="/v1/explain")
        plan = json.loads(explained.body)
        assert plan["prompt"] == want_text and plan["media"] == []
        if want_text == "":
            assert plan["token_ids"] == prompt


def test_explain_refuses_what_serving_refuses(stack):
    for bad, want in [({"model": "nobody", "messages": []}, 404), ({"model": "demo"}, 400)]:
        explained = post(stack.admin_port, bad, path="/v1/explain")
        served = post(stack.port, bad)
        assert explained.status == served.status == want
