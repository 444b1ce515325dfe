# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""The verdicts that fault tests rely on: which claims beyond an engine's blocks are illegal."""

import os
import subprocess
import threading
import types

import pytest
import truth
from truth import ANNOUNCEMENT_S, Claim, Truth, Watch


class Scene:
    """An engine and a router's claims about it, as a watch sees them. The test moves the time."""
    processes = list

    def __init__(self, monkeypatch):
        self.now = 100.0
        monkeypatch.setattr(truth.time, "monotonic", lambda: self.now)
        self.engine = Truth(life=0, sequence=4, delivered=4, pending_events=0, blocks={"a"})
        self.router = Claim(state="ready", counts=True, blocks={"a"})
        self.watch = Watch(self, [0])

    def truth(self, _engine):
        return Truth(**vars(self.engine))

    def claim(self, _engine):
        return self.router

    def look_after(self, seconds):
        self.now += seconds
        self.watch.look(0)
        return self.watch.illegal


@pytest.fixture
def scene(monkeypatch):
    return Scene(monkeypatch)


def claims_too_much(scene):
    scene.router.blocks = {"a", "evicted"}


def test_a_claim_of_held_blocks_or_fewer_is_legal(scene):
    assert not scene.look_after(0)
    scene.router.blocks = set()
    assert not scene.look_after(10)


def test_a_claim_becomes_illegal_soon_after_the_removal_event(scene):
    claims_too_much(scene)
    assert not scene.look_after(0)
    assert not scene.look_after(ANNOUNCEMENT_S * 0.9)
    illegal = scene.look_after(ANNOUNCEMENT_S * 0.2)
    assert [fault["block"] for fault in illegal] == ["evicted"]


@pytest.mark.parametrize("numbers", [{"pending_events": 1}, {"sequence": 5}])
def test_a_claim_is_legal_until_the_removal_event_is_sent(scene, numbers):
    claims_too_much(scene)
    vars(scene.engine).update(numbers)
    assert not scene.look_after(0)
    assert not scene.look_after(10)
    scene.engine.sequence, scene.engine.delivered, scene.engine.pending_events = 5, 5, 0
    assert not scene.look_after(0)
    assert scene.look_after(ANNOUNCEMENT_S * 1.1)


class Waits:
    """Threads that wait for a processor as long as the test says."""

    def __init__(self):
        self.seconds = 0.0

    def now(self):
        return self.seconds

    def since(self, before):
        return self.seconds - before


def test_time_waiting_for_a_processor_does_not_count(scene):
    scene.watch._waits = waits = Waits()
    waits.seconds = 7.0  # before the event
    claims_too_much(scene)
    assert not scene.look_after(0)
    waits.seconds += ANNOUNCEMENT_S
    assert not scene.look_after(ANNOUNCEMENT_S * 1.9)
    illegal = scene.look_after(ANNOUNCEMENT_S * 0.2)
    assert illegal[0]["late_s"] == pytest.approx(ANNOUNCEMENT_S * 1.1)


def test_waits_add_the_longest_thread_wait_of_each_process(monkeypatch):
    waits = truth.ProcessorWaits()
    seconds = {(1, "10"): 4_000_000_000, (1, "11"): 9_000_000_000, (2, "20"): 1_000_000_000}
    monkeypatch.setattr(waits, "now", lambda: seconds)
    before = {(1, "10"): 1_000_000_000, (1, "11"): 8_000_000_000, (2, "20"): 500_000_000}
    assert waits.since(before) == 3.5


def test_waits_are_read_from_the_scheduler():
    waits = truth.ProcessorWaits(lambda: [types.SimpleNamespace(pid=os.getpid())])
    before = waits.now()
    assert (os.getpid(), str(threading.main_thread().native_id)) in before
    assert waits.since(before) >= 0.0


def test_a_process_that_has_ended_has_no_waits():
    with subprocess.Popen(["true"]) as ended:
        pass
    waits = truth.ProcessorWaits(lambda: [ended])
    assert waits.now() == {}
    assert waits.since({}) == 0.0


def test_a_claim_is_illegal_immediately_if_all_events_are_applied(scene):
    claims_too_much(scene)
    scene.router.applied = 3
    assert not scene.look_after(0)
    scene.router.applied = 4
    assert [fault["late_s"] for fault in scene.look_after(0)] == [0.0]


@pytest.mark.parametrize("numbers", [{"pending_events": 1}, {"sequence": 5}])
def test_a_claim_is_legal_while_the_index_lags_behind(scene, numbers):
    claims_too_much(scene)
    scene.router.applied = 4
    vars(scene.engine).update(numbers)
    assert not scene.look_after(0)
    assert not scene.look_after(10)


def test_a_sequence_number_before_a_restart_proves_nothing(scene):
    scene.router.applied = 4
    scene.engine = Truth(life=1, sequence=1, delivered=1, pending_events=0, blocks=set())
    assert not scene.look_after(0)


def test_claims_that_do_not_count_are_legal(scene):
    claims_too_much(scene)
    scene.router.counts = False
    assert not scene.look_after(0)
    assert not scene.look_after(10)


def test_the_time_limit_starts_immediately_after_a_restart(scene):
    scene.engine = Truth(life=1, sequence=None, delivered=None, pending_events=0, blocks=set())
    assert not scene.look_after(0)
    assert scene.look_after(ANNOUNCEMENT_S * 1.1)


def test_the_time_limit_starts_again_for_a_returned_block(scene):
    claims_too_much(scene)
    assert not scene.look_after(0)
    scene.engine.blocks = {"a", "evicted"}
    assert not scene.look_after(ANNOUNCEMENT_S)
    scene.engine.blocks = {"a"}
    assert not scene.look_after(ANNOUNCEMENT_S)
    assert scene.look_after(ANNOUNCEMENT_S * 1.1)
