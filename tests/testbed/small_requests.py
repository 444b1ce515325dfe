# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Lowers the CPU and memory requests of pods on admission. The product's requests are for
production machines, but all pods of a test share one machine. Owners (for example Deployments) keep
their requests, and pods keep their limits."""

NAME = "testbed-small-requests"
GROUP = "/apis/admissionregistration.k8s.io/v1"
API_VERSION = "admissionregistration.k8s.io/v1"
CONTAINERS = """object.spec.{kind}.filter(c, has(c.resources) && has(c.resources.requests)).map(c,
  Object.spec.{kind}{{
    name: c.name,
    resources: Object.spec.{kind}.resources{{requests: {{"cpu": "1m", "memory": "1Mi"}}}}
  }})"""
EXPRESSION = f"""Object{{spec: Object.spec{{
  containers: {CONTAINERS.format(kind="containers")},
  initContainers: has(object.spec.initContainers) ?
    {CONTAINERS.format(kind="initContainers")} : []
}}}}"""


def apply(api):
    api.apply(f"{GROUP}/mutatingadmissionpolicies/{NAME}", {
        "apiVersion": API_VERSION, "kind": "MutatingAdmissionPolicy", "metadata": {"name": NAME},
        "spec": {
            "matchConstraints": {"resourceRules": [{
                "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
                "resources": ["pods"]}]},
            "failurePolicy": "Fail", "reinvocationPolicy": "Never",
            "mutations": [{"patchType": "ApplyConfiguration",
                           "applyConfiguration": {"expression": EXPRESSION}}]}})
    api.apply(f"{GROUP}/mutatingadmissionpolicybindings/{NAME}", {
        "apiVersion": API_VERSION, "kind": "MutatingAdmissionPolicyBinding",
        "metadata": {"name": NAME}, "spec": {"policyName": NAME}})
