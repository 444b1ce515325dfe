# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Reads the reports of routers that follow agents, and compares their indexes with the engines."""

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
    """Returns the router's state of the event stream of a worker's rank, or None without one."""
    for one in replicas(stack)["streams"]:
        if (one["worker"], one["rank"]) == (worker, rank):
            return one
    return None


def member(stack, name):
    """Returns the entry of another process in the router's list of members, or None."""
    for one in replicas(stack)["members"]:
        if one["name"] == name:
            return one
    return None


def worker(stack, name="w0"):
    return next(w for w in stack.worker_states() if w["name"] == name)


def is_settled(one):
    """Returns whether the stream is verified, and the router has applied all known frames."""
    return one is not None and one["health"] == "verified" and one["behind"] == 0


@contextlib.contextmanager
def judges(deployment):
    """Makes a Judge for each router of the deployment."""
    with contextlib.ExitStack() as open_judges:
        made = []
        for router in deployment.routers:
            judge = Judge(deployment.view(router),
                          functools.partial(deployment.on_the_way_to, router))
            open_judges.callback(judge.close)
            made.append(judge)
        yield made


def wait_until_equal(all_judges, engines, seconds=READY_S):
    """Waits until each router counts each engine's entries and its index equals the engine's own
    list. While engines are quiet, all indexes are equal then. Returns the seconds it took."""
    start = time.monotonic()
    for judge in all_judges:
        for engine in range(engines):
            judge.stack.wait_until(lambda: judge.equal(engine), seconds)  # noqa: B023
    return time.monotonic() - start


def digests(stack):
    """Returns the digests of the router's index as {(worker, rank): digest}."""
    return {(one["worker"], one["rank"]): one["digest"] for one in replicas(stack)["streams"]}


@contextlib.contextmanager
def another_router(deployment, name, flags=(), states=("unverified",), **options):
    """Starts another router for the engines of a deployment, with agent=true for each worker. Waits
    until its workers are in one of the states."""
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
    """Returns the value of the router's series `name{labels}`, or None."""
    for line in stack.router_metrics().splitlines():
        if line.startswith(series + " "):
            return float(line.rpartition(" ")[2])
    return None


def wait_for_state(stack, name, condition, seconds=READY_S):
    """Waits until the worker meets the condition. Returns the seconds it took."""
    start = time.monotonic()
    stack.wait_until(lambda: condition(worker(stack, name)), seconds)
    return time.monotonic() - start
