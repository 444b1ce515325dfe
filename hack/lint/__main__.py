# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Checks the house rules: `python3 hack/lint [--root DIR] [--rules] [--prose] [PATH…]`.

Prints one line per finding, `path:line: [rule] what to do`, and exits 1 if there is any.
"""

import argparse
import fnmatch
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.dont_write_bytecode = True

import rules_build  # noqa: E402
import rules_contract  # noqa: E402
import rules_docs  # noqa: E402
import rules_format  # noqa: E402
import rules_includes  # noqa: E402
import rules_names  # noqa: E402
import rules_prose  # noqa: E402
import rules_sizes  # noqa: E402
import rules_threads  # noqa: E402
import rules_words  # noqa: E402
import tables  # noqa: E402
from tree import Finding, Tree  # noqa: E402

PARTS = [rules_sizes, rules_includes, rules_words, rules_build, rules_contract, rules_docs,
         rules_format, rules_names, rules_threads, rules_prose]


def unused_allowances(tree, allowed):
    """Finds exceptions in allowed.txt that no file needs."""
    if not tree.has("hack/lint/allowed.txt"):
        return
    for entry in allowed:
        if not entry.used and any(fnmatch.fnmatch(path, entry.path) for path in tree.files):
            yield Finding("hack/lint/allowed.txt", entry.line, "unused-allowance",
                          f"nothing in {entry.path} needs this exception: delete it")


def check(tree):
    allowed = tables.allowances()
    findings = []
    for part in PARTS:
        for finding in part.check(tree):
            lines = tree.lines(finding.path) if tree.has(finding.path) else []
            text = lines[finding.line - 1] if 0 < finding.line <= len(lines) else ""
            entry = tables.find_allowance(allowed, finding, text)
            if entry:
                entry.used = True
            else:
                findings.append(finding)
    findings.extend(unused_allowances(tree, allowed))
    return sorted(set(findings))


def print_prose(tree):
    print(f"{'':6}{'files':>7}{'words':>9}{'markers':>9}{'semicolons':>12}{'long sentences':>16}")
    for kind, files, words, markers, semicolons, sentences in rules_prose.totals(tree):
        print(f".{kind:5}{files:7}{words:9}{markers:9.1f}{semicolons:12.1f}{sentences:16}")
    print("markers and semicolons per 1,000 words")


def main():
    parser = argparse.ArgumentParser(prog="hack/lint", description=__doc__)
    parser.add_argument("--root", default=Path(__file__).resolve().parents[2], help="tree to check")
    parser.add_argument("--rules", action="store_true", help="list the rules and exit")
    parser.add_argument("--prose", action="store_true", help="measure the prose and exit")
    parser.add_argument("--lower-prose", action="store_true",
                        help="lower the counts of hack/lint/prose.txt to what files have, and exit")
    parser.add_argument("paths", nargs="*", help="show only findings below these")
    options = parser.parse_args()
    if options.rules:
        for part in PARTS:
            for rule, meaning in part.RULES.items():
                print(f"{rule:20} {meaning}")
        return 0
    start = time.monotonic()
    tree = Tree(options.root, options.paths)
    if options.prose:
        print_prose(tree)
        return 0
    if options.lower_prose:
        tables.write_prose_rows(rules_prose.lower(tree))
        return 0
    findings = [finding for finding in check(tree) if tree.is_shown(finding.path)]
    for finding in findings:
        print(finding)
    verdict = f"{len(findings)} findings" if findings else "clean"
    print(f"lint: {len(tree.files)} files, {verdict} ({time.monotonic() - start:.1f} s)")
    return 1 if findings else 0


sys.exit(main())
