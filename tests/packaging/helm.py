# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Runs helm on the chart."""

import json
import pathlib
import subprocess

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
CHART = ROOT / "charts/sightline"
CI = sorted((CHART / "ci").glob("*-values.yaml"))
NAMESPACE = "sightline-system"
RELEASE = "sightline"
# Kinds of the Prometheus operator, which a cluster may lack.
MONITORING = ("monitoring.coreos.com/v1/PodMonitor", "monitoring.coreos.com/v1/PrometheusRule")


class Refused(Exception):
    """helm refused its input. The text is helm's own output."""


class Helm:
    def __init__(self, program):
        self._program = program

    def run(self, *arguments, given=None):
        answer = subprocess.run([self._program, *map(str, arguments)], text=True, input=given,
                                capture_output=True, check=False, timeout=60)
        if answer.returncode != 0:
            raise Refused(answer.stdout + answer.stderr)
        return answer.stdout

    def text(self, *arguments, values=None, release=RELEASE, chart=CHART):
        """Returns the rendered text. `values` is a dict, and flags override it."""
        given = json.dumps(values or {})
        return self.run("template", release, chart, "--namespace", NAMESPACE, "--values", "-",
                        *arguments, given=given)

    def objects(self, *arguments, **options):
        return objects_of(self.text(*arguments, **options))


def objects_of(text):
    loaded = yaml.load_all(text, Loader=yaml.CSafeLoader)
    return [one for one in loaded if one is not None]


def place(thing):
    metadata = thing["metadata"]
    return f"{thing['kind']} {metadata.get('namespace', '-')}/{metadata['name']}"


def by_place(objects):
    named = {place(one): one for one in objects}
    assert len(named) == len(objects), "an object is rendered twice"
    return named


def default_values():
    return yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
