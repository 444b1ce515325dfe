# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Generates images as valid PNG files. The seed decides the bytes, and each seed gives others."""

import base64
import struct
import zlib


def _chunk(kind, content):
    return (
        struct.pack(">I", len(content)) + kind + content
        + struct.pack(">I", zlib.crc32(kind + content))
    )


def png(width, height, seed):
    """Returns an image of coloured bands that depend on the seed."""
    rows = bytearray()
    for y in range(height):
        rows.append(0)
        shade = (y * 255 // max(1, height - 1) + 37 * seed) % 256
        left = bytes(((seed * 53) % 256, shade, (seed * 101 + y // 8) % 256))
        right = bytes((shade, (seed * 29) % 256, (seed >> 8) % 256))
        rows += left * (width // 2) + right * (width - width // 2)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    # The seed as text makes the bytes differ even where colours repeat.
    text = _chunk(b"tEXt", b"Comment\0" + str(seed).encode())
    return (
        b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header) + text
        + _chunk(b"IDAT", zlib.compress(bytes(rows), 6)) + _chunk(b"IEND", b"")
    )


def data_url(content, mime="image/png"):
    return f"data:{mime};base64," + base64.b64encode(content).decode()


def image_part(content):
    return {"type": "image_url", "image_url": {"url": data_url(content)}}


def text_part(text):
    return {"type": "text", "text": text}
