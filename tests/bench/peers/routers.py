# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Starts the compared routers, each alone in front of the same engine."""

import http.client
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import time
import venv

READY_S = 60
# Peers from the Python package index: name -> command line before the common flags.
INSTALLED = {"smg": ["smg", "launch"], "vllm-router": ["vllm-router"],
             "sglang-router": ["sglang-router", "launch"]}

NGINX_CONF = """
daemon off;
worker_processes {workers};
worker_rlimit_nofile 16384;
pid {home}/nginx.pid;
error_log {home}/error.log warn;
events {{ worker_connections 8192; }}
http {{
  access_log off;
  client_body_temp_path /dev/shm/{tag}-body;
  proxy_temp_path /dev/shm/{tag}-proxy;
  fastcgi_temp_path {home}/f; uwsgi_temp_path {home}/u; scgi_temp_path {home}/s;
  client_max_body_size 64m;
  client_body_buffer_size 2m;
  keepalive_requests 1000000;
  upstream engine {{ server 127.0.0.1:{engine}; keepalive 512; keepalive_requests 1000000; }}
  server {{
    listen 127.0.0.1:{port} reuseport;
    location / {{
      proxy_pass http://engine;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_buffering off;
      proxy_read_timeout 600s;
    }}
  }}
}}
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def children(pid):
    """Returns the process and its descendants."""
    found = [pid]
    for task in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            for child in task.read_text().split():
                found += children(int(child))
        except OSError:
            continue
    return found


def cpu_seconds(pid):
    """Returns user and system CPU time of a process and its children, in the scheduler's
    precision."""
    spent = 0
    for each in children(pid):
        for stat in pathlib.Path(f"/proc/{each}/task").glob("*/schedstat"):
            try:
                spent += int(stat.read_text().split()[0])
            except OSError:
                continue
    return spent / 1e9


class Router:
    """A running router with its name and version, its port and its process."""

    def __init__(self, name, command, port, log):
        self.name, self.port, self.log = name, port, log
        with open(log, "wb") as out:
            self.process = subprocess.Popen([str(c) for c in command], stdout=out, stderr=out,
                                            env={**os.environ, "PYTHONUNBUFFERED": "1",
                                                 "SIGHTLINE_SELECTION_PORT": "0"})

    @property
    def pid(self):
        return self.process.pid

    def wait_ready(self, body):
        deadline = time.monotonic() + READY_S
        while not self._answers(body):
            if self.process.poll() is not None or time.monotonic() > deadline:
                tail = pathlib.Path(self.log).read_text(errors="replace")[-1500:]
                self.stop()
                raise RuntimeError(f"{self.name} does not come up:\n{tail}")
            time.sleep(0.2)
        return self

    def _answers(self, body):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request("POST", "/v1/chat/completions", body,
                               {"content-type": "application/json"})
            answer = connection.getresponse()
            # The answer may be a stream without end, so its first line is enough.
            return answer.status == 200 and bool(answer.readline())
        except OSError:
            return False
        finally:
            connection.close()

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(timeout=5)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


def sightline(build, engine_port, home, baseline=None):
    """Starts this build's program, or another one as baseline."""
    port = free_port()
    name = "baseline" if baseline else "sightline"
    command = [baseline or build / "bin/sightline", "serve",
               "--model-path", build / "models/qwen3-vl",
               "--served-model-name", "demo", "--port", port, "--admin-port", free_port(),
               "--log-level", "warn", "--drain-timeout", "0s",
               "--worker", f"name=w0,url=http://127.0.0.1:{engine_port}"]
    return Router(name, command, port, home / f"{name}.log")


def nginx(engine_port, home):
    port = free_port()
    conf = home / "nginx.conf"
    conf.write_text(NGINX_CONF.format(workers=os.cpu_count(), home=home, tag=f"nginx-{os.getpid()}",
                                      engine=engine_port, port=port))
    said = subprocess.run(["/usr/sbin/nginx", "-v"], capture_output=True, text=True).stderr
    name = "nginx " + re.search(r"nginx/(\S+)", said).group(1)
    return Router(name, ["/usr/sbin/nginx", "-p", home, "-c", conf], port, home / "nginx.log")


def version_of(name, home):
    """Returns the version of a package in a virtual environment, or None without the package."""
    if not (home / "bin/pip").exists():
        return None
    shown = subprocess.run([home / "bin/pip", "--disable-pip-version-check", "show", name],
                           check=False, capture_output=True, text=True)
    return re.search(r"^Version: (\S+)", shown.stdout, re.M).group(1) if shown.stdout else None


def install(name, build):
    """Returns the peer's own virtual environment and the peer's version. The first call makes it in
    build/peers."""
    home = build.parent / "peers" / name
    if version_of(name, home) is None:
        print(f"downloading {name} and what it needs from the Python package index into {home} "
              "(up to 150 MB unpacked)", flush=True)
        venv.create(home, with_pip=True)
        subprocess.run([home / "bin/pip", "-q", "--disable-pip-version-check", "install", name],
                       check=True, stdout=sys.stderr)
    return home, version_of(name, home)


def installed(name, build, engine_port, home):
    """Starts a peer from the package index, with its policy that reads prompts."""
    environment, version = install(name, build)
    port = free_port()
    program, *rest = INSTALLED[name]
    level = "warning" if name == "vllm-router" else "warn"
    command = [environment / "bin" / program, *rest, "--host", "127.0.0.1", "--port", port,
               "--policy", "cache_aware", "--worker-urls", f"http://127.0.0.1:{engine_port}",
               "--prometheus-port", free_port(), "--log-level", level]
    return Router(f"{name} {version}", command, port, home / f"{name}.log")


def start_all(build, engine_port, arguments, body):
    """Starts Sightline, its baseline, nginx and the requested peers. Returns the running routers,
    and the reason for each missing one."""
    home = build / "bench-peers"
    home.mkdir(parents=True, exist_ok=True)
    makers = {"sightline": lambda: sightline(build, engine_port, home),
              "nginx": lambda: nginx(engine_port, home)}
    if arguments.baseline:
        makers["baseline"] = lambda: sightline(build, engine_port, home, arguments.baseline)
    for name in arguments.peers:
        makers[name] = lambda name=name: installed(name, build, engine_port, home)
    running, missing = [], {}
    for name, make in makers.items():
        try:
            running.append(make().wait_ready(body))
        except (OSError, RuntimeError, subprocess.SubprocessError) as error:
            if name in ("sightline", "nginx", "baseline"):
                for router in running:
                    router.stop()
                raise
            missing[name] = str(error)
    return running, missing
