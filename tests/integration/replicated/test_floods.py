# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Peers that have the key and send useless requests. The agent refuses and counts them, they cost a
limited amount of memory, and others are served as before."""

import contextlib
import itertools
import math
import pathlib
import re
import struct
import threading
import time

import pytest

import sealing
from deployment import Deployment
from nats_server import NatsClient
from pictures import png
from predictions import picture_body, send_all
from replicated import another_router, judges, member, stream, wait_until_equal
from sealing import Sealer
from stack import SLOWDOWN

PREFIX = "sl.default.default.0."
ASKS = PREFIX + "ask.w0.0"
PEER = "peer-1"
MANY = 2**32 - 1
# An agent answers one reader this often per second (see ReaderLimitOptions).
ASKS_MAX = 500
LATE_S = 2
# The key of a deployment without a key file (see common/contract/identity_key.cc).
KEY = b"sightline-development-key-000001"
MIB = 1 << 20
# The numbers of requests. Those of one name must increase, also from one test to the next.
NUMBERS = itertools.count(1)


@pytest.fixture(scope="module")
def deployment(build, shared_logs):
    with Deployment(build, engines=1, routers=1, logs=shared_logs / "floods") as running:
        send_all(running.view(running.routers[0]),
                 [picture_body(png(224, 224, seed=i)) for i in range(6)])
        running.wait_until_heard()
        yield running


@pytest.fixture
def view(deployment):
    return deployment.view(deployment.routers[0])


class Peer:
    """A process that has the key and is not a router of the deployment."""

    def __init__(self, deployment, view, name=PEER):
        self.deployment = deployment
        self.name = name
        self.sealer = Sealer(KEY, member(view, "agent0"))
        self.client = NatsClient(deployment.nats)
        self.client.subscribe(PREFIX + "to." + name)
        self.epoch = int(stream(view)["epoch"], 16)
        self.agent = int(stream(view)["agent"]["instance"], 16)

    def sealed(self, message):
        return self.sealer.seal_ask(ASKS, message, self.agent, next(NUMBERS))

    def ask(self, *messages):
        for message in messages:
            self.client.publish(ASKS, self.sealed(message))
        self.client.flush()

    def wait_until_read(self, view):
        """Waits until the agent has read all earlier requests: it reads them in order."""
        view.wait_until(lambda: self.ask(sealing.question(self.name, 1)) or
                        self.answer(sealing.ANSWER, 1) is not None)

    def answer(self, kind, seconds=5):
        """Returns the next answer of this kind, or None if there is no answer in time."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            heard = self.client.next(left)
            if heard is None:
                return None
            # A chunk is too long for this test's own BLAKE3. Its content does not matter here.
            opened = heard[1][1:-16]
            if len(heard[1]) < 900:
                opened = self.sealer.opened(*heard)
                assert opened is not None, "the agent's tag is not what this test computes"
            if sealing.kind_of(opened) == kind:
                return sealing.body_of(opened)
        return None


@pytest.fixture
def peer(deployment, view):
    view.wait_until(lambda: member(view, "agent0"))
    made = Peer(deployment, view)
    with made.client:
        yield made


def agent_value(deployment, series):
    text = deployment.engines.get(deployment.agents[0].admin_port, "/metrics")[1].decode()
    found = re.search(rf"^{re.escape(series)} (\S+)$", text, re.MULTILINE)
    return float(found.group(1)) if found else 0


def refused(deployment, reason):
    return agent_value(deployment, f'sightline_agent_asks_refused_total{{reason="{reason}"}}')


def untaken(deployment):
    """Messages that the slow agent dropped because its inbox was full."""
    return agent_value(deployment,
                       'sightline_nats_dropped_total{connection="control",reason="inbox-full"}')


def replies(deployment, kind):
    return agent_value(deployment,
                       f'sightline_agent_replies_total{{worker="w0",kind="{kind}"}}')


def memory(deployment):
    """Returns the agent's resident memory in bytes."""
    status = pathlib.Path(f"/proc/{deployment.agents[0].pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+) kB", status).group(1)) << 10


def test_agent_answers_a_peer_with_the_key(peer):
    peer.ask(sealing.question(PEER, 7))
    nonce, = struct.unpack_from("<Q", peer.answer(sealing.ANSWER))
    assert nonce == 7


