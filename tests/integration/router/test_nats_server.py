# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""The nats-server that tests start, and what the documented permissions separate."""

import pathlib
import socket

import pytest

from nats_server import NatsClient, NatsServer

TWO_TENANTS = """
authorization { users = [
  {user: a, password: a, permissions: {publish: "sl.team.a.>", subscribe: "sl.team.a.>"}}
  {user: b, password: b, permissions: {publish: "sl.team.b.>", subscribe: "sl.team.b.>"}}
] }
"""
ANSWER_S = 10


def test_reader_receives_messages_until_the_server_is_killed(logs):
    with NatsServer(logs) as server:
        with NatsClient(server) as writer, NatsClient(server) as reader:
            reader.subscribe("sl.*.members")
            payload = bytes(range(256)) + b"\r\nPING\r\n"
            writer.publish("sl.a.members", payload)
            writer.publish("sl.other", b"not asked for")
            writer.publish("sl.b.members", b"")
            assert reader.next() == ("sl.a.members", payload)
            assert reader.next() == ("sl.b.members", b"")
            server.kill()
            with pytest.raises((ConnectionError, OSError)):
                reader.flush()
        server.start()
        with NatsClient(server) as again:
            again.flush()


def test_a_frozen_server_keeps_connections_and_answers_nothing(logs):
    with NatsServer(logs) as server, NatsClient(server) as client:
        server.freeze()
        try:
            assert client.next(seconds=0.3) is None
            client.publish("sl.x", b"waits")
            with pytest.raises(TimeoutError):
                socket_of_new_client(server)
        finally:
            server.thaw()
        client.flush()


def test_freeze_stops_all_threads_of_the_server(logs):
    def states(process):
        # The third field, after the name in brackets (proc(5)).
        return {stat.read_text().rpartition(")")[2].split()[0]
                for stat in pathlib.Path(f"/proc/{process.pid}/task").glob("*/stat")}

    with NatsServer(logs) as server:
        for _ in range(50):
            server.freeze()
            assert states(server.process) == {"T"}
            server.thaw()


def test_freeze_refuses_a_server_that_has_ended(logs):
    with NatsServer(logs) as server:
        server.process.kill()
        with pytest.raises(RuntimeError, match="has ended"):
            server.freeze()


def socket_of_new_client(server):
    """The kernel accepts the connection, but the server sends nothing."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=0.3) as connection:
        connection.recv(1)


def test_a_user_of_another_scope_receives_and_writes_nothing(logs):
    with NatsServer(logs, TWO_TENANTS) as server:
        with (NatsClient(server, "a", "a") as a, NatsClient(server, "a", "a") as also_a,
              NatsClient(server, "b", "b") as b):
            also_a.subscribe("sl.team.a.>")
            for subject in ("sl.team.a.>", "sl.team.a.0.kv.w0.0", "sl.>", ">"):
                b.subscribe(subject)
            assert len(b.errors) == 4, b.errors
            b.publish("sl.team.a.0.kv.w0.0", b"forged")
            b.flush()
            a.publish("sl.team.a.0.kv.w0.0", b"true")
            a.flush()
            assert also_a.next(ANSWER_S) == ("sl.team.a.0.kv.w0.0", b"true")
            b.flush()
            assert b.next(seconds=0.2) is None
            assert len(b.errors) == 5, b.errors
