# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Seals messages like a process that has the deployment's key. Tests use it for allowed and for
false requests of this process. Implements BLAKE3 for up to 1,024 bytes."""

import struct

CHUNK_BYTES, BLOCK_BYTES = 1024, 64
CHUNK_START, CHUNK_END, ROOT = 1, 2, 8
KEYED, DERIVE_CONTEXT, DERIVE_MATERIAL = 16, 32, 64
START = (0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A,
         0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19)
ORDER = (2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8)
COLUMNS = ((0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15),
           (0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14))
WORD = 0xFFFFFFFF


def _mix(v, a, b, c, d, pair):
    for word, first, second in ((pair[0], 16, 12), (pair[1], 8, 7)):
        v[a] = (v[a] + v[b] + word) & WORD
        v[d] ^= v[a]
        v[d] = (v[d] >> first | v[d] << 32 - first) & WORD
        v[c] = (v[c] + v[d]) & WORD
        v[b] ^= v[c]
        v[b] = (v[b] >> second | v[b] << 32 - second) & WORD


def _compress(chain, block, flags):
    words = struct.unpack("<16I", block.ljust(BLOCK_BYTES, b"\0"))
    v = [*chain, *START[:4], 0, 0, len(block), flags]
    for _ in range(7):
        for i, column in enumerate(COLUMNS):
            _mix(v, *column, words[2 * i:2 * i + 2])
        words = tuple(words[i] for i in ORDER)
    return tuple(v[i] ^ v[i + 8] for i in range(8))


def blake3(data, key=START, mode=0):
    """Returns the hash, 32 bytes. `key` has eight words."""
    assert len(data) <= CHUNK_BYTES, "one chunk is enough here"
    blocks = [data[i:i + BLOCK_BYTES] for i in range(0, len(data), BLOCK_BYTES)] or [b""]
    chain = key
    for i, block in enumerate(blocks):
        flags = mode | (CHUNK_START if i == 0 else 0)
        if i == len(blocks) - 1:
            flags |= CHUNK_END | ROOT
        chain = _compress(chain, block, flags)
    return struct.pack("<8I", *chain)


def _words(key):
    return struct.unpack("<8I", key)


def _field(data):
    return struct.pack("<Q", len(data)) + data


class Sealer:
    """Does the same as router/replicas/envelope. `told` is an entry of `members` in a router's
    /v1/replicas, about a member with the same key and model."""

    def __init__(self, key, told):
        context = blake3(b"sightline 2026 messages between replicas: tag", mode=DERIVE_CONTEXT)
        fingerprint = f"{told['model_digest']}\n{told['served_model']}"
        fields = (told["scope"], told["revision"], fingerprint)
        material = key + b"".join(_field(one.encode()) for one in fields)
        self._tag_key = _words(blake3(material, _words(context), DERIVE_MATERIAL))

    def seal(self, subject, payload, version=b"\x01"):
        versioned = version + payload
        return versioned + self._tag(subject, versioned)

    def seal_ask(self, subject, ask, agent, number):
        """Seals a request about the agent's stream. `number` counts the reader's requests."""
        return self.seal(subject, ask + struct.pack("<QQ", agent, number), version=b"\x02")

    def opened(self, subject, sealed):
        """Returns the payload, or None if the tag is wrong."""
        versioned, tag = sealed[:-16], sealed[-16:]
        return versioned[1:] if tag == self._tag(subject, versioned) else None

    def _tag(self, subject, versioned):
        return blake3(_field(subject.encode()) + versioned, self._tag_key, KEYED)[:16]


def _name(text):
    data = text.encode()
    return struct.pack("<H", len(data)) + data


# The numbers of the messages in router/replicas/frames.
BYE, QUESTION, ANSWER, RANGE_ASK, DUMP_ASK, OFFER, CHUNK_ASK, CHUNK, GONE = range(1, 10)


def message(kind, body, worker="w0", rank=0):
    return struct.pack("<B", kind) + _name(worker) + struct.pack("<I", rank) + body


def kind_of(opened):
    return opened[0]


def body_of(opened, worker="w0"):
    return opened[1 + 2 + len(worker.encode()) + 4:]


# Requests to agents. seal_ask() seals them.
def question(reader, nonce):
    return message(QUESTION, struct.pack("<Q", nonce) + _name(reader) + b"\0")


def range_ask(reader, epoch, first, last):
    return message(RANGE_ASK, _name(reader) + struct.pack("<QQQ", epoch, first, last))


def dump_ask(reader, epoch):
    return message(DUMP_ASK, _name(reader) + struct.pack("<Q", epoch))


def chunk_ask(reader, dump, chunks):
    numbers = b"".join(struct.pack("<I", chunk) for chunk in chunks)
    return message(CHUNK_ASK, _name(reader) + struct.pack("<QI", dump, len(chunks)) + numbers)


def relearn_ask(reader, epoch):
    return message(11, _name(reader) + struct.pack("<Q", epoch))
