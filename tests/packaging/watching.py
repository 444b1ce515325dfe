# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Runs a Prometheus that scrapes given targets and loads the chart's alerts, and an Alertmanager
that gets its alerts."""

import contextlib
import json
import pathlib
import subprocess
import time
import urllib.parse
import urllib.request

import yaml
from helm import CHART
from nats_server import free_port

READY_S = 30


def wait_for(condition, seconds=READY_S, what="it"):
    deadline = time.monotonic() + seconds
    while True:
        with contextlib.suppress(OSError):
            found = condition()
            if found:
                return found
        if time.monotonic() > deadline:
            raise RuntimeError(f"{what}: not so after {seconds} s")
        time.sleep(0.2)


def never_with_data(without_data, expected, seconds):
    """Calls without_data() repeatedly, and returns the names that all calls returned. Stops when
    only expected names are left, or after the time. Queries do not all have data at one moment."""
    looks = []

    def are_few():
        looks.append(without_data())
        return set.intersection(*looks) <= expected
    with contextlib.suppress(RuntimeError):
        wait_for(are_few, seconds)
    return set.intersection(*looks)


def rules_with_short_times(folder, seconds):
    """Writes the chart's rules with another `for` and an interval of one second, and otherwise
    unchanged. Returns the files."""
    made = []
    for path in sorted((CHART / "alerts").glob("*.yaml")):
        rules = yaml.safe_load(path.read_text(encoding="utf-8"))
        for group in rules["groups"]:
            group["interval"] = "1s"
            for rule in group["rules"]:
                rule["for"] = f"{seconds}s"
        target = pathlib.Path(folder) / path.name
        target.write_text(yaml.safe_dump(rules), encoding="utf-8")
        made.append(str(target))
    return made


def address_of(place):
    return place if ":" in str(place) else f"127.0.0.1:{place}"


class Watch:
    """Use it as a context manager.
    targets: job -> [(local port or address, labels)]
    alerts_after: seconds that replace every alert's own time (None: no alerts)"""

    def __init__(self, folder, targets, alerts_after=None, scrape_s=1):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.targets = targets
        self.alerts_after = alerts_after
        self.scrape_s = scrape_s
        self.port, self.alert_port = free_port(), free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.alert_url = f"http://127.0.0.1:{self.alert_port}"
        self._running = []

    def __enter__(self):
        config = {
            "global": {"scrape_interval": f"{self.scrape_s}s", "evaluation_interval": "1s"},
            "scrape_configs": [{"job_name": "added", "file_sd_configs": [
                {"files": ["added-*.json"], "refresh_interval": "1s"}]}] + [
                {"job_name": job, "static_configs": [
                    {"targets": [address_of(place)], "labels": labels}
                    for place, labels in targets]}
                for job, targets in self.targets.items()]}
        if self.alerts_after is not None:
            config["rule_files"] = rules_with_short_times(self.folder, self.alerts_after)
            config["alerting"] = {"alertmanagers": [
                {"static_configs": [{"targets": [f"127.0.0.1:{self.alert_port}"]}]}]}
            receivers = {"route": {"receiver": "nobody", "group_wait": "1s"},
                         "receivers": [{"name": "nobody"}]}
            (self.folder / "alertmanager.yaml").write_text(json.dumps(receivers))
            self._start("prometheus-alertmanager", "--config.file=alertmanager.yaml",
                        "--storage.path=alerts", "--cluster.listen-address=",
                        f"--web.listen-address=127.0.0.1:{self.alert_port}")
        (self.folder / "prometheus.yaml").write_text(yaml.safe_dump(config))
        self._start("prometheus", "--config.file=prometheus.yaml", "--storage.tsdb.path=data",
                    f"--web.listen-address=127.0.0.1:{self.port}")
        wait_for(lambda: self.get(f"{self.url}/api/v1/status/runtimeinfo"), what="prometheus")
        return self

    def _start(self, program, *arguments):
        with open(self.folder / f"{program}.log", "wb") as log:
            self._running.append(subprocess.Popen([program, *arguments], cwd=self.folder,
                                                  stdout=log, stderr=log))

    def get(self, url, **parameters):
        query = f"?{urllib.parse.urlencode(parameters)}" if parameters else ""
        with urllib.request.urlopen(url + query, timeout=10) as answer:
            return json.load(answer)

    def __exit__(self, *_):
        for process in self._running:
            process.terminate()
        for process in self._running:
            process.wait()

    def add_target(self, name, place):
        """Adds a target with a new job."""
        (self.folder / f"added-{name}.json").write_text(json.dumps(
            [{"targets": [address_of(place)], "labels": {"job": name}}]))

    def value(self, expr):
        """Returns the number of a query's first series, or None without one."""
        found = self.get(f"{self.url}/api/v1/query", query=expr)["data"]["result"]
        return float(found[0]["value"][1]) if found else None

    def settled(self, expr):
        """Returns the value of an expression after three scrapes with the same value. An expression
        without data has no value."""
        seen = []

        def same():
            time.sleep(self.scrape_s)
            seen.append(self.value(expr))
            return len(seen) >= 3 and seen[-1] is not None and len(set(seen[-3:])) == 1
        wait_for(same, what=f"{expr} does not change any more")
        return seen[-1]

    def firing(self):
        """Returns the alerts at the Alertmanager as {name: [alerts]}, with labels and
        annotations."""
        found = {}
        for one in self.get(f"{self.alert_url}/api/v2/alerts", active="true"):
            found.setdefault(one["labels"]["alertname"], []).append(one)
        return found

    def wait_for_alert(self, name, seconds=60):
        return wait_for(lambda: self.firing().get(name), seconds, name)

    def wait_until_cleared(self, name, seconds=60):
        wait_for(lambda: name not in self.firing(), seconds, f"{name} is cleared")
