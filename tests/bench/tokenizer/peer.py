# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Encodes texts with a peer's Python package. encode_texts.cc does it with the router's tokenizer.

  peer.py PACKAGE speed TOKENIZER_JSON WARM_BYTES SECONDS
  peer.py PACKAGE ids TOKENIZER_JSON

`run` starts it in the peer's virtual environment. The time is the CPU time of encode() on all
threads. It makes no list of ids in Python.
"""

import array
import importlib
import json
import os
import struct
import sys
import time


def texts():
    while size := sys.stdin.buffer.read(4):
        yield sys.stdin.buffer.read(struct.unpack("<I", size)[0])


def resident_mb():
    with open("/proc/self/statm", encoding="ascii") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def speed(package, path, warm_bytes, seconds):
    resident, start = resident_mb(), time.process_time()
    tokenizer = package.Tokenizer.from_file(path)
    loaded = {"load_s": time.process_time() - start, "load_mb": resident_mb() - resident}
    stream = texts()

    def seconds_of(data):
        text = data.decode()
        begin = time.process_time()
        tokenizer.encode(text, add_special_tokens=False)
        return time.process_time() - begin

    first = next(stream)
    seconds_of(b" a" * (len(first) // 2))  # set-up at first use must not count for the first text
    cold = len(first) / seconds_of(first) / 1e6
    done = 0
    while done < warm_bytes:
        data = next(stream)
        seconds_of(data)
        done += len(data)
    spent, size = 0, 0
    for data in stream:
        spent += seconds_of(data)
        size += len(data)
        if spent >= seconds:
            break
    json.dump({**loaded, "cold": cold, "warm": size / spent / 1e6}, sys.stdout)


def ids(package, path):
    tokenizer = package.Tokenizer.from_file(path)
    for data in texts():
        found = tokenizer.encode(data.decode(), add_special_tokens=False).ids
        sys.stdout.buffer.write(struct.pack("<I", len(found)) + array.array("I", found).tobytes())
    sys.stdout.flush()


def main():
    name, what, path, *rest = sys.argv[1:]
    package = importlib.import_module(name)
    if what == "speed":
        speed(package, path, int(rest[0]), float(rest[1]))
    else:
        ids(package, path)


main()
