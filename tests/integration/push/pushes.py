# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Shared helpers for tests of pushed worker lists and settings."""

import http.client
import json

from stack import SLOWDOWN

TOKEN = "a-token-of-this-test"


def put(stack, body, token=TOKEN, path="/v1/workers"):
    """Sends a PUT to the router's admin port. Returns status and parsed answer."""
    connection = http.client.HTTPConnection("127.0.0.1", stack.admin_port, timeout=60 * SLOWDOWN)
    headers = {} if token is None else {"authorization": f"Bearer {token}"}
    connection.request("PUT", path, body if isinstance(body, (str, bytes)) else json.dumps(body),
                       headers)
    answer = connection.getresponse()
    text = answer.read()
    connection.close()
    return answer.status, json.loads(text)


def put_settings(stack, settings):
    return put(stack, {"settings": settings}, path="/v1/settings")


def pushed(generation, workers, revision="0"):
    return {"revision": revision, "generation": generation, "workers": workers}


def list_of(stack):
    return json.loads(stack.get(stack.admin_port, "/v1/workers/list")[1])


def settings_of(stack):
    rows = json.loads(stack.get(stack.admin_port, "/v1/settings")[1])
    return {row["name"]: row for row in rows}


def names(stack):
    return [worker["name"] for worker in stack.worker_states()]


def chat(text="hello"):
    return {"model": "demo", "max_tokens": 1, "messages": [{"role": "user", "content": text}]}


def flags(tokens, *more):
    return ["--admin-token-file", tokens, "--fleet-probe-interval", "200ms", *more]
