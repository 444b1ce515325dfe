# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""What one object alone shows to be wrong, the API server refuses with the field and the fix."""

import re

import pytest
from refusals import POOL, REFUSALS, ROUTER, changed

GROUP = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
KINDS = ("multimodalrouters.sightline.dev", "multimodalrouterpools.sightline.dev")
THERE = {"metadata.name": "there"}


@pytest.fixture(scope="module")
def answers(server):
    """By the name of each refusal: [(field, message)]."""
    for thing in (ROUTER, POOL):
        server.keep(changed(thing, THERE))
    return {one.name: server.update(changed(one.object(), THERE)) if one.is_update
            else server.create(one.object()) for one in REFUSALS}


@pytest.mark.parametrize("refusal", REFUSALS, ids=lambda one: one.name)
def test_it_is_refused_with_its_field_and_the_fix(answers, refusal):
    answer = answers[refusal.name]
    assert any(field == refusal.at and refusal.says in message for field, message in answer), (
        f"{refusal.at}: … {refusal.says} …\nis not in:\n"
        + "\n".join(f"{field}: {message}" for field, message in answer))


@pytest.mark.parametrize("thing", [ROUTER, POOL], ids=lambda thing: thing["kind"])
def test_what_the_refusals_change_is_taken_as_it_is(server, thing):
    assert server.create(thing) == []


def rules_below(schema, place):
    """[(place, its rule's field and message)] of a schema."""
    for rule in schema.get("x-kubernetes-validations", []):
        yield place + rule.get("fieldPath", ""), rule
    for name, inner in schema.get("properties", {}).items():
        yield from rules_below(inner, f"{place}.{name}")
    for inner in (schema.get("items"), schema.get("additionalProperties")):
        if isinstance(inner, dict):
            yield from rules_below(inner, f"{place}[]")


def pattern_of(rule):
    """Of what is said where it is broken."""
    if "message" in rule:
        return re.escape(rule["message"])
    text = re.match(r"'(.*)'\.format", rule["messageExpression"])[1]
    return re.escape(text).replace("%d", r"-?\d+")


def test_every_rule_of_the_schemas_is_broken_by_a_refusal(server, answers):
    said = {(re.sub(r"\[\d+\]", "[]", field), message)
            for answer in answers.values() for field, message in answer}
    rules = []
    for kind in KINDS:
        schema = server.get(f"{GROUP}/{kind}")["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        rules += rules_below(schema, "")
    assert len(rules) > 50
    unbroken = [f"{place}: {rule['rule']}" for place, rule in rules
                if not any(field == place.removeprefix(".")
                           and re.search(pattern_of(rule) + "$", message)
                           for field, message in said)]
    assert not unbroken, "no refusal breaks\n" + "\n".join(unbroken)


def test_a_scale_beyond_autoscaling_is_refused_with_its_bounds(server):
    server.keep(changed(POOL, {"metadata.name": "scaled"}))
    answer = server.scale(changed(POOL, {"metadata.name": "scaled"}), 9)
    assert [field for field, _ in answer] == ["spec.replicas"]
    assert "must be 1 to 4, as autoscaling of the pool says" in answer[0][1]
