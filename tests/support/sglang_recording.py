# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""A server that replays a recorded session of SGLang. It sends the recorded answer to each chat
request of the session, and publishes the recorded events. It keeps its published events, and
replays them on request like SGLang. A request that is not in the recording gets 500."""

import json
import pathlib
import threading

import zmq

from fake_engine import FakeEngine, response

FACTS = pathlib.Path(__file__).resolve().parents[1] / "data/fleet"
END = b"\xff" * 8


def lines_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


class Publisher:
    """A PUB socket and a replay socket. One thread owns both."""

    def __init__(self):
        self._context = zmq.Context()
        self._sockets = {kind: self._context.socket(kind) for kind in (zmq.PUB, zmq.ROUTER)}
        self.ports = {kind: socket.bind_to_random_port("tcp://127.0.0.1")
                      for kind, socket in self._sockets.items()}
        self._published = []  # (topic, sequence, payload)
        self._inbox = self._context.socket(zmq.PAIR)
        self._inbox.bind("inproc://inbox")
        self._outbox = self._context.socket(zmq.PAIR)
        self._outbox.connect("inproc://inbox")
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def publish(self, frames):
        self._outbox.send_multipart(frames)

    def close(self):
        self._outbox.send(b"")
        self._thread.join()
        self._context.destroy(linger=0)

    def _run(self):
        poller = zmq.Poller()
        poller.register(self._inbox, zmq.POLLIN)
        poller.register(self._sockets[zmq.ROUTER], zmq.POLLIN)
        while True:
            ready = dict(poller.poll())
            if self._inbox in ready:
                frames = self._inbox.recv_multipart()
                if frames == [b""]:
                    return
                self._published.append(frames)
                self._sockets[zmq.PUB].send_multipart(frames)
            if self._sockets[zmq.ROUTER] in ready:
                self._replay(*self._sockets[zmq.ROUTER].recv_multipart())

    def _replay(self, peer, empty, start):
        for topic, sequence, payload in self._published:
            if sequence >= start:
                self._sockets[zmq.ROUTER].send_multipart([peer, empty, topic, sequence, payload])
        self._sockets[zmq.ROUTER].send_multipart([peer, empty, b"", END, b""])


class SglangRecording(FakeEngine):
    def __init__(self, name, captures, session):
        events = lines_of(captures / f"sglang-{session}/events.jsonl")
        self._frames = {e["seq"]: [bytes.fromhex(f) for f in e["frames_hex"]] for e in events}
        # Every process first sends a clear. The recording's subscriber connected after it.
        if 0 not in self._frames:
            first = lines_of(captures / "sglang-inproc/events.jsonl")[0]["frames_hex"]
            self._frames[0] = [bytes.fromhex(f) for f in first]
        self.exchanges = [e for e in lines_of(captures / f"sglang-{session}/exchanges.jsonl")
                          if e["path"] == "/v1/chat/completions" and e["n"] is not None]
        self._next = 0
        self.publisher = Publisher()
        self.last_sequence = -1
        self._publish_to(0)
        super().__init__(name, self._answer)

    @property
    def worker(self):
        return {**super().worker, "family": "sglang"}

    def close(self):
        super().close()
        self.publisher.close()

    def quiet_answers(self):
        info = json.loads((FACTS / "sglang-server_info.json").read_text())
        info["kv_events"]["endpoint_port_base"] = self.publisher.ports[zmq.PUB]
        info["kv_events"]["replay_endpoint_port_base"] = self.publisher.ports[zmq.ROUTER]
        loads = (FACTS / "sglang-loads.json").read_text()
        return {"/health": (200, ""), "/server_info": (200, json.dumps(info)),
                "/v1/models": (200, (FACTS / "sglang-models.json").read_text()),
                "/v1/loads?include=core&format=json": (200, loads),
                "/kv_event_sources": (404, "{}"), "/metrics": (404, "{}"),
                "/version": (404, "{}"), "/is_sleeping": (404, "{}")}

    def _publish_to(self, sequence):
        while self.last_sequence < sequence:
            self.last_sequence += 1
            self.publisher.publish(self._frames[self.last_sequence])

    def _answer(self, connection, request):
        """Sends the next recorded exchange with these messages. It may skip exchanges."""
        asked = json.loads(request[3])["messages"]
        for place in range(self._next, len(self.exchanges)):
            exchange = self.exchanges[place]
            if json.loads(exchange["request_body"])["messages"] != asked:
                continue
            self._next = place + 1
            # Publishes before the answer, so a client with the answer knows the published events.
            self._publish_to(max(exchange["event_seqs"], default=self.last_sequence))
            connection.sendall(response(exchange["status"], exchange["response_body"]))
            return True
        connection.sendall(response(500, '{"error":"not recorded"}'))
        return True
