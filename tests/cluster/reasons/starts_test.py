# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Failed requests at the operator's start, and kinds that appear and disappear while it runs."""

import pathlib
import re

from objects import READY_S, condition, is_written, owned, router, templates, until_written
from testbed.fault_proxy import Rule
from testbed.local_operator import SYSTEM
from testbed.namespace import Namespace

ROOT = pathlib.Path(__file__).resolve().parents[3]
ROUTERS = "customresourcedefinition/multimodalrouters.sightline.dev"
POD_MONITORS = {
    "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
    "metadata": {"name": "podmonitors.monitoring.coreos.com"},
    "spec": {"group": "monitoring.coreos.com", "scope": "Namespaced",
             "names": {"plural": "podmonitors", "singular": "podmonitor", "kind": "PodMonitor",
                       "listKind": "PodMonitorList"},
             "versions": [{"name": "v1", "served": True, "storage": True, "schema": {
                 "openAPIV3Schema": {"type": "object",
                                     "x-kubernetes-preserve-unknown-fields": True}}}]}}


def holder(bed):
    """Returns the holder of the Lease, or None if it is free."""
    leases = bed.get("leases", "-n", SYSTEM)["items"]
    return leases[0]["spec"].get("holderIdentity") or None if leases else None


def test_one_failed_request_at_start_does_not_stop_the_operator(bed, proxy, make_operator):
    rule = proxy.add(Rule("500", "GET", r"/podmonitors\?"))
    with make_operator(), Namespace(bed.bed, "starts") as home:
        home.apply(router())
        home.until(lambda: owned(home, "deployment"), "it acts", READY_S)
        assert rule.hits == 1


def test_an_operator_without_lists_does_not_lead(bed, proxy, make_operator):
    rule = proxy.add(Rule("503", "GET", r"/statefulsets\?", times=None))
    with Namespace(bed.bed, "listless") as home, make_operator() as first:
        home.until(lambda: rule.hits >= 2, "it asks in vain", READY_S)
        assert first.is_running()
        assert holder(bed) is None, "an operator without lists does not lead"
        proxy.clear()
        home.apply(router())
        until_written(home)
        assert holder(bed)


def test_operator_uses_an_optional_kind_that_appears_later(bed, home):
    home.apply(router())
    until_written(home)
    bed.kubectl("apply", "-f", "-", given=POD_MONITORS)
    try:
        home.until(lambda: home.try_kubectl("get", "podmonitors")[0] == 0
                   and owned(home, "podmonitors"), "its PodMonitors are there", 2 * READY_S)
    finally:
        bed.kubectl("delete", "crd", POD_MONITORS["metadata"]["name"])
    home.apply(router(restart="again"))

    def has_restarted():
        return any("sightline.dev/restart" in one["metadata"].get("annotations", {})
                   for one in templates(home).values())

    home.until(has_restarted, "it goes on without the kind", READY_S)
    until_written(home)


def test_the_smallest_object_of_the_pages_is_accepted(home, tmp_path):
    page = (ROOT / "docs/operator.md").read_text(encoding="utf-8")
    file = tmp_path / "smallest.yaml"
    file.write_text(re.search(r"The smallest object:\n\n```yaml\n(.*?)```", page, re.S)[1])
    home.kubectl("apply", "-f", file)
    home.until(lambda: condition(home, "Accepted")["status"] == "True", "it is accepted", READY_S)
    until_written(home)


def test_objects_of_a_recreated_kind_get_a_status(bed, home):
    home.apply(router())
    until_written(home)
    definition = bed.get(ROUTERS)
    bed.kubectl("delete", ROUTERS)
    bed.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", given={
        name: definition[name] for name in ("apiVersion", "kind", "spec")}
        | {"metadata": {"name": definition["metadata"]["name"]}})
    bed.kubectl("wait", "--for=condition=Established", "--timeout=60s", ROUTERS)
    take = "apply", "--server-side", "-f", "-"
    home.until(lambda: home.try_kubectl(*take, given=router("again"))[0] == 0,
               "the API server takes one")
    home.until(lambda: is_written(home, "again"), "it has a status", READY_S)