def test_agent_refuses_and_counts_requests_for_missing_data(deployment, view, peer):
    foreign, gone = refused(deployment, "foreign"), replies(deployment, "dump-gone")
    malformed, large = refused(deployment, "malformed"), refused(deployment, "too-large")
    # A range after the end, chunks of no dump, and chunks that the dump does not have.
    peer.ask(sealing.range_ask(PEER, peer.epoch, 2**63, 2**64 - 1))
    peer.ask(sealing.chunk_ask(PEER, 2**64 - 1, [0, MANY]))
    assert peer.answer(sealing.GONE) is not None
    peer.ask(sealing.dump_ask(PEER, peer.epoch))
    offer = peer.answer(sealing.OFFER)
    dump, = struct.unpack_from("<Q", offer)
    peer.ask(sealing.chunk_ask(PEER, dump, [MANY] * 64))
    view.wait_until(lambda: refused(deployment, "foreign") == foreign + 1 + 64)
    assert replies(deployment, "dump-gone") == gone + 1
    # More chunks than a request may name, fewer than it says, and a request of a megabyte.
    peer.ask(sealing.chunk_ask(PEER, dump, [0] * 65))
    counts_only = sealing.message(sealing.CHUNK_ASK,
                                  b"\x06\0" + PEER.encode() + struct.pack("<QI", dump, MANY))
    backwards = sealing.range_ask(PEER, peer.epoch, 9, 3)
    peer.ask(counts_only, backwards)
    peer.client.publish(ASKS, b"\x01" + bytes(900_000))
    view.wait_until(lambda: refused(deployment, "malformed") == malformed + 3)
    view.wait_until(lambda: refused(deployment, "too-large") == large + 1)
    assert peer.answer(sealing.CHUNK, seconds=0.2) is None


def test_agent_answers_an_endless_range_with_its_whole_ring(deployment, peer):
    ranges = replies(deployment, "range")
    peer.ask(sealing.range_ask(PEER, peer.epoch, 0, 2**64 - 1))
    assert peer.answer(0) is not None, "the frames that there are"
    assert replies(deployment, "range") == ranges + 1


def test_flood_of_oversized_requests_delays_no_other_router(deployment, view, peer):
    def not_answered():
        return (refused(deployment, "reader-limit") + refused(deployment, "repeated") +
                untaken(deployment))

    asks, counted = oversized(peer), not_answered()
    peer.client.close()  # no client receives the answers
    told = expect_all_served_during_flood(deployment, view, asks, seed=100)
    other = Peer(deployment, view, "peer-2")
    with other.client:
        other.wait_until_read(view)
    # The agent may read the requests later than they were sent. It answers some of them in each
    # second that the flood touches.
    answered_max = ASKS_MAX * (math.ceil(time.monotonic() - told.start) + 1)
    view.wait_until(lambda: not_answered() - counted >= told.sent - answered_max)
    assert stream(view)["health"] == "verified"


def test_peer_that_reads_no_answers_delays_no_router(deployment, view):
    silent = Peer(deployment, view, "peer-3")
    with silent.client:
        expect_all_served_during_flood(deployment, view, oversized(silent), seed=200)
    view.wait_until(lambda: stream(view)["health"] == "verified")


def oversized(peer):
    name, epoch = peer.name, peer.epoch
    peer.ask(sealing.dump_ask(name, epoch))
    dump, = struct.unpack_from("<Q", peer.answer(sealing.OFFER))
    return [peer.sealed(one) for one in (
        sealing.dump_ask(name, epoch), sealing.chunk_ask(name, dump, [0] * 64),
        sealing.range_ask(name, epoch, 0, 2**64 - 1), sealing.chunk_ask(name, dump, [MANY] * 64))]


def expect_all_served_during_flood(deployment, view, asks, seed):
    """During the flood a new router learns all blocks, and new events reach all routers quickly."""
    before = memory(deployment)
    with flood(deployment, asks) as told, judges(deployment) as all_judges:
        with another_router(deployment, "late", states=("ready",)) as late:
            for i in range(3):
                send_all(view, [picture_body(png(224, 224, seed=seed + i))])
                assert wait_until_equal(all_judges, 1) < LATE_S * SLOWDOWN
            assert stream(late)["health"] == "verified"
        # If the sender is behind 2,000 requests per second, it sends without a pause.
        view.wait_until(lambda: told.seconds() > 2 and told.sent > 1_000 * told.seconds())
        most = max(told.memory)
    # Instrumented programs keep freed memory for a while, to detect its use.
    assert most - before < 64 * MIB * SLOWDOWN, f"{(most - before) / MIB:.0f} MiB more"
    return told


class Flood:
    """The requests sent, and the agent's memory meanwhile."""

    def __init__(self):
        self.start = time.monotonic()
        self.end = None
        self.sent = 0
        self.memory = []

    def seconds(self):
        return (self.end or time.monotonic()) - self.start


@contextlib.contextmanager
def flood(deployment, asks):
    """Sends the requests repeatedly, 2,000 per second."""
    told, ended = Flood(), threading.Event()

    def send():
        with NatsClient(deployment.nats) as client:
            while not ended.is_set():
                for ask in asks * 25:
                    client.publish(ASKS, ask)
                client.flush()
                told.sent += len(asks) * 25
                told.memory.append(memory(deployment))
                ended.wait(told.start + told.sent / 2_000 - time.monotonic())
        told.end = time.monotonic()

    thread = threading.Thread(target=send)
    thread.start()
    try:
        yield told
    finally:
        ended.set()
        thread.join()
