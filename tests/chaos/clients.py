# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Clients of the chaos run. They send text and images, streaming or not. Some of them hang up."""

import dataclasses
import http.client
import json
import random
import threading
import time

from pictures import image_part, png, text_part

# The router waits ROUTER_PATIENCE_S for an engine, and tries at most three engines.
ROUTER_PATIENCE_S = 2.0
ENDS_WITHIN_S = 3 * ROUTER_PATIENCE_S + 6
WORDS = "boots lamp kettle price size colour crate garden window bridge letter music".split()


@dataclasses.dataclass
class Outcome:
    """The result of one request."""
    request: str
    kind: str  # "text", "picture", each with "stream" or "whole"
    start: float  # Unix time
    end: float = 0.0
    status: int = 0  # 0: no answer
    worker: str = ""
    left: bool = False  # the client hung up on purpose
    complete: bool = False  # the answer came to its regular end
    trouble: str = ""  # why it did not
    wrong: bool = False  # the answer is of another request, or does not have OpenAI's form
    mute: bool = False  # the stream ended neither with [DONE] nor with an error event

    @property
    def fine(self):
        return not self.wrong and (
            self.left or (self.complete and 200 <= self.status < 300))

    @property
    def verdict(self):
        if self.wrong:
            return "wrong answer"
        if self.left:
            return "client hung up"
        if self.fine:
            return "answered"
        if self.status == 0:
            return "no answer"
        return f"status {self.status}" if self.status >= 300 else "broken stream"


class Prompts:
    """Request bodies with shared beginnings. Not thread-safe: each client has its own."""

    _pictures = [image_part(png(112, 112, seed=i)) for i in range(24)]

    def __init__(self, seed):
        self._rng = random.Random(seed)

    def words(self, count):
        return " ".join(self._rng.choice(WORDS) for _ in range(count))

    def next(self):
        """Returns (kind, body)."""
        rng = self._rng
        stream = rng.random() < 0.6
        shop = f"You answer for shop number {rng.randrange(6)}. " * 6
        if rng.random() < 0.4:
            content = [rng.choice(self._pictures), text_part(self.words(rng.randrange(3, 30)))]
            kind = "picture"
        else:
            content = self.words(rng.randrange(5, 150))
            kind = "text"
        messages = [{"role": "system", "content": shop}, {"role": "user", "content": content}]
        body = {"model": "demo", "messages": messages, "max_tokens": rng.randrange(1, 24)}
        if stream:
            body["stream"] = True
            if rng.random() < 0.5:
                body["stream_options"] = {"include_usage": True}
        return f"{kind} {'stream' if stream else 'whole'}", body


class Client(threading.Thread):
    """Sends one request after the other until the stop event is set. Read outcomes after join()."""

    def __init__(self, number, port, stop, seed):
        super().__init__(name=f"client-{number}", daemon=True)
        self.outcomes = []
        self._number = number
        self._port = port
        self._stop_event = stop
        self._rng = random.Random(seed * 1000 + number)
        self._prompts = Prompts(seed * 1000 + number)

    def run(self):
        while not self._stop_event.is_set():
            kind, body = self._prompts.next()
            request = f"c{self._number}-{len(self.outcomes)}"
            outcome = Outcome(request, kind, time.time())
            hang_up_after = self._rng.randrange(0, 8) if self._rng.random() < 0.12 else None
            try:
                self._ask(outcome, body, hang_up_after)
            except TimeoutError:
                outcome.trouble = "hanging"
            except (OSError, http.client.HTTPException) as failure:
                outcome.trouble = type(failure).__name__
            except Exception as failure:  # an unreadable answer is an outcome too
                outcome.trouble, outcome.wrong = repr(failure), True
            outcome.end = time.time()
            self.outcomes.append(outcome)

    def _ask(self, outcome, body, hang_up_after):
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=ENDS_WITHIN_S)
        try:
            headers = {"content-type": "application/json", "x-request-id": outcome.request}
            connection.request("POST", "/v1/chat/completions", json.dumps(body), headers)
            if hang_up_after == 0:
                outcome.left = True
                return
            response = connection.getresponse()
            outcome.status = response.status
            outcome.worker = response.headers.get("x-sightline-worker", "")
            if response.headers.get("content-type", "").startswith("text/event-stream"):
                self._read_events(outcome, response, hang_up_after, body)
            else:
                self._read_whole(outcome, json.loads(response.read()), body)
        finally:
            connection.close()

    @staticmethod
    def _read_whole(outcome, content, body):
        if outcome.status >= 300:
            outcome.trouble = content["error"]["message"]
            return
        outcome.complete = True
        check(outcome, content, content["usage"], body)

    @staticmethod
    def _read_events(outcome, response, hang_up_after, body):
        events, last = 0, {}
        for line in response:
            if not line.startswith(b"data: "):
                continue
            events += 1
            if line.strip() == b"data: [DONE]":
                outcome.complete = True
                check(outcome, last, last.get("usage"), body)
                continue
            last = json.loads(line[6:])
            if "error" in last:
                outcome.trouble = last["error"]["message"]
            if events == hang_up_after:
                outcome.left = True
                return
        outcome.mute = not outcome.complete and not outcome.trouble


def check(outcome, content, usage, body):
    """Checks an answer: the simulator copies the request's id into it and writes all max_tokens."""
    asked = "stream" not in body or "stream_options" in body
    if content["id"] != f"chatcmpl-{outcome.request}":
        outcome.trouble, outcome.wrong = f"answer {content['id']}", True
    elif asked != (usage is not None):
        outcome.trouble, outcome.wrong = f"usage {usage}, asked for: {asked}", True
    elif asked and usage["completion_tokens"] != body["max_tokens"]:
        outcome.trouble, outcome.wrong = f"{usage} for {body['max_tokens']} tokens", True
