# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""The judgement that tests of faults rely on: which claims above the truth are illegal."""

import pytest
import truth
from truth import ANNOUNCEMENT_S, Claim, Truth, Watch


class Scene:
    """An engine and a router's claims about it, as a watch sees them; time moves by hand."""

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
