# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Simulates the routers and frontends of a bed with fake nodes, for the operator's requests. Their
pods get addresses of this machine's loopback. There this process accepts what the operator pushes,
and returns it. It admits every worker of a list."""

import collections
import contextlib
import http.server
import json
import selectors
import socket
import threading
import time

from testbed import bed as beds
from testbed.api import Api, LastingApi

ADMIN_PORT = 9090
LOOK_S = 0.2
ASK_S = 10
NODES = 3
# Enough for the objects of any test.
PODS_A_NODE = "1000"
MERGE = "application/merge-patch+json"


def give_addresses(bed):
    """Gives the nodes loopback addresses that no other bed has, and room for many pods."""
    number = (bed.ports["etcd"] - beds.FIRST_PORT) // beds.BLOCK
    api = Api(bed)
    for i in range(NODES):
        cidr = f"127.{1 + number // 4}.{number % 4 * 64 + i * 16}.0/20"
        node = f"/api/v1/nodes/fake-{i}"
        for path, change in ((node, {"spec": {"podCIDR": cidr, "podCIDRs": [cidr]}}),
                             (f"{node}/status", {"status": {
                                 name: {"pods": PODS_A_NODE}
                                 for name in ("capacity", "allocatable")}})):
            status, body = api.call(path, "PATCH", change, MERGE)
            assert status == 200, body


class State:
    """What the operator pushed to one process."""

    def __init__(self, uid):
        self.uid = uid
        self.list, self.settings = {}, {}

    def answer(self, path):
        if path == "/v1/workers":
            return [{"name": worker["name"], "state": "ready", "ready": True}
                    for worker in self.list.get("workers", [])]
        if path == "/v1/workers/list":
            return {"generation": self.list.get("generation"), "pushed": self.list}
        if path == "/v1/settings":
            return [{"name": name, "value": value, "origin": "push"}
                    for name, value in self.settings.items()]
        return {"members": [], "nats": [{"connected": True}]}

    def take(self, path, body):
        """Returns whether the push is accepted. An older list is not."""
        if path == "/v1/settings":
            self.settings = body["settings"]
        elif body["generation"] < self.list.get("generation", 0):
            return False
        else:
            self.list = body
        return True


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1

    def do_GET(self):
        self._say(200, self.server.answer(self.path))

    def do_PUT(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        is_taken = "Authorization" in self.headers and self.server.take(self.path, body)
        self._say(200 if is_taken else 409, {})

    def log_message(self, *_):
        """Logs nothing: tests print what they need."""

    def _say(self, status, value):
        content = json.dumps(value).encode()
        self.send_response_only(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
        self.wfile.flush()


class Answering:
    """Answers at the addresses of all these pods while it is used as a context manager."""

    def __init__(self, bed):
        self._api = LastingApi(bed)
        self._listeners = {}
        self._states = collections.defaultdict(lambda: State(None))
        self._selector = selectors.DefaultSelector()
        self._is_over = threading.Event()
        self._threads = [threading.Thread(target=run, daemon=True)
                         for run in (self._look, self._listen)]

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._is_over.set()
        for thread in self._threads:
            thread.join()
        for listener in self._listeners.values():
            listener.close()

    def _look(self):
        while not self._is_over.wait(LOOK_S):
            listed = self._api.get("/api/v1/pods?labelSelector="
                                   "app.kubernetes.io%2Fcomponent%20in%20(router,frontend)")
            for pod in (listed or {"items": []})["items"]:
                address = pod["status"].get("podIP")
                if address:
                    self._stand_at(address, pod["metadata"]["uid"])

    def _stand_at(self, address, uid):
        if self._states[address].uid != uid:
            self._states[address] = State(uid)
        if address not in self._listeners:
            self._listeners[address] = listener = socket.create_server((address, ADMIN_PORT))
            self._selector.register(listener, selectors.EVENT_READ, address)

    def _listen(self):
        while not self._is_over.is_set():
            if not self._selector.get_map():
                time.sleep(LOOK_S)
                continue
            for key, _ in self._selector.select(LOOK_S):
                connection, peer = key.fileobj.accept()
                connection.settimeout(ASK_S)
                threading.Thread(target=self._serve, args=(connection, peer, key.data),
                                 daemon=True).start()

    def _serve(self, connection, peer, address):
        with connection, contextlib.suppress(OSError):
            _Handler(connection, peer, self._states[address])
