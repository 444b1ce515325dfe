# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""The specs that one object has in turn, and the final state of each while nothing fails."""

import dataclasses

from end_state import Reader, differences, is_at_rest

REST_S = 300
ENGINES = {"name": "engines", "backend": "simulator", "replicas": 2, "template": {}}
OUTSIDE = {"name": "outside", "backend": "simulator", "endpoints": [
    {"name": "engine", "url": "http://engine:8101", "events": "tcp://engine:5557",
     "replay": "tcp://engine:5657"}]}
SCALED = {name: value for name, value in ENGINES.items() if name != "replicas"} | {
    "name": "scaled", "autoscaling": {"minReplicas": 1, "maxReplicas": 3}}


def router(**spec):
    return {"apiVersion": "sightline.dev/v1alpha1", "kind": "MultimodalRouter",
            "metadata": {"name": "demo"}, "spec": {
                "model": {"name": "demo", "source": {"image": {"reference": "model:1"}}},
                "router": {"replicas": 1}, "frontend": {"replicas": 1}, "pools": [ENGINES],
                "rollout": {"maxSurge": 1, "maxUnavailable": 0}} | spec}


SMALLEST = router()
LARGER = {"kv": {"blockSize": 32}}
STEPS = [
    ("the smallest", SMALLEST),
    ("another block size", router(**LARGER)),
    ("more of all", router(router={"replicas": 2}, frontend={"replicas": 2}, **LARGER)),
    ("a pool that scales and one of others", router(pools=[ENGINES, SCALED, OUTSIDE], **LARGER)),
    ("suspended", router(suspend=True, **LARGER)),
    ("another log level and engines again", router(logLevel="debug", **LARGER)),
]


@dataclasses.dataclass
class Life:
    """The life of one object. `ends`: the state after each step, by the step's name."""
    home: object
    ends: dict = dataclasses.field(default_factory=dict)

    def __post_init__(self):
        self._reader = Reader(self.home)

    def apply(self, spec):
        self.home.apply(spec)

    def is_at(self, wanted):
        return self._reader.read() == wanted

    def await_rest(self, spec):
        """Waits until nothing changes any more. Returns that state."""
        generation = self.home.get("mmr", "demo")["metadata"]["generation"]
        seen = []

        def rests():
            status = self.home.get("mmr", "demo").get("status", {})
            if status.get("observedGeneration") != generation:
                return None
            seen.append(self._reader.read())
            is_same = len(seen) > 2 and seen[-1] == seen[-2] == seen[-3]
            return is_same and is_at_rest(seen[-1]) and seen[-1]

        return self.home.until(rests, f"it has become {spec['spec']}", REST_S)

    def await_state(self, wanted, what, is_enough=lambda: False):
        """Waits until the state is `wanted`, or until is_enough()."""
        try:
            self.home.until(lambda: is_enough() or self.is_at(wanted), what, REST_S)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{differences(self._reader.read(), wanted)}") from None


def undisturbed(home):
    life = Life(home)
    for name, spec in STEPS:
        life.apply(spec)
        life.ends[name] = life.await_rest(spec)
    return life
