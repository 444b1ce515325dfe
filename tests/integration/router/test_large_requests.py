# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Requests with many values in few bytes, and the memory that the router uses for them."""

import json
import os
import re
import socket

import pytest
from fake_engine import FakeEngine, answer_ok
from stack import SLOWDOWN, Stack, post

CALLS = 20
VALUES = 990_000


def memory_mib(stack, field):
    with open(f"/proc/{stack.router.process.pid}/status") as status:
        return int(re.search(rf"{field}:\s+(\d+) kB", status.read()).group(1)) / 1024


def many_arguments():
    arguments = '{"a":[' + ",".join(["{}"] * VALUES) + "]}"
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": arguments}}
    message = {"role": "assistant", "content": "", "tool_calls": [call]}
    return json.dumps({"model": "demo", "max_tokens": 1,
                       "messages": [{"role": "user", "content": "x"}] + [message] * CALLS})


@pytest.mark.parametrize("model", ["qwen3-vl", "qwen2-vl"])
def test_tool_arguments_take_only_the_memory_that_prompts_need(build, logs, model):
    body = many_arguments()
    assert len(body) > 59_000_000
    with FakeEngine("a", answer_ok) as engine, \
            Stack(build, model=model, workers=[engine.worker], ready_states=("unverified",),
                  logs=logs) as stack:
        before = memory_mib(stack, "VmRSS")
        answer = post(stack.port, body)
        if model == "qwen2-vl":  # its template does not print the arguments
            assert answer.status == 200
        else:
            error = json.loads(answer.body)["error"]
            assert (answer.status, error["code"], error["param"]) == (400, 400, "messages")
            assert "500000" in error["message"] and "tool-arguments-values-max" in error["message"]
            hit = 'sightline_limit_hits_total{limit="tool-arguments-values-max"} 1'
            stack.wait_until(lambda: hit in stack.router_metrics(), seconds=5)
        if "SL_SANITIZER_REPORTS" not in os.environ:  # sanitizers keep freed memory
            assert memory_mib(stack, "VmHWM") <= 600
            stack.wait_until(lambda: memory_mib(stack, "VmRSS") <= before + 64,
                             seconds=10 / SLOWDOWN)


@pytest.mark.parametrize("port, path", [("admin", "/v1/explain"), ("selection", "/select")])
def test_other_ports_limit_bodies_to_the_memory_budget(build, logs, port, path):
    with FakeEngine("a", answer_ok) as engine, \
            Stack(build, workers=[engine.worker], ready_states=("unverified",), logs=logs,
                  router_flags=["--memory-bytes-max", 64 << 20, "--selection-port", 0]) as stack:
        selection = next(line for line in stack.router.lines if line.startswith("selection: "))
        ports = {"admin": stack.admin_port, "selection": int(selection.rsplit(":", 1)[1])}
        with socket.create_connection(("127.0.0.1", ports[port]), timeout=60) as connection:
            connection.sendall(f"POST {path} HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n"
                               f"Content-Length: {47 << 20}\r\n\r\n".encode())
            answer = connection.recv(65536).decode()
        assert answer.startswith("HTTP/1.1 413 ") and "total-body-bytes-max" in answer, answer
        if port == "selection":  # the body fits, but its values do not
            answer = post(ports[port], '{"a":[' + "0," * 3_000_000 + "0]}", path=path)
            assert answer.status in (413, 503) and b"bytes-max" in answer.body, answer.body
