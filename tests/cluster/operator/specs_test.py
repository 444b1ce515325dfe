# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Every valid spec converges. When it is taken back, the same objects return with the same content.
Several routers change side by side, each in its own way."""

import concurrent.futures
import contextlib
import threading

import engines
import pytest
from installed import (BUILD, MODEL, READY_S, ROLLING, client, condition, failed, router, status,
                       wait_until_serves)
from lane import Lane
from spec_changes import BASE, FOREIGN, LIVE_CHANGES, REVISIONS, SIZES, WITHIN, merged
from testbed.namespace import RESTRICTED, Namespace

LANES = [LIVE_CHANGES + FOREIGN, SIZES, WITHIN, REVISIONS[:3], REVISIONS[3:]]
CHANGES = [change for lane in LANES for change in lane]
CHAT = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "chat"},
        "data": {"chat.jinja": "{% for m in messages %}{{ m.content }}{% endfor %}"}}


def run(home, changes, outcomes, is_over):
    """Applies each change and takes it back. After a failure it continues with a new router."""
    lane = None
    for change in changes:
        if is_over.is_set():
            return
        outcome = outcomes[change.name]
        try:
            lane = lane or Lane(home, is_over)
            lane.go_and_return(change)
            outcome.set_result(None)
        except Exception as error:
            error.add_note(home.describe())
            outcome.set_exception(error)
            lane = None
            home.try_kubectl("delete", "mmr", "demo", "--cascade=foreground")


@pytest.fixture(scope="module")
def outcomes(operator, request):
    """The outcome of each tested change by its name, available as soon as it is known."""
    asked = [item.callspec.params["change"] for item in request.session.items
             if "outcomes" in item.fixturenames]
    lanes = [[change for change in lane if change in asked] for lane in LANES]
    futures = {change.name: concurrent.futures.Future() for change in asked}
    is_over = threading.Event()
    with contextlib.ExitStack() as stack:
        homes = [stack.enter_context(Namespace(operator.bed, "specs", RESTRICTED))
                 for lane in lanes if lane]
        for home in homes:
            home.mount_directory("models", BUILD / "models" / MODEL)
            home.apply(CHAT, engines.pod("engine"), engines.service("engine", clusterIP="None"))
        threads = stack.enter_context(concurrent.futures.ThreadPoolExecutor(len(LANES)))
        stack.callback(is_over.set)
        for home, changes in zip(homes, filter(None, lanes)):
            threads.submit(run, home, changes, futures, is_over)
        yield futures


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.name)
def test_a_spec_converges_and_its_reversal_restores_the_objects(outcomes, change):
    outcomes[change.name].result()


def test_a_missing_image_is_reported_and_old_pods_keep_serving(demo):
    def is_named():
        # NATS restarts with the other pull policy. The message names it until it is ready again.
        ready = next(one for one in status(demo)["conditions"] if one["type"] == "Ready")
        return ready["reason"] == "Updating" and "ErrImageNeverPull" in ready["message"]

    with client(demo) as answers:
        demo.apply(router(ROLLING | {"image": "sightline:none", "imagePullPolicy": "Never"}))
        demo.until(is_named, "it is named", READY_S)
        assert condition(demo, "Degraded") == "False Serving"
        demo.apply(router(ROLLING))
        demo.until(lambda: condition(demo, "Ready") == "True AsWanted", "it is back", READY_S)
    assert not failed(answers)


def test_single_worker_and_frontend_change_revision_without_failures(home):
    home.apply(router(BASE))
    wait_until_serves(home)
    before = status(home)["currentRevision"]

    def has_moved():
        assert condition(home, "Degraded") == "False Serving"
        return (status(home)["currentRevision"] != before
                and condition(home, "Ready") == "True AsWanted")

    with client(home) as answers:
        home.apply(router(merged(BASE, {"kv": {"blockSize": 32}})))
        home.until(has_moved, "the new revision is all there is", READY_S)
    assert not failed(answers)
