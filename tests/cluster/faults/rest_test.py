# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Objects at rest cost nothing: they cause no read of a Secret and no write."""

import collections
import json
import re
import time

from end_state import is_at_rest
from steps import router
from testbed.api import Api

OBJECTS, OBJECTS_FULL = 10, 100
REST_S, QUIET_S, WINDOW_S = 600, 10, 60
READS = ("get", "list", "watch")
# The installed value. With 500 ms, ten times as many requests would overload this process.
POLL_INTERVAL = "5s"


class Request(collections.namedtuple("Request", "verb resource name")):
    @property
    def is_write(self):
        return self.verb not in READS

    @property
    def object(self):
        """The MultimodalRouter of the request. Names of children and events begin with its name."""
        return re.match(r"[^-.]*", self.name or "").group()


def requests_of(bed, since):
    """Returns the operator's requests since the audit log had `since` bytes."""
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


class Objects:
    """The objects at one moment, and what was written to them later."""

    def __init__(self, bed, home):
        self._api = Api(bed.bed)
        self._path = f"/apis/sightline.dev/v1alpha1/namespaces/{home.name}/multimodalrouters"
        self._first = self._api.get(self._path)

    def late(self):
        """Returns the names of objects that reported, then or in any state since, that no router
        answered in time. This happens on a busy machine. Their events do not always show it: the
        third and later events of a series are counted, and written once, when it has ended."""
        version = self._first["metadata"]["resourceVersion"]
        status, body = self._api.call(
            f"{self._path}?watch=1&resourceVersion={version}&timeoutSeconds=1")
        assert status == 200, body
        changes = [json.loads(line) for line in body.splitlines()]
        assert all(change["type"] == "MODIFIED" for change in changes), changes
        states = self._first["items"] + [change["object"] for change in changes]
        return {state["metadata"]["name"] for state in states
                if any(condition["reason"] == "NoRouterAnswers"
                       for condition in state["status"]["conditions"])}


def is_last_count(request):
    """A series of events may end after its cause. The test then measures again."""
    return request.verb == "patch" and request.resource == "events"


def test_objects_at_rest_read_no_secrets_and_write_nothing(make_home, bed, operator, is_full):
    count = OBJECTS_FULL if is_full else OBJECTS
    home = make_home("rest")
    # With two routers, one late answer does not change what an object reports.
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
        begin, objects = bed.bed.audit_log.stat().st_size, Objects(bed, home)
        time.sleep(WINDOW_S)
        found = requests_of(bed, begin)
        counted = collections.Counter((request.verb, request.resource) for request in found)
        print(f"{count} objects at rest for {WINDOW_S} s: {dict(counted)}")
        assert not [one for one in found if one.resource == "secrets" and one.verb != "watch"]
        writes = [request for request in found if request.is_write]
        late = objects.late()
        unexplained = [request for request in writes
                       if request.object not in late and not is_last_count(request)]
        assert not unexplained, f"written at rest, while only routers of {late} were late"
