# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Sends one request at a time through the router, and compares its prediction with the engine."""

import collections
import concurrent.futures
import dataclasses
import json
import re
import time

import openai
import zmq
from engine import BLOCK_SIZE, MODEL
from stack import post
from table import Row, line_of

QUIET_S = 0.2
ANNOUNCED_S = 120


@dataclasses.dataclass
class Reply:
    """The worker and the answer of a request. The plan uses them for the next one."""

    worker: str
    text: str
    prompt_ids: list
    answer_ids: list
    row: Row


class Judge:
    def __init__(self, stack):
        self.stack = stack
        self.rows = []
        self.kind = ""
        self._lost = {}
        self._clients = {}  # by the port of a router

    @property
    def _client(self):
        port = self.stack.port
        if port not in self._clients:
            self._clients[port] = openai.OpenAI(
                base_url=f"http://127.0.0.1:{port}/v1", api_key="none", max_retries=0, timeout=300)
        return self._clients[port]

    def close(self):
        while self._clients:
            self._clients.popitem()[1].close()

    def restart_router(self, meanwhile=lambda: None):
        """Starts another router process. It must rebuild its index from the running workers."""
        self.close()
        self.stack.router.stop()
        meanwhile()
        start = time.monotonic()
        self.stack.start_router()
        # A router that receives KV events over NATS first asks its peers for their worker list.
        self.stack.wait_until(
            lambda: self.stack.get(self.stack.admin_port, "/readyz")[0] == 200)
        print(f"     the new router is ready after {time.monotonic() - start:.1f} s", flush=True)
        self.stack.wait_until(lambda: all(
            w["events"]["seq"] is not None for w in self.stack.worker_states()))

    def about(self, kind):
        """Sets the kind of the next rows."""
        self.kind = kind

    def lost(self, worker, why):
        """Notes that the worker lost its cache. Its next row is the first after the loss."""
        self._lost[worker] = why

    def chat(self, what, messages, stream=False, **fields):
        if isinstance(messages, str):
            messages = [{"role": "user", "content": messages}]
        return self._judge(what, stream, {"messages": messages, **fields})

    def complete(self, what, prompt, stream=False, **fields):
        return self._judge(what, stream, {"prompt": prompt, **fields})

    def _judge(self, what, stream, fields):
        body = {"model": MODEL, "max_tokens": 4, "temperature": 0, **fields}
        self.stack.take_turn()
        self.wait_until_applied()
        ours = self._explain(body)
        before = counted(self.stack.router_metrics(), "sightline_predictions_total")
        headers, parts, usage = self._send(body, stream)
        self._wait_until_idle()
        audit = counted(self.stack.router_metrics(), "sightline_predictions_total") - before
        worker = headers["x-sightline-worker"]
        reused = int(headers["x-sightline-overlap"].partition("/")[0])
        prompt_ids = _prompt_ids(parts)
        row = Row(
            kind=self.kind, what=what, worker=worker, predicted=BLOCK_SIZE * reused,
            actual=usage["prompt_tokens_details"]["cached_tokens"],
            tokens_ours=len(ours["token_ids"]), tokens_engine=usage["prompt_tokens"],
            ids_equal=ours["token_ids"] == prompt_ids, not_counted=ours.get("not_counted") or "",
            first_after=self._lost.pop(worker, ""), audit="".join(audit),
        )
        self.rows.append(row)
        print(line_of(len(self.rows), row), flush=True)
        text, answer_ids = _answer(parts)
        return Reply(worker, text, prompt_ids, answer_ids, row)

    def hang_up(self, messages):
        """Closes a stream after its first event, like a client that leaves. Not judged."""
        body = {"model": MODEL, "max_tokens": 200, "temperature": 0, "messages": messages}
        with self._client.chat.completions.create(**body, stream=True) as stream:
            next(iter(stream))
        self._wait_until_idle()

    def burst(self, many):
        """Sends chats concurrently. Not judged: no prediction can count the others' blocks."""
        with concurrent.futures.ThreadPoolExecutor(len(many)) as pool:
            fields = {"model": MODEL, "max_tokens": 4, "temperature": 0}
            list(pool.map(lambda messages: self._client.chat.completions.create(
                messages=messages, **fields), many))
        self._wait_until_idle()

    def _wait_until_idle(self):
        # A request leaves this gauge last, after all its metrics are counted.
        self.stack.wait_until(
            lambda: "\nsightline_requests_active 0\n" in self.stack.router_metrics())

    def _explain(self, body):
        answer = post(self.stack.admin_port, body, path="/v1/explain")
        if answer.status != 200:
            raise RuntimeError(f"the router does not explain: {answer.status} {answer.body}")
        return json.loads(answer.body)

    def _send(self, body, stream):
        """Returns headers, the JSON objects of the answer (one, or one per event) and usage."""
        known = {k: v for k, v in body.items() if k in SDK_FIELDS}
        extra = {k: v for k, v in body.items() if k not in SDK_FIELDS}
        extra["return_token_ids"] = True
        chat = "messages" in body
        api = self._client.chat.completions if chat else self._client.completions
        if stream:
            known |= {"stream": True, "stream_options": {"include_usage": True}}
        answer = api.with_raw_response.create(**known, extra_body=extra)
        parsed = answer.parse()
        objects = [o.model_dump() for o in parsed] if stream else [parsed.model_dump()]
        return answer.headers, objects, objects[-1]["usage"]

    def wait_until_applied(self):
        """Waits until the router has applied all events that the engines have to publish.

        An engine hands a step's events to its publishing thread before it answers. On a busy
        machine this thread may run much later. The same thread answers replays, one between two
        batches. When two replays in a row have nothing new for the router, no batch waits.
        """
        self.stack.wait_until(
            lambda: not self._newer_batches() and not self._newer_batches(), seconds=ANNOUNCED_S)
        self.stack.wait_until(self.stack.is_told)
        self._wait_until_quiet()

    def _newer_batches(self):
        """Returns the number of replayable batches that the router has not applied. Returns at
        least 1 while the replay endpoint of a newly started engine is unknown."""
        ranks = self.stack.ranks_read()
        if any(endpoint is None for endpoint, _ in ranks):
            return 1
        return sum(batches_after(*rank) for rank in ranks)

    def _wait_until_quiet(self):
        last, since = None, time.monotonic()
        while time.monotonic() - since < QUIET_S:
            now = json.dumps([w["events"] | {"lag_ms": 0} for w in self.stack.worker_states()])
            if now != last:
                last, since = now, time.monotonic()
            time.sleep(0.05)


