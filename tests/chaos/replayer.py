# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""A process that may use NATS but does not have the identity key. It records requests to agents and
routers, and sends them again thousands of times."""

import contextlib
import random
import threading
import time

from nats_server import NatsClient

# Requests to agents, to routers for their load, and to members for lists.
ASKS = ("sl.*.*.*.ask.>", "sl.*.*.*.ask-load")
RECORDED_MAX = 64
ASKS_PER_S = 2000
BURST = 50


class Replayer:
    """A context manager that records and sends until its end. `sent`: the number of messages."""

    def __init__(self, server, seed):
        self._server = server
        self._rng = random.Random(seed)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.sent = 0

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join(timeout=30)

    def wait_until_sent(self, count, stop):
        """Waits until `count` messages were sent again, or `stop` is set."""
        while self.sent < count and self._thread.is_alive() and not stop.is_set():
            time.sleep(0.01)

    def _run(self):
        with contextlib.suppress(OSError), NatsClient(self._server) as client:
            for subject in ASKS:
                client.subscribe(subject)
            recorded = []
            while not self._stop.is_set():
                # The client also receives the messages that it sends.
                while heard := client.next(0.001):
                    if len(recorded) < RECORDED_MAX and heard not in recorded:
                        recorded.append(heard)
                for subject, payload in self._rng.choices(recorded, k=BURST) if recorded else ():
                    client.publish(subject, payload)
                    self.sent += 1
                self._stop.wait(BURST / ASKS_PER_S)
