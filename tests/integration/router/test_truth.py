# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""The judgement that tests of faults rely on: which claims above the truth are illegal."""

import os
import subprocess
import threading
import types

import pytest
import truth
from truth import ANNOUNCEMENT_S, Claim, Truth, Watch


class Scene:
    """An engine and a router's claims about it, as a watch sees them; time moves by hand."""
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


def test_a_claim_of_what_is_held_or_less_is_legal(scene):
    assert not scene.look_after(0)
    scene.router.blocks = set()
    assert not scene.look_after(10)


def test_a_claim_outlives_the_removals_announcement_by_its_way_to_the_index_only(scene):
    claims_too_much(scene)
    assert not scene.look_after(0)
    assert not scene.look_after(ANNOUNCEMENT_S * 0.9)
    illegal = scene.look_after(ANNOUNCEMENT_S * 0.2)
    assert [fault["block"] for fault in illegal] == ["evicted"]


@pytest.mark.parametrize("numbers", [{"pending_events": 1}, {"sequence": 5}])
def test_a_claim_is_legal_until_the_message_with_the_removal_is_sent(scene, numbers):
    claims_too_much(scene)
    vars(scene.engine).update(numbers)
    assert not scene.look_after(0)
    assert not scene.look_after(10)
    scene.engine.sequence, scene.engine.delivered, scene.engine.pending_events = 5, 5, 0
    assert not scene.look_after(0)
    assert scene.look_after(ANNOUNCEMENT_S * 1.1)


class Waits:
    """Threads that wait for a processor as long as is said."""

    def __init__(self):
        self.seconds = 0.0

    def now(self):
        return self.seconds

    def since(self, before):
        return self.seconds - before


def test_the_time_for_which_threads_wait_for_a_processor_does_not_count(scene):
    scene.watch._waits = waits = Waits()
    waits.seconds = 7.0  # before the announcement
    claims_too_much(scene)
    assert not scene.look_after(0)
    waits.seconds += ANNOUNCEMENT_S
    assert not scene.look_after(ANNOUNCEMENT_S * 1.9)
    illegal = scene.look_after(ANNOUNCEMENT_S * 0.2)
    assert illegal[0]["late_s"] == pytest.approx(ANNOUNCEMENT_S * 1.1)


def test_waits_are_those_of_each_process_that_waits_longest(monkeypatch):
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


def test_a_process_that_has_ended_waits_for_nothing():
    with subprocess.Popen(["true"]) as ended:
        pass
    waits = truth.ProcessorWaits(lambda: [ended])
    assert waits.now() == {}
    assert waits.since({}) == 0.0


def test_a_claim_is_illegal_at_once_where_all_that_was_announced_is_applied(scene):
    claims_too_much(scene)
    scene.router.applied = 3
    assert not scene.look_after(0)
    scene.router.applied = 4
    assert [fault["late_s"] for fault in scene.look_after(0)] == [0.0]


@pytest.mark.parametrize("numbers", [{"pending_events": 1}, {"sequence": 5}])
def test_a_claim_is_legal_while_the_engine_knows_more_than_was_applied(scene, numbers):
    claims_too_much(scene)
    scene.router.applied = 4
    vars(scene.engine).update(numbers)
    assert not scene.look_after(0)
    assert not scene.look_after(10)


def test_a_number_of_an_earlier_life_proves_nothing(scene):
    scene.router.applied = 4
    scene.engine = Truth(life=1, sequence=1, delivered=1, pending_events=0, blocks=set())
    assert not scene.look_after(0)


def test_claims_that_do_not_count_are_legal(scene):
    claims_too_much(scene)
    scene.router.counts = False
    assert not scene.look_after(0)
    assert not scene.look_after(10)


def test_after_a_restart_the_time_runs_at_once(scene):
    scene.engine = Truth(life=1, sequence=None, delivered=None, pending_events=0, blocks=set())
    assert not scene.look_after(0)
    assert scene.look_after(ANNOUNCEMENT_S * 1.1)


def test_a_block_that_comes_back_starts_anew(scene):
    claims_too_much(scene)
    assert not scene.look_after(0)
    scene.engine.blocks = {"a", "evicted"}
    assert not scene.look_after(ANNOUNCEMENT_S)
    scene.engine.blocks = {"a"}
    assert not scene.look_after(ANNOUNCEMENT_S)
    assert scene.look_after(ANNOUNCEMENT_S * 1.1)
