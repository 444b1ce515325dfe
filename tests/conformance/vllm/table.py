# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Judged requests as a table: which request is wrong, and which whole run proves too little."""

import dataclasses
import sys

ROWS_MIN = 80
# The router does not audit a request for which the engine skips its cache. It also does not audit
# one whose worker has untrusted events, as after a restart.
UNAUDITED_MAX = 4


@dataclasses.dataclass
class Row:
    """One judged request."""

    kind: str
    what: str
    worker: str
    predicted: int  # tokens that the router expects to be cached
    actual: int  # usage.prompt_tokens_details.cached_tokens
    tokens_ours: int
    tokens_engine: int  # usage.prompt_tokens
    ids_equal: bool  # the router's token ids and the engine's prompt_token_ids
    not_counted: str
    first_after: str  # "restart" or "reset": the worker's first answer after it
    audit: str  # the router's own audit: equal, over, under, or empty if there was none

    @property
    def prompt_equal(self):
        return self.ids_equal and self.tokens_ours == self.tokens_engine

    @property
    def equal(self):
        return self.predicted == self.actual

    @property
    def audit_agrees(self):
        if self.equal:
            return self.audit in ("equal", "")
        return self.audit == ("over" if self.predicted > self.actual else "under")

    @property
    def exempt(self):
        """An engine publishes a lost cache only with its next step. This request is that step."""
        return bool(self.first_after)

    @property
    def wrong(self):
        return not self.prompt_equal or not (self.equal or self.exempt)

    def verdict(self):
        if self.wrong:
            return "WRONG" if self.prompt_equal else "PROMPT DIFFERS"
        return "yes" if self.equal else f"no, first after {self.first_after}"


HEADER = (
    f"{'':>4} {'kind':13} {'request':46} {'worker':8} {'tokens':>11} {'predicted':>9} "
    f"{'actual':>6}  equal"
)


def line_of(number, row):
    tokens = f"{row.tokens_ours}/{row.tokens_engine}"
    line = (f"{number:4} {row.kind:13} {row.what:46} {row.worker:8} {tokens:>11} "
            f"{row.predicted:9} {row.actual:6}  {row.verdict()}")
    return line + (f" (not counted: {row.not_counted})" if row.not_counted else "")


def problems_of(rows):
    """Yields each wrong row, and each reason why the run proves too little."""
    for number, row in enumerate(rows, 1):
        if not row.prompt_equal:
            yield f"row {number}: the engine's prompt is not the one that the router computed"
        elif row.wrong:
            yield f"row {number}: predicted {row.predicted} cached tokens, found {row.actual}"
        if row.not_counted:
            yield f"row {number}: not counted because of {row.not_counted}"
        if not row.audit_agrees:
            yield f"row {number}: the router's own audit says '{row.audit}'"
    if len(rows) < ROWS_MIN:
        yield f"only {len(rows)} requests were judged, wanted are {ROWS_MIN}"
    if sum(row.predicted > 0 for row in rows) < len(rows) / 3:
        yield "less than a third of the requests reused anything: too little is shown"
    for why in ("reset", "restart"):
        at = next((i for i, row in enumerate(rows) if row.first_after == why), None)
        if at is None:
            yield f"no request reached the worker after its {why}"
        elif not any(r.worker == rows[at].worker and r.predicted > 0 for r in rows[at + 1:]):
            yield f"nothing was reused on the worker after its {why}: healing is not shown"
    if sum(row.audit == "" for row in rows) > UNAUDITED_MAX:
        yield f"the router's own audit passed over more than {UNAUDITED_MAX} requests"


def markdown_of(rows):
    """Returns a table with a line per kind, and one with a line per request."""
    lines = ["| kind | requests | reuse predicted | predicted = actual | first after a loss |",
             "|---|---:|---:|---:|---:|"]
    kinds = list(dict.fromkeys(row.kind for row in rows))
    for kind in kinds + ["all"]:
        of = [row for row in rows if kind in (row.kind, "all")]
        judged = [row for row in of if not row.exempt]
        lines.append(f"| {kind} | {len(of)} | {sum(r.predicted > 0 for r in of)} "
                     f"| {sum(r.equal for r in judged)} of {len(judged)} "
                     f"| {sum(r.exempt for r in of)} |")
    lines += ["", "| # | kind | request | worker | prompt tokens | predicted | actual | equal |",
              "|---:|---|---|---|---:|---:|---:|---|"]
    # Workers are named by their order: their own names contain ports, which differ between runs.
    names = {name: f"w{i}" for i, name in enumerate(sorted({row.worker for row in rows}))}
    for number, row in enumerate(rows, 1):
        lines.append(f"| {number} | {row.kind} | {row.what} | {names[row.worker]} "
                     f"| {row.tokens_engine} | {row.predicted} | {row.actual} | {row.verdict()} |")
    return "\n".join(lines) + "\n"


def print_verdict(rows, problems):
    judged = [row for row in rows if not row.exempt]
    right = sum(not row.wrong for row in judged)
    print(f"\n{len(rows)} requests, {sum(r.predicted > 0 for r in rows)} with predicted reuse; "
          f"predicted = actual on {right} of {len(judged)}; "
          f"{len(rows) - len(judged)} first after a restart or reset, not counted.")
    print(f"Prompt tokens and their ids equal on {sum(r.prompt_equal for r in rows)} of "
          f"{len(rows)}.")
    for problem in problems:
        print(f"conformance: {problem}", file=sys.stderr)
    print("All as predicted." if not problems else "NOT as predicted.")
