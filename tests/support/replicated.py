# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""What routers say of the agents that they follow, and whether all of them hold what is true."""

import contextlib
import functools
import json
import time

from stack import READY_S, Stack
from truth import Judge


def replicas(stack):
    status, body = stack.get(stack.admin_port, "/v1/replicas")
    assert status == 200, body
    return json.loads(body)


def stream(stack, worker="w0", rank=0):
    """What the router knows of the stream about a worker's rank; None if it follows none."""
    for one in replicas(stack)["streams"]:
        if (one["worker"], one["rank"]) == (worker, rank):
            return one
    return None


def member(stack, name):
    """Another process as this one sees it; None if it does not."""
    for one in replicas(stack)["members"]:
        if one["name"] == name:
            return one
    return None


def worker(stack, name="w0"):
    return next(w for w in stack.worker_states() if w["name"] == name)


def is_settled(one):
    """The stream is believed, and nothing of it is known of that is not applied."""
    return one is not None and one["health"] == "verified" and one["behind"] == 0


@contextlib.contextmanager
def judges(deployment):
    """One for each router of the deployment."""
    with contextlib.ExitStack() as open_judges:
        made = []
        for router in deployment.routers:
            judge = Judge(deployment.view(router),
                          functools.partial(deployment.on_the_way_to, router))
            open_judges.callback(judge.close)
            made.append(judge)
        yield made


def wait_until_equal(all_judges, engines, seconds=READY_S):
    """Until each router believes each engine, and its index is the engine's own list: with the
    engines quiet, all indexes are the same then. Returns how long that took."""
    start = time.monotonic()
    for judge in all_judges:
        for engine in range(engines):
            judge.stack.wait_until(lambda: judge.equal(engine), seconds)  # noqa: B023
    return time.monotonic() - start


def digests(stack):
    """Of what the router's index holds, by worker and rank."""
    return {(one["worker"], one["rank"]): one["digest"] for one in replicas(stack)["streams"]}


@contextlib.contextmanager
def another_router(deployment, name, flags=(), states=("unverified",), **options):
    """One more router over the engines of a deployment, told that agents read their events. It is
    waited for until its workers are in one of the states."""
    workers = [deployment.worker(i) for i in range(len(deployment.agents))]
    stack = Stack(deployment.build, workers=workers, worker_extra=",agent=true",
                  served_model_name=options.pop("served_model_name", "demo"),
                  model=options.pop("model", "qwen2-vl"), ready_states=states,
                  logs=deployment.logs / name,
                  router_flags=["--nats", options.pop("nats", deployment.nats.url),
                                "--replica-name", name, *flags])
    assert not options, options
    with stack:
        yield stack


def metric(stack, series):
    """Value of a series of the router, `name{labels}`; None: there is none."""
    for line in stack.router_metrics().splitlines():
        if line.startswith(series + " "):
            return float(line.rpartition(" ")[2])
    return None


def wait_for_state(stack, name, condition, seconds=READY_S):
    """Until the worker's state and reason meet the condition; returns how long it took."""
    start = time.monotonic()
    stack.wait_until(lambda: condition(worker(stack, name)), seconds)
    return time.monotonic() - start
