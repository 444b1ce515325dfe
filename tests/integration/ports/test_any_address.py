# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""`::` means all addresses of a machine, IPv4 included. If the kernel has no IPv6, it means the
IPv4 addresses alone."""

import contextlib
import http.client
import pathlib
import sys

import pytest
from nowhere import KUBECONFIG
from stack import Program

import without_six


@pytest.fixture
def begin(build, tmp_path):
    """Starts an operator that listens on the address: it is the simplest program that listens."""
    (tmp_path / "kubeconfig").write_text(KUBECONFIG)
    with contextlib.ExitStack() as stack:
        def start(host, *before):
            program = Program(
                [*before, build / "bin/sightline-operator", "--kubeconfig", tmp_path / "kubeconfig",
                 "--admin-host", host, "--admin-port", 0, "--leader-elect=false"],
                tmp_path / "log")
            stack.callback(program.process.wait)
            stack.callback(program.process.terminate)
            return program, program.wait_for(r"ready: admin (http://\S+):(\d+)")

        yield start


def status(host, port):
    connection = http.client.HTTPConnection(host, int(port), timeout=60)
    with contextlib.closing(connection):
        connection.request("GET", "/healthz")
        return connection.getresponse().status


def test_wildcard_port_accepts_ipv4_and_ipv6(begin):
    _, ready = begin("::")
    assert ready[1] == "http://[::]"
    assert [status(host, ready[2]) for host in ("127.0.0.1", "::1")] == [200, 200]


def test_wildcard_port_without_ipv6_accepts_ipv4_and_logs_it(begin):
    program, ready = begin("::", sys.executable, pathlib.Path(without_six.__file__))
    assert status("127.0.0.1", ready[2]) == 200
    program.stop()  # this also writes the rest of the log
    assert "this machine has no IPv6" in program.log_path.read_text()


def test_program_refuses_an_ipv6_address_without_ipv6(begin):
    with pytest.raises(RuntimeError, match="cannot listen on \\[::1\\]:0"):
        begin("::1", sys.executable, pathlib.Path(without_six.__file__))
