# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Prints lines to standard error about steps that take longer than two seconds."""

import contextlib
import sys
import threading
import time

QUIET_S = 2
REPEAT_S = 20


def say(text):
    print(f"testbed: {text}", file=sys.stderr, flush=True)


@contextlib.contextmanager
def step(text):
    """Prints the step's name after two seconds, every 20 seconds after that, and at its end."""
    began = time.monotonic()
    is_over = threading.Event()

    def tell():
        if is_over.wait(QUIET_S):
            return
        say(f"{text} ...")
        while not is_over.wait(REPEAT_S):
            say(f"  {text}: {time.monotonic() - began:.0f} s so far")

    teller = threading.Thread(target=tell, daemon=True)
    teller.start()
    try:
        yield
    finally:
        is_over.set()
        teller.join()
    if time.monotonic() - began > QUIET_S:
        say(f"  {text}: {time.monotonic() - began:.0f} s")
