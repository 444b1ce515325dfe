# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Clients that send mixed requests: text, repeated images, streamed and whole answers, wrong
requests, and requests whose prompt the router cannot compute."""

import random
import threading
import time

from deployment import NAME
from pictures import image_part, png, text_part
from stack import post

PICTURES = 12
# Shares of requests to an unknown model, and of requests whose prompt the router cannot compute.
UNKNOWN, UNCOUNTED = 0.02, 0.04


class Load:
    """Use it as a context manager.
    ports: the ports of the servers; tests may change the list
    judged: send only requests with a prediction and a reported reuse
    pause_s: the pause between requests of a client"""

    def __init__(self, ports, clients=6, judged=False, pause_s=0.0, seed=1):
        self.ports = list(ports)
        self.judged = judged
        self.pause_s = pause_s
        self.statuses = []
        self._stop = threading.Event()
        self._pictures = [image_part(png(616, 616, seed=i)) for i in range(PICTURES)]
        self._threads = [threading.Thread(target=self._run, args=(seed * 1000 + i,), daemon=True)
                         for i in range(clients)]

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def request(self, dice):
        content = [text_part("Look at this carefully. " * 100), text_part(f"{dice.randrange(50)}")]
        if dice.random() < 0.7:
            content = [dice.choice(self._pictures), text_part(f"What is it? {dice.randrange(5)}")]
        body = {"model": NAME, "messages": [{"role": "user", "content": content}],
                "max_tokens": 16, "stream": dice.random() < 0.8}
        if body["stream"]:
            body["stream_options"] = {"include_usage": True}
        kind = 1 if self.judged else dice.random()
        if kind < UNKNOWN:
            body["model"] = "unknown"
        elif kind < UNKNOWN + UNCOUNTED:
            body["chat_template"] = "{{ messages }}"
        return body

    def _run(self, seed):
        dice = random.Random(seed)
        while not self._stop.is_set():
            try:
                self.statuses.append(post(dice.choice(self.ports), self.request(dice)).status)
            except OSError:
                self.statuses.append(0)
            time.sleep(self.pause_s)
