# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Admission policies of a cluster for the workloads of one namespace. Some refuse the writes of one
user, and some change the writes of every user."""

import contextlib

from installed import SYSTEM

GROUP = "admissionregistration.k8s.io/v1"
OPERATOR = f"system:serviceaccount:{SYSTEM}:sightline-operator"
CONTROLLER = "system:serviceaccount:kube-system:deployment-controller"
FROZEN = "nobody changes these"
TOUCHED = "touched"


def rule(group, kind):
    return {"apiGroups": [group], "apiVersions": ["*"], "resources": [kind],
            "operations": ["CREATE", "UPDATE"]}


DEPLOYMENTS, SETS = [rule("apps", "deployments")], [rule("apps", "replicasets")]
WORKLOADS = [*DEPLOYMENTS, *SETS, rule("", "pods")]


def refuse(user, rules):
    """Refuses this user's writes of these kinds."""
    return "Validating", rules, {
        "matchConditions": [{"name": "user",
                             "expression": f"request.userInfo.username == '{user}'"}],
        "validations": [{"expression": "false", "message": FROZEN}]}


def patch_label(rules, label, operation):
    """Applies one step of a JSON patch to objects with the label."""
    patch = (f"[JSONPatch{{path: '/metadata/labels/' + jsonpatch.escapeKey('{label}'), "
             f"{operation}}}]")
    is_labelled = f"has(object.metadata.labels) && '{label}' in object.metadata.labels"
    return "Mutating", rules, {
        "failurePolicy": "Fail", "reinvocationPolicy": "Never",
        "matchConditions": [{"name": "labelled", "expression": is_labelled}],
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": patch}}]}


def overwrite_label(label, value, rules=DEPLOYMENTS):
    return patch_label(rules, label, f"op: 'replace', value: '{value}'")


def remove_label(label, rules=DEPLOYMENTS):
    return patch_label(rules, label, "op: 'remove'")


def objects(home, kind, rules, spec):
    name = f"{home.name}-policy"
    here = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": home.name}}}
    bound = {"policyName": name} | (
        {"validationActions": ["Deny"]} if kind == "Validating" else {})
    return [{"apiVersion": GROUP, "kind": f"{kind}AdmissionPolicy", "metadata": {"name": name},
             "spec": spec | {"matchConstraints": here | {"resourceRules": rules}}},
            {"apiVersion": GROUP, "kind": f"{kind}AdmissionPolicyBinding",
             "metadata": {"name": name}, "spec": bound}]


@contextlib.contextmanager
def in_force(home, policy, is_in_force):
    """Runs the block once is_in_force() is true. The API server applies a policy with a delay."""
    made = {"apiVersion": "v1", "kind": "List", "items": objects(home, *policy)}
    home.kubectl("apply", "-f", "-", given=made)
    try:
        home.until(is_in_force, "the policy is in force")
        yield
    finally:
        home.kubectl("delete", "-f", "-", given=made)


def touch(home, *what):
    """Writes the objects, which triggers policies. Returns (status, output, errors)."""
    return home.try_kubectl("annotate", "--overwrite", *what, f"{TOUCHED}=yes")


def refuses(home, user, resource):
    """Returns whether the policy refuses a write of the resource by this user."""
    status, _, errors = touch(home, resource, "--dry-run=server", f"--as={user}")
    return status != 0 and FROZEN in errors
