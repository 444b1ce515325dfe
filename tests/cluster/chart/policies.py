# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""What NetworkPolicies allow (networking.k8s.io/v1), and a recorder of the connections that pods of
a bed begin. The networks of tests enforce no policy."""

import ctypes
import dataclasses
import json
import socket
import struct
import threading

from testbed import network

ALL_PROTOCOLS = 0x0003
# SO_ATTACH_FILTER, SO_RCVBUFFORCE; SOL_PACKET and its PACKET_STATISTICS
ATTACH_FILTER, RECEIVE_BUFFER, PACKETS, STATISTICS = 26, 33, 263, 6
BUFFER_BYTES = 16 << 20
NAME_SERVER = 53
# Passes Ethernet frames with IPv4: TCP with SYN and without ACK, and UDP to name servers.
FILTER = [
    (0x28, 0, 0, 12), (0x15, 0, 12, 0x0800),           # IPv4
    (0x28, 0, 0, 20), (0x45, 10, 0, 0x1FFF),           # its first fragment
    (0xB1, 0, 0, 14), (0x30, 0, 0, 23),                # x = its header's length; the protocol
    (0x15, 4, 0, 17), (0x15, 0, 6, 6),
    (0x50, 0, 0, 27), (0x54, 0, 0, 0x12), (0x15, 2, 3, 0x02),
    (0x48, 0, 0, 16), (0x15, 0, 1, NAME_SERVER),
    (0x06, 0, 0, 128), (0x06, 0, 0, 0),
]


@dataclasses.dataclass(frozen=True)
class Connection:
    source: str
    target: str
    port: int
    protocol: str = "TCP"


def parsed(frame):
    header = 14 + (frame[14] & 0xF) * 4
    protocol = {6: "TCP", 17: "UDP"}[frame[23]]
    return Connection(socket.inet_ntoa(frame[26:30]), socket.inet_ntoa(frame[30:34]),
                      struct.unpack_from("!H", frame, header + 2)[0], protocol)


class Recorder:
    """Records connections begun in a bed's network while it is used as a context manager."""

    def __init__(self, bed):
        self._bed = bed
        self._over = threading.Event()
        self.seen = set()
        self.lost = 0

    def __enter__(self):
        with network.inside(self._bed):
            self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW,
                                         socket.htons(ALL_PROTOCOLS))
        self._socket.setsockopt(socket.SOL_SOCKET, RECEIVE_BUFFER, BUFFER_BYTES)
        self._socket.settimeout(0.2)
        program = b"".join(struct.pack("HBBI", *line) for line in FILTER)
        self._program = ctypes.create_string_buffer(program)
        self._socket.setsockopt(socket.SOL_SOCKET, ATTACH_FILTER, struct.pack(
            "HL", len(FILTER), ctypes.addressof(self._program)))
        self._thread = threading.Thread(target=self._read)
        self._thread.start()
        return self

    def _read(self):
        while not self._over.is_set():
            try:
                self.seen.add(parsed(self._socket.recv(256)))
            except TimeoutError:
                continue

    def __exit__(self, *_):
        self._over.set()
        self._thread.join()
        counts = self._socket.getsockopt(PACKETS, STATISTICS, 8)
        self.lost = struct.unpack("II", counts)[1]
        self._socket.close()


def objects_of(stream):
    """Yields the JSON documents of a text. The last one may be cut off."""
    decoder, at = json.JSONDecoder(), 0
    while True:
        while at < len(stream) and stream[at].isspace():
            at += 1
        try:
            made, at = decoder.raw_decode(stream, at)
        except json.JSONDecodeError:
            return
        yield made


def selects(selector, labels):
    def holds(one):
        value, has = labels.get(one["key"]), one["key"] in labels
        return {"In": has and value in one.get("values", ()),
                "NotIn": not has or value not in one.get("values", ()),
                "Exists": has, "DoesNotExist": not has}[one["operator"]]
    return selector.get("matchLabels", {}).items() <= labels.items() and all(
        map(holds, selector.get("matchExpressions", ())))


def labels_of(pod):
    return pod["metadata"].get("labels", {})


class Judge:
    """namespaces: {name: its labels}. Pods are objects of the API. None means a peer that is no
    pod."""

    def __init__(self, policies, namespaces):
        self._policies = policies
        self._namespaces = namespaces

    def refuses(self, source, target, port, protocol="TCP"):
        """Returns the names of the policies that select an end of the connection, if that end's
        policies refuse it. Returns nothing if they allow it."""
        return self._end(target, source, "Ingress", "ingress", "from", target, port, protocol) or \
            self._end(source, target, "Egress", "egress", "to", target, port, protocol)

    def selected(self, pod, kind):
        return [one for one in self._policies
                if pod and one["metadata"]["namespace"] == pod["metadata"]["namespace"]
                and kind in one["spec"]["policyTypes"]
                and selects(one["spec"]["podSelector"], labels_of(pod))]

    def _end(self, pod, other, kind, rules, peers, target, port, protocol):
        mine = self.selected(pod, kind)
        fits = any(self._port(rule, target, port, protocol)
                   and self._peer(rule.get(peers), one, other)
                   for one in mine for rule in one["spec"].get(rules, ()))
        return [] if fits else [one["metadata"]["name"] for one in mine]

    def _port(self, rule, target, port, protocol):
        def number(wanted):
            if isinstance(wanted, int):
                return wanted
            named = {one.get("name"): one["containerPort"]
                     for container in (target or {}).get("spec", {}).get("containers", ())
                     for one in container.get("ports", ())}
            return named.get(wanted)
        return not rule.get("ports") or any(
            one.get("protocol", "TCP") == protocol and number(one.get("port", port)) == port
            for one in rule["ports"])

    def _peer(self, peers, policy, pod):
        if not peers:
            return True
        return pod is not None and any(self._fits(peer, policy, pod) for peer in peers)

    def _fits(self, peer, policy, pod):
        assert "ipBlock" not in peer
        of_pod = pod["metadata"]["namespace"]
        in_namespace = of_pod == policy["metadata"]["namespace"]
        if "namespaceSelector" in peer:
            in_namespace = selects(peer["namespaceSelector"], self._namespaces[of_pod])
        return in_namespace and selects(peer.get("podSelector", {}), labels_of(pod))
