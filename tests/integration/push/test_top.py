# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Runs `sightline top` in front of running routers: with --once, on a pipe, and in a terminal."""

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time

from fake_engine import FakeEngine, answer_ok
from pushes import chat
from stack import SLOWDOWN, Stack, post


def top(build, *flags):
    return [str(build / "bin/sightline"), "top", *flags]


def admin(stack):
    return f"http://127.0.0.1:{stack.admin_port}"


def test_one_frame_shows_workers_and_unreachable_ports(build, logs):
    with Stack(build, engines=2, logs=logs) as stack:
        assert post(stack.port, chat("word " * 400)).status == 200
        stack.wait_until_heard()
        done = subprocess.run(top(build, "--once", "--admin", f"{admin(stack)},127.0.0.1:1"),
                              capture_output=True, text=True, timeout=60 * SLOWDOWN, check=True)
        lines = done.stdout.splitlines()
        assert len(lines) <= 24 and max(map(len, lines)) <= 80
        assert lines[0].startswith("sightline top: 1 of 2 admin ports answer")
        assert "workers 2/2 ready" in lines[1]
        assert any(line.split()[1:4] == ["yes", "file", "0"] for line in lines)
        assert any(line.startswith("127.0.0.1:1 ") and "connection refused" in line
                   for line in lines)
        rows = {line.split()[0]: line.split() for line in lines if line.startswith(("w0", "w1"))}
        assert [rows[name][1:3] for name in ("w0", "w1")] == [["ready", "1/1"]] * 2
        assert "\x1b" not in done.stdout and done.stderr == ""


def test_top_refuses_wrong_flags_before_it_connects(build):
    for flags in (["--admin", "https://h:1"], ["--admin", "http://h:0"], ["--admin", ""],
                  ["--admin", ",".join(["h"] * 33)], ["--interval", "1"]):
        done = subprocess.run(top(build, "--once", *flags), capture_output=True, text=True,
                              timeout=60 * SLOWDOWN, check=False)
        assert done.returncode == 2 and done.stderr.startswith("sightline top: "), done


def test_top_writes_frames_to_a_pipe_until_it_closes(build, logs):
    engine = FakeEngine("a", answer_ok)
    with engine, Stack(build, workers=[engine.worker], ready_states=("unverified",),
                       logs=logs) as stack:
        process = subprocess.Popen(top(build, "--interval", "100ms", "--admin", admin(stack)),
                                   stdout=subprocess.PIPE, text=True)
        seen = 0
        for line in process.stdout:
            seen += line.startswith("sightline top: 1 of 1")
            if seen == 3:
                break
        process.stdout.close()
        assert process.wait(timeout=30 * SLOWDOWN) in (0, -signal.SIGPIPE)


class Screen:
    """A terminal in which `sightline top` runs."""

    def __init__(self, arguments, rows, columns):
        self.seen = b""
        self.master, self.slave = pty.openpty()
        self.resize(rows, columns)
        self.before = termios.tcgetattr(self.slave)
        self.process = subprocess.Popen(arguments, stdin=self.slave, stdout=self.slave,
                                        stderr=subprocess.PIPE)

    def resize(self, rows, columns):
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def wait_for(self, text):
        deadline = time.monotonic() + 30 * SLOWDOWN
        while text not in self.seen:
            assert time.monotonic() < deadline, self.seen[-3000:]
            self.read(1)

    def read(self, seconds):
        if select.select([self.master], [], [], seconds)[0]:
            self.seen += os.read(self.master, 65536)

    def end(self):
        """Waits for the process. Returns its status, and whether the terminal is restored."""
        deadline = time.monotonic() + 30 * SLOWDOWN
        while self.process.poll() is None:
            assert time.monotonic() < deadline
            self.read(0.05)
        self.read(0.2)
        is_as_before = termios.tcgetattr(self.slave) == self.before
        stderr = self.process.stderr.read()
        self.process.stderr.close()
        os.close(self.master)
        os.close(self.slave)
        return self.process.returncode, is_as_before, stderr


def test_top_follows_the_terminal_size_and_restores_the_terminal(build, logs):
    engine = FakeEngine("a", answer_ok)
    with engine, Stack(build, workers=[engine.worker], ready_states=("unverified",),
                       logs=logs) as stack:
        arguments = top(build, "--interval", "200ms", "--admin", admin(stack))
        ends = ((b"q", None), (b"\x03", None), (None, signal.SIGTERM))
        for key, number in ends:
            screen = Screen(arguments, 24, 80)
            screen.wait_for(b"\x1b[?1049h")
            screen.wait_for(b"q ends")
            # A screen with more rows has its last row further down.
            screen.seen = b""
            screen.resize(40, 100)
            screen.wait_for(b"q ends")
            assert screen.seen.split(b"\x1b[H")[-1].count(b"\n") == 39
            if key:
                os.write(screen.master, key)
            else:
                screen.process.send_signal(number)
            status, is_as_before, stderr = screen.end()
            assert (status, stderr) == (0, b"")
            assert is_as_before and screen.seen.endswith(b"\x1b[?25h\x1b[?1049l")
