# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""The operator's permissions let routers, agents and frontends send and receive all that they need.
Each program has the user of its role, and NATS refuses nothing."""

import json
import pathlib
import time

import pytest

import nats_secrets
from deployment import Deployment
from nats_server import NatsClient
from pictures import png
from predictions import picture_body, send_all

GOLDEN = pathlib.Path(__file__).parents[2] / "unit/operator/desired/golden/small.json"
SCOPE = ["--scope", "prod/shop"]  # the scope in the golden file
KINDS = {"members", "kv", "to", "ask", "returns", "load", "ask-load", "ask-lists",
         "lists"}
LISTENER = '{ user: listener, password: listener, permissions: { subscribe: ">" } }'
PATIENCE_S = 60


def permissions(golden):
    """Returns the permissions of the operator's managed NATS, in the form of nats-server."""
    def config(value):
        if isinstance(value, dict):
            value = list(value.values())
        if isinstance(value, list):
            return next(filter(None, map(config, value)), None)
        return value if isinstance(value, str) and "authorization {" in value else None

    text = config(json.loads(golden.read_text()))
    return text[text.index("authorization {"):]


@pytest.fixture
def users(tmp_path):
    """Returns the permissions, with a key for each role and a user that receives everything. Also
    returns the options of each role's programs."""
    config, options = permissions(GOLDEN), {}
    for role in ("frontend", "router", "agent"):
        directory = tmp_path / role
        directory.mkdir()
        key = nats_secrets.Nkey(directory, nats_secrets.USER)
        seed = directory / "seed"
        seed.write_text(key.seed + "\n")
        assert f"U{role.upper()}" in config
        config = config.replace(f"U{role.upper()}", key.public)
        options[f"{role}_flags"] = [*SCOPE, "--nats-nkey-file", seed]
    return config.replace("users: [", f"users: [\n    {LISTENER}"), options


def refused(view):
    """Returns how many subjects NATS did not permit, as the program counts them."""
    lines = [line for line in view.router_metrics().splitlines() if "not-permitted" in line]
    return sum(float(line.rpartition(" ")[2]) for line in lines)


def test_each_role_may_send_and_receive_what_it_needs(build, logs, users):
    config, options = users
    with Deployment(build, engines=1, routers=2, frontends=1, logs=logs / "permissions",
                    nats_config=config, **options) as deployment, \
            NatsClient(deployment.nats, "listener", "listener") as listener:
        listener.subscribe("sl.prod.shop.>")
        deployment.routers[1].kill()
        deployment.routers[1].start()  # sends requests to agents and the other router
        deployment.wait_until_ready(deployment.routers[1])
        send_all(deployment.view(deployment.frontends[0]),
                 [picture_body(png(224, 224, seed=i)) for i in range(4)])
        deployment.wait_until_heard()
        kinds = set()
        deadline = time.monotonic() + PATIENCE_S
        while kinds != KINDS:
            assert time.monotonic() < deadline, f"never sent: {KINDS - kinds}"
            message = listener.next(1)
            if message:
                kinds.add(message[0].split(".")[4])
        assert {node.name: refused(deployment.view(node)) for node in deployment.nodes} \
            == {node.name: 0 for node in deployment.nodes}
        assert "Violation" not in deployment.nats.whole_log()
