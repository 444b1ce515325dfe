# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""An object whose pods do not have to run, and what it reports."""

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
    """Returns the whole condition, or an empty one if it is missing."""
    found = [one for one in status(home, name).get("conditions", []) if one["type"] == kind]
    return found[0] if found else {"status": None, "reason": None, "message": ""}


def says(home, kind, reason, *words, name="demo"):
    """Returns whether a condition has the reason, and all the words in its message."""
    found = condition(home, kind, name)
    return found["reason"] == reason and all(word in found["message"] for word in words)


def notes(home, reason, name="demo"):
    """Returns the messages of its events with this reason."""
    return [one["message"] for one in home.get("events")["items"]
            if one["reason"] == reason and one["involvedObject"]["name"] == name]


def until_said(home, kind, reason, *words, name="demo"):
    """Waits for the reason with these words, in a condition and in an event."""
    home.until(lambda: says(home, kind, reason, *words, name=name),
               f"{kind} has the reason {reason} with {words}", READY_S)
    home.until(lambda: any(all(word in note for word in words)
                           for note in notes(home, reason, name)),
               f"an event {reason} says {words}", READY_S)


def is_written(home, name="demo"):
    """True if nothing failed, even if processes do not answer yet."""
    is_there = status(home, name).get("conditions")
    return is_there and condition(home, "Accepted", name)["status"] == "True" and condition(
        home, "Ready", name)["reason"] not in (
            "WriteFailed", "ReadFailed", "NameTaken", "QuotaExceeded")


def until_written(home, name="demo"):
    home.until(lambda: is_written(home, name), "all is written", READY_S)


def owned(home, kind, owner="demo"):
    """Returns {name: object} of what belongs to it."""
    return {one["metadata"]["name"]: one for one in home.get(kind)["items"]
            if any(has["name"] == owner and has.get("controller")
                   for has in one["metadata"].get("ownerReferences", []))}


def templates(home):
    """Returns {kind/name: pod template} of all its workloads."""
    return {f"{kind}/{name}": one["spec"]["template"] for kind in ("deployment", "statefulset")
            for name, one in owned(home, kind).items()}
