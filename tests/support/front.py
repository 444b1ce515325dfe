# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""A proxy before a simulated engine's HTTP port. It can answer some paths itself, or not at all."""

import contextlib
import http.client
import threading

from fake_engine import FakeEngine, response
from stack import SLOWDOWN, Stack


class Front(FakeEngine):
    """Forwards requests to the engine. KV events do not go through it."""

    def __init__(self, worker):
        super().__init__(worker["name"], self._pass_on)
        self.target = int(worker["url"].rsplit(":", 1)[1])
        self.answers = {}  # path -> (status, body) given in the engine's place
        self.silent = set()  # paths without an answer
        self.asked = {}  # path -> number of times
        self._released = threading.Event()

    @property
    def worker(self):
        """Only its name and URL, because the engine's API names the endpoints of its events."""
        return {"name": self.name, "url": f"http://127.0.0.1:{self.port}"}

    def quiet_answers(self):
        return {}

    def close(self):
        self._released.set()
        super().close()

    def _pass_on(self, connection, request):
        method, path, headers, body = request
        self.asked[path] = self.asked.get(path, 0) + 1
        if path in self.silent:
            self._released.wait(60 * SLOWDOWN)
            return False
        if path in self.answers:
            connection.sendall(response(*self.answers[path]))
            return True
        engine = http.client.HTTPConnection("127.0.0.1", self.target, timeout=60 * SLOWDOWN)
        engine.request(method, path, body, {"content-type": "application/json"})
        answer = engine.getresponse()
        kind = answer.headers.get("content-type", "application/json")
        connection.sendall(response(answer.status, answer.read(), kind))
        engine.close()
        return True


@contextlib.contextmanager
def fronted(build, logs, engines, flags=()):
    """Starts a router before simulated engines with a Front each. Yields (stack, fronts)."""
    stack = Stack(build, engines=engines, engine_flags=["--blocks", 256], logs=logs,
                  router_flags=list(flags))
    with contextlib.ExitStack() as cleanup:
        cleanup.callback(stack.stop)
        stack.start_engines()
        fronts = [cleanup.enter_context(Front(worker)) for worker in stack.workers]
        stack.workers = [front.worker for front in fronts]
        stack.start_router()
        yield stack, fronts
