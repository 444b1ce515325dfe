# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Several routers behind agents. All indexes equal the engines' own lists, whichever router served
the requests."""

import itertools
import random
import threading

import pytest

import truth
from deployment import Deployment
from pictures import png
from predictions import cached, picture_body, predicted, send_all
from replicated import digests, judges, replicas, wait_until_equal
from stack import SLOWDOWN, Stack, post

# Instrumented programs look for other faults. A few of them find these.
ENGINES, ROUTERS = (8, [2, 3, 5]) if SLOWDOWN == 1 else (3, [2])
# This is small: engines evict blocks all the time.
ENGINE_FLAGS = ["--blocks", 320]


def text_body(number):
    words = " ".join(f"word{number % 7}-{i}" for i in range(60 + number % 50))
    return {"model": "demo", "messages": [{"role": "user", "content": words}], "max_tokens": 4}


def mixed_load(views, count, seed):
    """Text and images, new and repeated, streamed or not, from one client for each router."""
    failures = []

    def client(view, number):
        rng = random.Random(seed * 100 + number)
        try:
            for i in range(count):
                picture = picture_body(png(224, 224, seed=rng.randrange(40)))
                body = picture if rng.random() < 0.5 else text_body(rng.randrange(400))
                answer = post(view.port, {**body, "stream": i % 2 == 0})
                assert answer.status == 200, answer.body
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=client, args=(view, i)) for i, view in enumerate(views)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


@pytest.mark.parametrize("routers", ROUTERS)
def test_all_indexes_equal_the_engines_lists_at_rest(build, logs, routers):
    with Deployment(build, engines=ENGINES, routers=routers, engine_flags=ENGINE_FLAGS,
                    logs=logs) as deployment, judges(deployment) as all_judges:
        views = [judge.stack for judge in all_judges]
        for seed in range(2):
            mixed_load(views * (6 // routers), 40, seed)
            wait_until_equal(all_judges, ENGINES)
        blocks = [[judge.claim(engine).blocks for engine in range(ENGINES)]
                  for judge in all_judges]
        assert sum(map(len, blocks[0])) > 500, "there is something to compare"
        assert all(one == blocks[0] for one in blocks)
        assert all(digests(view) == digests(views[0]) for view in views)
        evicted = sum(views[0].engine_metrics(i).get("vllm:prompt_tokens_total", 0)
                      for i in range(ENGINES)) / 16
        assert evicted > 2 * ENGINES * 320, "most of what was stored is gone again"
        for view in views:
            told = replicas(view)
            assert len(told["streams"]) == ENGINES
            for one in told["streams"]:
                assert one["digests_unequal"] == 0
                assert one["refused"] == dict.fromkeys(one["refused"], 0)


def test_all_routers_find_an_image_sent_through_one(build, logs):
    with Deployment(build, engines=3, routers=3, logs=logs) as deployment:
        views = [deployment.view(router) for router in deployment.routers]
        bodies = [picture_body(png(448, 448, seed=i)) for i in range(12)]
        first = send_all(views[0], bodies, parallel=4)
        views[0].wait_until_heard()
        for view in views[1:]:
            view.wait_until_heard()
            for before, answer in zip(first, send_all(view, bodies, parallel=4)):
                assert answer.worker == before.worker
                assert predicted(answer) == cached(answer) > 15 * 16


def test_no_router_claims_blocks_after_their_removal_event(build, logs):
    with Deployment(build, engines=3, routers=2, engine_flags=ENGINE_FLAGS,
                    logs=logs) as deployment, judges(deployment) as all_judges:
        views = [judge.stack for judge in all_judges]
        with truth.Watch(all_judges[0], range(3)) as one, truth.Watch(all_judges[1],
                                                                      range(3)) as other:
            mixed_load(views * 2, 60, seed=7)
            for watch in (one, other):
                watch.wait_for_looks()


def test_one_router_reads_some_workers_and_follows_agents_of_others(build, logs):
    with Deployment(build, engines=4, routers=1, logs=logs) as deployment:
        # Beside the agents' router: a router that reads two of the engines directly.
        own = [dict(deployment.engines.workers[i]) for i in (0, 1)]
        by_agents = [{**deployment.worker(i), "agent": "true"} for i in (2, 3)]
        mixed = Stack(build, workers=own + by_agents, logs=logs / "mixed",
                      router_flags=["--nats", deployment.nats.url, "--replica-name", "mixed"])
        with mixed:
            bodies = [picture_body(png(336, 336, seed=i)) for i in range(24)]
            answers = send_all(mixed, bodies, parallel=4)
            assert {a.worker for a in answers} == {"w0", "w1", "w2", "w3"}
            judge = truth.Judge(mixed)
            try:
                for engine in range(4):
                    mixed.wait_until(lambda: judge.equal(engine))  # noqa: B023
            finally:
                judge.close()
            assert {one["worker"] for one in replicas(mixed)["streams"]} == {"w2", "w3"}
            events = {w["name"]: w["events"] for w in mixed.worker_states()}
            assert "replaying" in events["w0"] and events["w3"]["agent"] == "agent3"


def test_later_router_learns_all_blocks_of_the_engines(build, logs):
    with Deployment(build, engines=2, routers=2, logs=logs) as deployment:
        late = deployment.routers[1]
        late.stop()
        first = deployment.view(deployment.routers[0])
        bodies = [picture_body(png(448, 448, seed=i)) for i in range(20)]
        send_all(first, bodies)
        late.start()
        deployment.wait_until_ready(late)
        with judges(deployment) as all_judges:
            wait_until_equal(all_judges, 2)
        # One by one: of many concurrent requests, some go to workers that lack their images.
        answers = send_all(deployment.view(late), bodies, parallel=1)
        assert all(predicted(a) == cached(a) > 0 for a in answers)
        first.wait_until(lambda: {m["name"] for m in replicas(first)["members"] if m["fits"]}
                         == {"agent0", "agent1", "router1"})
        # A router that ends announces it.
        late.stop()
        first.wait_until(lambda: {m["name"] for m in replicas(first)["members"]}
                         == {"agent0", "agent1"}, 2)


def test_metrics_have_a_series_for_each_worker(build, logs):
    with Deployment(build, engines=2, routers=1, logs=logs) as deployment:
        view = deployment.view(deployment.routers[0])
        send_all(view, [picture_body(png(224, 224, seed=i)) for i in range(8)])
        view.wait_until_heard()
        text = view.router_metrics()
        for name, labels in itertools.product(
                ("replica_frames_total", "replica_operations_total", "replica_behind_frames",
                 "replica_waiting_bytes", "replica_digest_equal_timestamp_seconds"),
                ('{worker="w0"}', '{worker="w1"}')):
            assert f"sightline_{name}{labels} " in text
        assert 'sightline_replica_digests_total{worker="w0",result="equal"} ' in text
        assert 'sightline_replica_digests_total{worker="w0",result="unequal"} 0\n' in text
        assert "wrong-tag" not in text
