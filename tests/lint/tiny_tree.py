# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""A small source tree that satisfies every rule. Each test plants one violation in it."""

import os
import subprocess
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
SPDX = "// SPDX-License-Identifier: Apache-2.0\n// Copyright The Sightline Authors\n"
SCRIPT_SPDX = SPDX.replace("//", "#")

HEADER = SPDX + """#pragma once

namespace sightline::keys {

// Twice the value.
int twice(int value);

}  // namespace sightline::keys
"""
SOURCE = SPDX + """#include "router/cache/keys/twice.h"

namespace sightline::keys {

int twice(int value) { return 2 * value; }

}  // namespace sightline::keys
"""
TEST = SPDX + """#include "router/cache/keys/twice.h"

#include <gtest/gtest.h>

TEST(Twice, DoublesAValue) { EXPECT_EQ(sightline::keys::twice(2), 4); }
"""

CLEAN = {
    ".clang-format": (REPOSITORY / ".clang-format").read_text(),
    "router/cache/keys/twice.h": HEADER,
    "router/cache/keys/twice.cc": SOURCE,
    "tests/unit/router/cache/keys/twice_test.cc": TEST,
    "hack/count": "#!/usr/bin/env bash\n" + SCRIPT_SPDX + "set -euo pipefail\necho 1\n",
    "README.md": "# Tiny\n\nSee [the source](router/cache/keys/twice.cc) and [above](#tiny).\n",
}


def write(root, files):
    for path, text in files.items():
        target = Path(root) / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)


def lint(root):
    """Runs lint and returns (exit status, set of named rules, output)."""
    run = subprocess.run(
        ["/usr/bin/python3", str(REPOSITORY / "hack/lint"), "--root", str(root)],
        capture_output=True, text=True, check=False,
        env=os.environ | {"SIGHTLINE_CACHE": str(Path(root) / "build/cache")})
    rules = {line.split("[", 1)[1].split("]", 1)[0]
             for line in run.stdout.splitlines() if ": [" in line}
    return run.returncode, rules, run.stdout + run.stderr


def with_body(statements, indent="  "):
    """Returns the clean source with other statements in its function, in clang-format's style."""
    lines = "".join(f"{indent}{line}\n" for line in statements)
    return SOURCE.replace("{ return 2 * value; }", "{\n" + lines + "  return 2 * value;\n}")
