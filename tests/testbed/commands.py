# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Uses a bed in the same way as a user: each call runs hack/testbed in its own process."""

import json
import subprocess

from .bed import ROOT, Bed

TESTBED = ROOT / "hack/testbed"


class Commands:
    def __init__(self, name):
        self.name = name

    @property
    def bed(self):
        """The bed's present state, read again each time because another process changes it."""
        return Bed(self.name)

    @property
    def directory(self):
        return self.bed.directory

    def begin(self, command, *arguments):
        return subprocess.Popen(
            [TESTBED, command, "--name", self.name, *map(str, arguments)], text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def run(self, command, *arguments):
        """Returns (status, output, errors)."""
        process = self.begin(command, *arguments)
        output, errors = process.communicate()
        return process.returncode, output, errors

    def must(self, command, *arguments):
        status, output, errors = self.run(command, *arguments)
        assert status == 0, f"hack/testbed {command} {self.name}: {errors}"
        return output

    def up(self, *arguments):
        return self.must("up", *arguments)

    def down(self):
        return self.must("down")

    def kubectl(self, *arguments, given=None):
        """Runs kubectl. `given` is its standard input, a text or an object."""
        text = given if given is None or isinstance(given, str) else json.dumps(given)
        answer = subprocess.run(
            [TESTBED, "shell", "--name", self.name, "kubectl", *map(str, arguments)], text=True,
            input=text, capture_output=True, check=False)
        assert answer.returncode == 0, answer.stderr
        return answer.stdout

    def apply(self, *things):
        self.kubectl("apply", "-f", "-", given={
            "apiVersion": "v1", "kind": "List", "items": list(things)})

    def get(self, *arguments):
        return json.loads(self.kubectl("get", "-o", "json", *arguments))
