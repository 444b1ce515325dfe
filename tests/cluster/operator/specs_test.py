# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Every valid spec converges, and what was there before is there again when it is taken back: the
same objects with the same content. Several routers change side by side, each its own way."""

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
    """Each change and its way back; after one that fails, with a new router."""
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
    """Of each change that is to be tested, by its name, as soon as it is known."""
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
def test_a_spec_converges_and_what_was_there_before_comes_back(outcomes, change):
    outcomes[change.name].result()


def test_an_image_that_is_not_there_is_named_and_what_was_there_goes_on(demo):
    def is_named():
        # NATS starts anew with the other pull policy and is named until it is ready again.
        ready = next(one for one in status(demo)["conditions"] if one["type"] == "Ready")
        return ready["reason"] == "Updating" and "ErrImageNeverPull" in ready["message"]

    with client(demo) as answers:
        demo.apply(router(ROLLING | {"image": "sightline:none", "imagePullPolicy": "Never"}))
        demo.until(is_named, "it is named", READY_S)
        assert condition(demo, "Degraded") == "False Serving"
        demo.apply(router(ROLLING))
        demo.until(lambda: condition(demo, "Ready") == "True AsWanted", "it is back", READY_S)
    assert not failed(answers)


def test_the_only_worker_and_the_only_frontend_move_to_a_revision_and_no_request_fails(home):
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
