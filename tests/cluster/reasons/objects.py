# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""An object whose pods nobody has to run, and what it says of itself."""

READY_S = 60


def router(name="demo", **spec):
    return {"apiVersion": "sightline.dev/v1alpha1", "kind": "MultimodalRouter",
            "metadata": {"name": name}, "spec": {
                "model": {"name": "demo", "source": {"image": {"reference": "model:1"}}},
                "router": {"replicas": 1}, "frontend": {"replicas": 1},
                "pools": [{"name": "engines", "backend": "simulator", "replicas": 1,
                           "template": {}}]} | spec}


def status(home, name="demo"):
    return home.get("mmr", name).get("status", {})


def condition(home, kind, name="demo"):
    """The whole of it; an empty one while there is none."""
    found = [one for one in status(home, name).get("conditions", []) if one["type"] == kind]
    return found[0] if found else {"status": None, "reason": None, "message": ""}


def says(home, kind, reason, *words, name="demo"):
    """Whether a condition has the reason, and all the words in its message."""
    found = condition(home, kind, name)
    return found["reason"] == reason and all(word in found["message"] for word in words)


def notes(home, reason, name="demo"):
    """What its events of that reason say."""
    return [one["message"] for one in home.get("events")["items"]
            if one["reason"] == reason and one["involvedObject"]["name"] == name]


def until_said(home, kind, reason, *words, name="demo"):
    """In a condition, and in an event."""
    home.until(lambda: says(home, kind, reason, *words, name=name),
               f"{kind} has the reason {reason} with {words}", READY_S)
    home.until(lambda: any(all(word in note for word in words)
                           for note in notes(home, reason, name)),
               f"an event {reason} says {words}", READY_S)


def is_written(home, name="demo"):
    """Nothing failed: all that is missing are processes that answer."""
    is_there = status(home, name).get("conditions")
    return is_there and condition(home, "Accepted", name)["status"] == "True" and condition(
        home, "Ready", name)["reason"] not in (
            "WriteFailed", "ReadFailed", "NameTaken", "QuotaExceeded")


def until_written(home, name="demo"):
    home.until(lambda: is_written(home, name), "all is written", READY_S)


def owned(home, kind, owner="demo"):
    """{name: object} of what belongs to it."""
    return {one["metadata"]["name"]: one for one in home.get(kind)["items"]
            if any(has["name"] == owner and has.get("controller")
                   for has in one["metadata"].get("ownerReferences", []))}


def templates(home):
    """{kind/name: its pods' template} of all its workloads."""
    return {f"{kind}/{name}": one["spec"]["template"] for kind in ("deployment", "statefulset")
            for name, one in owned(home, kind).items()}
