# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Objects at rest cost nothing: no read of a Secret, no write, of any of them."""

import collections
import datetime
import json
import re
import time

from end_state import is_at_rest
from steps import router

OBJECTS, OBJECTS_FULL = 10, 100
REST_S, QUIET_S, WINDOW_S = 600, 10, 60
READS = ("get", "list", "watch")
# As it is installed: ten times as many questions a second would keep this process from answering.
POLL_INTERVAL = "5s"


class Request(collections.namedtuple("Request", "verb resource name")):
    @property
    def is_write(self):
        return self.verb not in READS

    @property
    def object(self):
        """The MultimodalRouter that it is of: names of children and events begin with its name."""
        return re.match(r"[^-.]*", self.name or "").group()


def requests_of(bed, since):
    """By the operator, since the audit log had so many bytes."""
    with bed.bed.audit_log.open() as file:
        file.seek(since)
        events = [json.loads(line) for line in file if line.endswith("\n")]
    return [Request(event["verb"], event["objectRef"]["resource"], event["objectRef"].get("name"))
            for event in events
            if event.get("userAgent", "").startswith("sightline-operator") and "objectRef" in event]


def writes_since(bed, begin):
    return [request for request in requests_of(bed, begin) if request.is_write]


def are_ready(home, count):
    found = [one.get("status", {}) for one in home.get("mmr")["items"]]
    return len(found) == count and all(is_at_rest({"multimodalrouters/demo": json.dumps(
        {"status": status})}) for status in found)


def unanswered(home, since):
    """Objects of which an event since then says that none of their routers answered in time: on a
    busy machine that happens, and what is said of them changes."""
    def last(event):
        series = event.get("series") or {}
        return datetime.datetime.fromisoformat(series.get("lastObservedTime") or event["eventTime"])

    return {event["regarding"]["name"] for event in home.get("events.events.k8s.io")["items"]
            if event["reason"] == "NoRouterAnswers" and last(event) >= since}


def test_objects_at_rest_read_no_secrets_and_write_nothing(make_home, bed, operator, is_full):
    count = OBJECTS_FULL if is_full else OBJECTS
    home = make_home("rest")
    # Of two, one that answers late changes nothing of what an object says.
    two = router(router={"replicas": 2})
    home.apply(*(two | {"metadata": {"name": f"r{i}"}} for i in range(count)))
    home.until(lambda: are_ready(home, count), f"{count} are ready", REST_S)

    def rests():
        begin = bed.bed.audit_log.stat().st_size
        time.sleep(QUIET_S)
        return not writes_since(bed, begin) and are_ready(home, count)

    deadline = time.monotonic() + REST_S
    writes = [None]
    while writes:
        assert time.monotonic() < deadline, f"routers were late all the time: {writes}"
        home.until(rests, "what was under way is over", REST_S)
        begin, since = bed.bed.audit_log.stat().st_size, datetime.datetime.now(datetime.UTC)
        time.sleep(WINDOW_S)
        found = requests_of(bed, begin)
        counted = collections.Counter((request.verb, request.resource) for request in found)
        print(f"{count} objects at rest for {WINDOW_S} s: {dict(counted)}")
        assert not [one for one in found if one.resource == "secrets" and one.verb != "watch"]
        writes = [request for request in found if request.is_write]
        changed = {request.object for request in writes}
        if changed:  # an event follows the change of which it tells
            home.until(lambda: changed <= unanswered(home, since),
                       f"no router of {changed} answered in time, which explains {writes}")
