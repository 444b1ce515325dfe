# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Objects at rest cost nothing: no read of a Secret, no write, of any of them."""

import collections
import json
import time

from end_state import is_at_rest
from steps import router

OBJECTS, OBJECTS_FULL = 10, 100
REST_S, QUIET_S, WINDOW_S = 600, 10, 60
READS = ("get", "list", "watch")


def requests_of(bed, since):
    """Counter of (verb, resource) by the operator."""
    with bed.bed.audit_log.open() as file:
        file.seek(since)
        events = [json.loads(line) for line in file if line.endswith("\n")]
    return collections.Counter(
        (event["verb"], event["objectRef"]["resource"]) for event in events
        if event.get("userAgent", "").startswith("sightline-operator") and "objectRef" in event)


def writes_in(found):
    return {what: count for what, count in found.items() if what[0] not in READS}


def are_ready(home, count):
    found = [one.get("status", {}) for one in home.get("mmr")["items"]]
    return len(found) == count and all(is_at_rest({"multimodalrouters/demo": json.dumps(
        {"status": status})}) for status in found)


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
        return not writes_in(requests_of(bed, begin))

    home.until(rests, "what was under way is over", REST_S)
    begin = bed.bed.audit_log.stat().st_size
    time.sleep(WINDOW_S)
    found = requests_of(bed, begin)
    print(f"{count} objects at rest for {WINDOW_S} s: {dict(found)}")
    assert not writes_in(found)
    assert not [what for what in found if what[1] == "secrets" and what[0] != "watch"]
