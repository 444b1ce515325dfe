# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Which router a frontend uses when one of them is cut off from NATS and has only old data."""

import contextlib

import pytest

from deployment import Deployment
from nats_tap import Tap
from pictures import png
from predictions import picture_body, send_all

BEHIND = 'sightline_routers_known{state="behind"}'
LATE = "sightline_router_failures_total"
WELL = 'sightline_routers_known{state="well"}'


@contextlib.contextmanager
def deployment_behind_taps(build, logs):
    with contextlib.ExitStack() as running:
        taps = {}

        def nats_url(name):
            if name not in taps:
                taps[name] = running.enter_context(Tap(deployment.nats.port))
            return taps[name].url

        deployment = Deployment(build, engines=2, routers=2, frontends=1, nats_url=nats_url,
                                logs=logs / "freshness")
        running.enter_context(deployment)
        yield deployment, taps


def total(stack, name):
    """Returns the sum of all series of a metric."""
    lines = stack.router_metrics().splitlines()
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(name))


def decisions(deployment):
    return [total(deployment.view(router), "sightline_decisions_total{")
            for router in deployment.routers]


@pytest.mark.parametrize("how", ["cut", "hush"])
def test_frontend_avoids_a_router_that_nats_does_not_reach(build, logs, how):
    with deployment_behind_taps(build, logs) as (deployment, taps):
        frontend = deployment.view(deployment.frontends[0])

        def asked(seed):
            """Returns the router that the frontend uses. Repeats if one answered too late: on a
            busy machine the frontend then uses the next one."""
            while True:
                late = total(frontend, LATE)
                before = decisions(deployment)
                send_all(frontend, [picture_body(png(224, 224, seed=seed + i)) for i in range(4)])
                grown = [after - then for after, then in zip(decisions(deployment), before)]
                if total(frontend, LATE) == late:
                    assert sorted(grown) == [0, 4], grown
                    return grown.index(4)

        # At first it uses the router that was ready first.
        frontend.wait_until(lambda: total(frontend, WELL) == 2)
        first = asked(0)
        assert asked(10) == first
        tap = taps[deployment.routers[first].name]
        getattr(tap, how)()
        frontend.wait_until(lambda: total(frontend, BEHIND) == 1)
        assert asked(20) != first
        assert frontend.get(frontend.admin_port, "/readyz")[0] == 200
        tap.heal()
        frontend.wait_until(lambda: total(frontend, WELL) == 2)
        assert asked(30) == first
