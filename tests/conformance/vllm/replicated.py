# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Two routers that receive KV events from agents over NATS, in place of one that reads the engines.
Requests go to the routers in turn."""

import contextlib
import json

from deployment import Node
from nats_server import NatsServer
from stack import Stack

ROUTERS = 2


class Replicated(Stack):
    """Like a Stack with given workers. Each request goes to the router whose turn it is."""

    def __init__(self, build, **options):
        super().__init__(build, **options)
        self._nats = NatsServer(self.logs)
        self._agents = [Node(f"agent{i}", self.logs, self._agent(i), ["admin"])
                        for i in range(len(self.workers))]
        self._routers = [Node(f"router{i}", self.logs, self._router(i), ["client", "admin"])
                         for i in range(ROUTERS)]
        self._turn = 0

    @property
    def _node(self):
        return self._routers[self._turn % ROUTERS]

    @property
    def router(self):
        return self._node

    @router.setter
    def router(self, _):
        pass

    @property
    def port(self):
        return self._node.port

    @property
    def admin_port(self):
        return self._node.admin_port

    def take_turn(self):
        self._turn += 1

    def start_router(self):
        """Starts every process that does not run yet."""
        if self._nats.process is None:
            self._nats.start()
        for node in [*self._agents, *self._routers]:
            if not node.is_running():
                node.start()
        self.wait_until(self._are_ready, seconds=60)

    def stop(self):
        with contextlib.ExitStack() as everything:
            everything.callback(self._nats.kill)
            for node in [*self._agents, *self._routers]:
                everything.callback(node.stop)

    def _are_ready(self):
        return all(worker["state"] in self.ready_states for node in self._routers
                   for worker in json.loads(self.get(node.admin_port, "/v1/workers")[1]))

    def ranks_read(self):
        ranks = [rank for node in self._agents
                 for worker in json.loads(self.get(node.admin_port, "/v1/workers")[1])
                 for rank in worker["ranks"]]
        return [(rank["replay_endpoint"], rank["seq"]) for rank in ranks]

    def is_told(self):
        """Returns whether every router has applied all that every agent has published."""
        told = {(worker["name"], rank["rank"]): (rank["epoch"], rank["position"])
                for node in self._agents
                for worker in json.loads(self.get(node.admin_port, "/v1/workers")[1])
                for rank in worker["ranks"]}
        return all(
            {(s["worker"], s["rank"]): (s["epoch"], s["position"])
             for s in json.loads(self.get(node.admin_port, "/v1/replicas")[1])["streams"]} == told
            for node in self._routers)

    def _common(self, name):
        return ["--model-path", self.model_path, "--served-model-name", self.name,
                "--nats", self._nats.url, "--replica-name", name]

    def _agent(self, i):
        def command(ports):
            return [self.build / "bin/sightline", "agent", "--admin-port", ports["admin"],
                    "--worker", f"name=w{i},url={self.workers[i]['url']}",
                    *self._common(f"agent{i}")]
        return command

    def _router(self, i):
        def command(ports):
            workers = []
            for n, worker in enumerate(self.workers):
                workers += ["--worker", f"name=w{n},url={worker['url']},agent=true"]
            return [self.build / "bin/sightline", "serve", "--port", ports["client"],
                    "--admin-port", ports["admin"], *workers, *self._common(f"router{i}"),
                    *self.router_flags]
        return command
