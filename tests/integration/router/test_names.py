# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Workers by host name: a failure of the name server for one name affects only that worker."""

import contextlib
import random
import re
import signal
import socket

import pytest
from name_server import FAILS, HALF, SILENT, NameServer
from stack import SLOWDOWN, Stack, post

ANY = ("starting", "ready", "unverified", "suspect", "down")
REQUEST = {"model": "demo", "max_tokens": 1, "messages": [{"role": "user", "content": "hello"}]}


class NamedStack(Stack):
    """Simulated engines that the router knows by these host names, one name each."""

    def __init__(self, build, names, **options):
        super().__init__(build, engines=len(names), ready_states=ANY, **options)
        self.names = names

    def start_router(self):
        for worker, name in zip(self.workers, self.names):
            for key, value in worker.items():
                if key != "name":
                    worker[key] = value.replace("127.0.0.1", name)
        super().start_router()

    def restart_engines(self, host="127.0.0.1"):
        """Restarts the engines as other processes, at the same ports."""
        self.simulator.stop(signal.SIGKILL)
        self.start_engines_again(host)

    def start_engines_again(self, host="127.0.0.1"):
        named = self.workers
        self.engine_flags = ["--host", host]
        self.start_engines()
        self.workers = named

    def state(self, i):
        return self.worker_states()[i]["state"]

    def reason(self, i):
        return self.worker_states()[i]["reason"]


@contextlib.contextmanager
def stack_of(build, logs, names, records, **options):
    with NameServer(logs, records, options.pop("resolv_options", "")) as server:
        kind = options.pop("kind", NamedStack)
        with kind(build, names, logs=logs, router_prefix=server.prefix(), **options) as stack:
            yield stack, server


def are_free(ports):
    with contextlib.ExitStack() as bound:
        try:
            for port in ports:
                bound.enter_context(socket.create_server(("127.0.0.1", port)))
        except OSError:
            return False
    return True


@pytest.fixture
def ports(worker_id):
    """Consecutive ports of engines, which a restarted engine gets again. They are below the
    system's ephemeral range. Each process of the test runner has its own."""
    number = int(worker_id.removeprefix("gw")) if worker_id != "master" else 0
    while True:
        base = (20 + number % 9) * 1000 + random.randint(0, 29) * 10
        if are_free(base + k + i for k in (0, 300, 600) for i in range(4)):
            break
    return {"engines": (base, base + 300, base + 600), "router": 0, "admin": 0}


def test_a_hanging_name_delays_no_other_worker(build, logs, ports):
    class Half(NamedStack):
        def start_router(self):
            # This worker has an address in its URL, and a name only for its events.
            worker = self.workers[3]
            worker["events"] = worker["events"].replace("127.0.0.1", "hangs-too.test")
            super().start_router()

    records = {"hangs.test": SILENT, "hangs-too.test": SILENT, "a.test": ["127.0.0.1"],
               "b.test": ["127.0.0.1"]}
    names = ["hangs.test", "a.test", "b.test", "127.0.0.1"]
    with stack_of(build, logs, names, records, ports=ports, kind=Half) as (stack, server):
        def others_ready():
            return stack.state(1) == stack.state(2) == "ready"
        stack.wait_until(others_ready, seconds=5)
        assert stack.state(0) not in ("ready", "unverified")
        assert stack.state(3) == "unverified"
        assert post(stack.port, REQUEST).worker in ("w1", "w2", "w3")

        lost = lost_connections(stack)
        stack.restart_engines()
        stack.wait_until(lambda: lost_connections(stack) == lost + 2 and others_ready(), seconds=5)

        stack.wait_until(lambda: "no name server answers" in stack.reason(3))
        server.records.update({"hangs.test": ["127.0.0.1"], "hangs-too.test": ["127.0.0.1"]})
        stack.wait_until(lambda: stack.state(0) == stack.state(3) == "ready")


def lost_connections(stack):
    text = stack.router_metrics()
    return sum(int(n) for n in re.findall(
        r"^sightline_event_connections_lost_total\{.*\} (\d+)$", text, re.MULTILINE))


def test_router_finds_an_engine_at_its_new_address(build, logs, ports):
    records = {"a.test": ["127.0.0.1"]}
    with stack_of(build, logs, ["a.test"], records, ports=ports) as (stack, server):
        stack.wait_until(lambda: stack.state(0) == "ready")
        server.records["a.test"] = ["127.0.0.77"]
        stack.restart_engines(host="127.0.0.77")
        stack.wait_until(lambda: stack.state(0) == "ready" and lost_connections(stack) == 1)
        assert post(stack.port, REQUEST).status == 200
        stack.wait_until(lambda: stack.worker_states()[0]["events"]["seq"] == 0)


def test_addresses_survive_failing_name_servers_but_not_unknown_names(build, logs, ports):
    names = ["silent.test", "fails.test", "gone.test", "half.test"]
    records = {name: ["127.0.0.1"] for name in names}
    with stack_of(build, logs, names, records, ports=ports) as (stack, server):
        def states():
            return [stack.state(i) for i in range(4)]
        stack.wait_until(lambda: states() == ["ready"] * 4)
        server.records = {"silent.test": SILENT, "fails.test": FAILS, "half.test": HALF}
        stack.simulator.stop(signal.SIGKILL)
        asked = len(server.asked)
        stack.wait_until(lambda: set(names) <= set(server.asked[asked:]))
        stack.wait_until(lambda: "unknown" in stack.reason(2))
        stack.start_engines_again()  # another engine may now have the old address
        stack.wait_until(lambda: states() == ["ready", "ready", "down", "ready"])
        for outcome in ("found", "unknown", "unanswered"):
            assert f'sightline_name_lookups_total{{outcome="{outcome}"}} ' in stack.router_metrics()


def test_router_uses_search_domains_hosts_and_their_changes(build, logs, ports):
    names = ["short", "in-hosts", "late"]
    records = {"short.pods.test": ["127.0.0.1"]}
    options = "search nowhere.test pods.test\noptions ndots:5"
    with stack_of(build, logs, names, records, ports=ports, resolv_options=options) as (
            stack, server):
        server.write_hosts("127.0.0.1 in-hosts\n")
        stack.wait_until(lambda: stack.state(0) == stack.state(1) == "ready")
        stack.wait_until(lambda: "unknown" in stack.reason(2))
        assert {"short.nowhere.test", "short.pods.test", "late.pods.test", "late"} <= set(
            server.asked)
        server.records["late.elsewhere.test"] = ["127.0.0.1"]
        server.write_resolv_conf(f"nameserver {server.address}\nsearch elsewhere.test\n")
        stack.wait_until(lambda: stack.state(2) == "ready", seconds=30 * SLOWDOWN)
