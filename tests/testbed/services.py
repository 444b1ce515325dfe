# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Starts the services of a bed. A service is a command line and a check of its readiness."""

import dataclasses
import time
from typing import Callable

from . import processes
from .bed import BedError
from .progress import step

READY_S = 120
POLL_S = 0.1
LOG_BYTES = 3000


@dataclasses.dataclass(frozen=True)
class Service:
    name: str
    arguments: list
    is_ready: Callable[[], bool]


def ensure(bed, *services):
    """Starts the services that do not run, and waits until all are ready. Returns the names of the
    started ones."""
    started = {
        service.name: processes.start(bed, service.name, service.arguments)
        for service in services if processes.find(bed.directory, service.name) is None}
    for service in services:
        process = started.get(service.name)
        with step(f"waiting for {service.name}"):
            wait(bed, service, lambda p=process: p is None or p.poll() is None)
    return list(started)


def wait(bed, service, is_alive):
    deadline = time.monotonic() + READY_S
    while not service.is_ready():
        if not is_alive():
            raise BedError(f"{service.name} has ended instead of getting ready:\n"
                           + log_end(bed, service.name))
        if time.monotonic() > deadline:
            raise BedError(f"{service.name} is not ready after {READY_S} s:\n"
                           + log_end(bed, service.name))
        time.sleep(POLL_S)


def wait_until(is_so, what):
    """Waits for a condition that belongs to no single service."""
    deadline = time.monotonic() + READY_S
    with step(f"waiting until {what}"):
        while not is_so():
            if time.monotonic() > deadline:
                raise BedError(f"after {READY_S} s it is still not so that {what}")
            time.sleep(POLL_S)


def log_end(bed, name):
    file = bed.logs / f"{name}.log"
    text = file.read_text(errors="replace")[-LOG_BYTES:] if file.exists() else ""
    return f"{text}\n(whole log: {file})"