# The sequence number in the last message of a replay.
REPLAY_END = b"\xff" * 8
SDK_FIELDS = ("model", "messages", "prompt", "max_tokens", "temperature")


def counted(text, name):
    """Sums a router metric over workers, by its label `result`."""
    totals = collections.Counter()
    for labels, value in re.findall(rf"^{name}\{{(.*?)\}} (\S+)$", text, re.MULTILINE):
        result = re.search(r'result="(\w+)"', labels)
        totals[result.group(1) if result else "all"] += float(value)
    return totals


def batches_after(endpoint, sequence):
    """Counts the event batches after `sequence` that an engine's replay socket sends."""
    first = 0 if sequence is None else sequence + 1
    with zmq.Context() as context, context.socket(zmq.DEALER) as socket:
        socket.linger = 0
        socket.rcvtimeo = ANNOUNCED_S * 1000
        socket.connect(endpoint)
        socket.send_multipart([b"", first.to_bytes(8, "big")])
        count = 0
        while socket.recv_multipart()[-2] != REPLAY_END:
            count += 1
        return count


def _prompt_ids(objects):
    for one in objects:
        if one.get("prompt_token_ids") is not None:
            return one["prompt_token_ids"]
        for choice in one["choices"]:
            if choice.get("prompt_token_ids") is not None:
                return choice["prompt_token_ids"]
    return []


def _answer(objects):
    text, ids = "", []
    for choice in (c for one in objects for c in one["choices"]):
        said = choice.get("message") or choice.get("delta") or {}
        text += choice.get("text") or said.get("content") or ""
        ids += choice.get("token_ids") or []
    return text, ids
