# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Objects for tests with real pods. They use the image client:testbed, for example as web servers
with one page."""

CLIENT = "client:testbed"
PORT = 8080
# A web server whose only page is a text. The shell replaces $HOSTNAME in it with the pod's name.
SERVER = f"""\
trap exit TERM
mkdir -p /tmp/www && cd /tmp/www && echo $TEXT > index.html
httpd -f -p {PORT} & wait
"""
RESTRICTED = {
    "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]}}


def container(name, script=None, **more):
    """Returns a container that waits, or runs a shell script."""
    made = {"name": name, "image": CLIENT, "imagePullPolicy": "Never"} | more
    if script is not None:
        made["command"] = ["sh", "-c", script]
    return made


def server(text="$HOSTNAME", port=PORT, **more):
    """Returns a container that serves the text. It is Ready once it answers."""
    return container("server", SERVER.replace("$TEXT", text).replace(str(PORT), str(port)), **{
        "readinessProbe": {"httpGet": {"path": "/", "port": port}, "periodSeconds": 1}} | more)


def pod(name, *containers, **spec):
    return {"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "labels": {"app": name}},
            "spec": {"terminationGracePeriodSeconds": 1,
                     "containers": list(containers) or [container("client")]} | spec}


def deployment(name, replicas, *containers):
    labels = {"app": name}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
            "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": {
                "metadata": {"labels": labels}, "spec": pod(name, *containers)["spec"]}}}


def service(name, **spec):
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
            "spec": {"selector": {"app": name}, "ports": [{"port": 80, "targetPort": PORT}]} | spec}


def evict(namespace, name):
    """Evicts a pod and returns (status, output, errors). A PodDisruptionBudget may refuse it."""
    return namespace.try_kubectl(
        "create", "--raw", f"/api/v1/namespaces/{namespace.name}/pods/{name}/eviction", "-f", "-",
        given={"apiVersion": "policy/v1", "kind": "Eviction",
               "metadata": {"name": name, "namespace": namespace.name}})


def fetch(namespace, client, url):
    """Returns the output of curl in the pod. Retries until curl succeeds, because a Service needs a
    moment to find its pods."""
    def ask():
        status, output, _ = namespace.try_kubectl("exec", client, "--", "curl", "-sS", "-m", "10",
                                                  url)
        return output if status == 0 else None

    return namespace.until(ask, f"{client} gets {url}")
