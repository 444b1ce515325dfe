# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""The API server refuses errors that one object alone shows. It names the field and the fix."""

import re

import pytest
from refusals import POOL, REFUSALS, ROUTER, changed

GROUP = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
KINDS = ("multimodalrouters.sightline.dev", "multimodalrouterpools.sightline.dev")
THERE = {"metadata.name": "there"}


@pytest.fixture(scope="module")
def answers(server):
    """The answers by the name of each refusal: [(field, message)]."""
    for thing in (ROUTER, POOL):
        server.keep(changed(thing, THERE))
    return {one.name: server.update(changed(one.object(), THERE)) if one.is_update
            else server.create(one.object()) for one in REFUSALS}


@pytest.mark.parametrize("refusal", REFUSALS, ids=lambda one: one.name)
def test_api_server_names_the_field_and_the_fix(answers, refusal):
    answer = answers[refusal.name]
    assert any(field == refusal.at and refusal.says in message for field, message in answer), (
        f"{refusal.at}: … {refusal.says} …\nis not in:\n"
        + "\n".join(f"{field}: {message}" for field, message in answer))


@pytest.mark.parametrize("thing", [ROUTER, POOL], ids=lambda thing: thing["kind"])
def test_api_server_accepts_the_objects_without_changes(server, thing):
    assert server.create(thing) == []


def rules_below(schema, place):
    """Yields (place of the field, rule) for all rules of a schema."""
    for rule in schema.get("x-kubernetes-validations", []):
        yield place + rule.get("fieldPath", ""), rule
    for name, inner in schema.get("properties", {}).items():
        yield from rules_below(inner, f"{place}.{name}")
    for inner in (schema.get("items"), schema.get("additionalProperties")):
        if isinstance(inner, dict):
            yield from rules_below(inner, f"{place}[]")


def pattern_of(rule):
    """Returns a pattern for the message of the broken rule."""
    if "message" in rule:
        return re.escape(rule["message"])
    text = re.match(r"'(.*)'\.format", rule["messageExpression"])[1]
    return re.escape(text).replace("%d", r"-?\d+")


def test_refusals_break_every_rule_of_the_schemas(server, answers):
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


def test_api_server_refuses_a_scale_beyond_autoscaling(server):
    server.keep(changed(POOL, {"metadata.name": "scaled"}))
    answer = server.scale(changed(POOL, {"metadata.name": "scaled"}), 9)
    assert [field for field, _ in answer] == ["spec.replicas"]
    assert "must be 1 to 4, as autoscaling of the pool says" in answer[0][1]
