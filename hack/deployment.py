# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Starts a whole deployment as real processes on free ports: a nats-server, simulated engines with
an agent each, routers that follow the agents, and frontends that use the routers."""

import contextlib
import json
import pathlib
import signal

from nats_server import NatsServer, free_port
from stack import MODELS, Program, Stack, freeze, thaw

NAME = "demo"


class Node:
    """A program that can be killed and started again on the same ports. Each start calls `command`
    with these ports."""

    def __init__(self, name, logs, command, ports):
        self.name = name
        self.logs = logs
        self.command = command
        self.ports = {port: free_port() for port in ports}
        self.program = None
        self.starts = 0

    def launch(self):
        """Starts the program without waiting until it is ready. wait() waits."""
        self.starts += 1
        self.program = Program(self.command(self.ports),
                               self.logs / f"{self.name}.{self.starts}.log")

    def wait(self):
        self.program.wait_for(r"^ready: ")

    def start(self):
        self.launch()
        self.wait()

    def freeze(self):
        """Stops its threads. It keeps its connections, but answers nothing."""
        freeze(self.program.process)

    def thaw(self):
        thaw(self.program.process)

    def kill(self):
        """Ends the program like a crash, with SIGKILL."""
        self.stop(signal.SIGKILL)

    def stop(self, signal_number=signal.SIGTERM):
        if self.is_running():
            self.program.stop(signal_number)
        self.program = None

    def is_running(self):
        return self.program is not None

    @property
    def pid(self):
        return self.program.process.pid

    @property
    def admin_port(self):
        return self.ports["admin"]

    @property
    def port(self):
        return self.ports["client"]


class RouterView(Stack):
    """Shows a router of a deployment as the router of a Stack, for checks that take a Stack. It
    does not start or stop anything."""

    def __init__(self, deployment, node):
        super().__init__(deployment.build, workers=deployment.engines.workers,
                         served_model_name=NAME, logs=deployment.logs)
        self.node = node
        self.router = node.program
        self.port, self.admin_port = node.ports.get("client"), node.admin_port


class Deployment:
    """Use it as a context manager. Options:
    engines, routers, frontends: how many
    engine_flags, agent_flags, router_flags, frontend_flags: further flags of these programs
    roles: of the routers ("" means both)
    nats_url: a function that returns the NATS URL for a node's name
    """

    def __init__(self, build, engines=2, routers=2, frontends=0, **options):
        self.build = pathlib.Path(build).resolve()
        self.logs = pathlib.Path(options.pop("logs", self.build / "deployment-logs"))
        self.model_path = self.build / MODELS / options.pop("model", "qwen2-vl")
        self.nats = NatsServer(self.logs, options.pop("nats_config", ""))
        self.engines = Stack(build, engines=engines, served_model_name=NAME, logs=self.logs,
                             engine_flags=options.pop("engine_flags", []))
        self._nats_url = options.pop("nats_url", lambda name: self.nats.url)
        self._flags = {kind: options.pop(f"{kind}_flags", [])
                       for kind in ("agent", "router", "frontend")}
        self._roles = options.pop("roles", "")
        if options:
            raise TypeError(f"unknown options {sorted(options)}")
        self.agents = [Node(f"agent{i}", self.logs, self._agent_command(i), ["admin"])
                       for i in range(engines)]
        self.routers = [Node(f"router{i}", self.logs, self._router_command(i),
                             ["admin", "selection", "client"]) for i in range(routers)]
        self.frontends = [Node(f"frontend{i}", self.logs, self._frontend_command(i),
                               ["admin", "client"]) for i in range(frontends)]

    @property
    def nodes(self):
        return [*self.agents, *self.routers, *self.frontends]

    def __enter__(self):
        try:
            self.nats.start()
            self.engines.start_engines()
            for node in self.nodes:
                node.launch()
            for node in self.nodes:
                node.wait()
            for router in self.routers:
                self.wait_until_ready(router)
            for frontend in self.frontends:
                self.wait_until_healthy(frontend)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        with contextlib.ExitStack() as everything:
            everything.callback(self.nats.kill)
            everything.callback(self.engines.stop)
            for node in self.nodes:
                everything.callback(node.stop)

    def on_the_way_to(self, router):
        """Returns the processes that an engine's events pass until the router has applied them."""
        programs = [self.engines.simulator, self.nats, router.program,
                    *(agent.program for agent in self.agents)]
        return [program.process for program in programs if program and program.process]

    def view(self, router):
        return RouterView(self, router)

    def wait_until_ready(self, router):
        """Waits until the router reports all workers as ready."""
        view = self.view(router)
        view.wait_until(lambda: [w["state"] for w in view.worker_states()]
                        == ["ready"] * len(self.agents))

    def wait_until_healthy(self, node):
        """Waits until its /readyz answers 200."""
        view = self.view(node)
        view.wait_until(lambda: view.get(node.admin_port, "/readyz")[0] == 200)

    def wait_until_heard(self):
        """Waits until every running router has as many blocks of each engine as the engine holds.
        The engine may generate other answers meanwhile."""
        for i in range(len(self.agents)):
            for router in self.routers:
                if router.is_running():
                    view = self.view(router)
                    view.wait_until(lambda: view.worker_states()[i]["blocks"] == self.held(i))

    def held(self, i):
        """Returns how many blocks the engine holds."""
        told = self.engines.get(self.engines.engine_port(i), "/sim/blocks")[1]
        return len(json.loads(told)["blocks"])

    def worker(self, i):
        return {key: self.engines.workers[i][key] for key in ("name", "url")}

    def _common(self, name):
        return ["--model-path", self.model_path, "--served-model-name", NAME,
                "--nats", self._nats_url(name), "--replica-name", name]

    def _program(self, *arguments):
        return [self.build / "bin/sightline", *arguments]

    def _agent_command(self, i):
        def command(ports):
            worker = ",".join(f"{k}={v}" for k, v in self.engines.workers[i].items())
            return self._program("agent", "--worker", worker, "--admin-port", ports["admin"],
                                 *self._common(f"agent{i}"), *self._flags["agent"])
        return command

    def _router_command(self, i):
        def command(ports):
            workers = []
            for engine in range(len(self.agents)):
                fields = ",".join(f"{k}={v}" for k, v in self.worker(engine).items())
                workers += ["--worker", f"{fields},agent=true"]
            roles = ["--roles", self._roles] if self._roles else []
            if "router" in (self._roles or "router") and self.frontends:
                roles += ["--selection-port", ports["selection"]]
            return self._program("serve", *roles, "--admin-port", ports["admin"],
                                 "--port", ports["client"], *workers,
                                 *self._common(f"router{i}"), *self._flags["router"])
        return command

    def _frontend_command(self, i):
        def command(ports):
            routers = ",".join(f"http://127.0.0.1:{r.ports['selection']}" for r in self.routers)
            return self._program("serve", "--roles", "frontend", "--routers", routers,
                                 "--admin-port", ports["admin"], "--port", ports["client"],
                                 *self._common(f"frontend{i}"), *self._flags["frontend"])
        return command
