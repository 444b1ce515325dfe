# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Checks that documents list exactly the settings, metrics and routes of the code, and that the
code uses each setting and metric."""

import re

from tree import Finding

RULES = {
    "setting-undocumented": "every setting and flag of the code is in docs/configuration.md",
    "setting-unknown": "every setting and flag that a document names exists in the code",
    "setting-unused": "every field of a settings struct is read outside of common/contract",
    "metric-undocumented": "every metric of the code is in docs/metrics.md",
    "metric-unknown": "every metric that a document names exists in the code",
    "metric-unused": "every metric of the table is written by some module",
    "route-undocumented": "every route of names.h, router/front/proxy and selection_api is in "
                          "docs/api.md",
    "route-unknown": "every route of docs/api.md exists in the code",
}

CONTRACT = "common/contract/"
METRICS = (CONTRACT + "metric*.h", CONTRACT + "controller_metrics.h")
NAMES = CONTRACT + "names.h"
SETTINGS = (CONTRACT + "*settings*.cc", "router/*settings*.cc", "simulator/*settings*.cc",
            "router/cli/*.cc", "router/apps/*.cc", "router/process/*.cc")

# The operator has its own settings and its own page.
OPERATOR_SETTINGS = "operator/manager/operator_settings.cc"
OPERATOR_DOC = "docs/operator.md"

_SETTING = re.compile(r'\{\s*"([a-z_]+(?:\.[a-z_]+)*)",\s*"([a-z][a-z0-9-]*)",')
_FLAG_LITERAL = re.compile(r'"--([a-z][a-z0-9-]*)"')
_FLAG = re.compile(r"(?<![\w-])--([a-z][a-z0-9-]*)")
_PATH = re.compile(r"`([a-z_]+\.[a-z_.]+)`")
_FIELD = re.compile(r"^\s+[\w:<>, ]+?\s(\w+)\s*(?:=[^;]*|\{[^;]*\})?;", re.MULTILINE)
_METRIC = re.compile(r"\b(?:sightline|controller_runtime|workqueue|rest_client|leader_election)"
                     r"_[a-z0-9_]+\b")
_METRIC_ROW = re.compile(r'\bMetricSpec\s+(k\w+)\s*\{\s*"(\w+)"')
_ROUTE_ROW = re.compile(r'std::string_view\s+(k\w+)\s*=\s*"(/[\w/{}.-]*)"')
_ROUTE_LITERAL = re.compile(r'"(/[a-z][\w/]*\w)"')
_ROUTE = re.compile(r"\b(?:GET|POST|PUT|DELETE)\s+(/[\w/{}.*-]*)")


def check(tree):
    yield from _settings(tree)
    yield from _settings_used(tree)
    yield from _metrics(tree)
    yield from _routes(tree)


def _line(text, position):
    return text.count("\n", 0, position) + 1


def _declared(tree, pattern, group, *globs):
    """Returns {text of the pattern's group: (path, line)} for the files of the globs."""
    found = {}
    for path in tree.match(*globs):
        text = tree.text(path)
        for match in pattern.finditer(text):
            found.setdefault(match.group(group), (path, _line(text, match.start())))
    return found


def _documents(tree):
    return tree.match("README.md", "docs/*.md")


def _compare(tree, doc, in_code, in_doc, kind):
    """Compares a table of the code with its page in both directions."""
    for name, (path, line) in in_code.items():
        if name not in in_doc:
            yield Finding(path, line, f"{kind}-undocumented", f"'{name}' is not in {doc}")
    for name, (path, line) in in_doc.items():
        if name not in in_code:
            yield Finding(path, line, f"{kind}-unknown", f"'{name}' is not in the code")


def _settings(tree):
    doc = "docs/configuration.md"
    flags = _declared(tree, _SETTING, 2, *SETTINGS)
    paths = {name: place for name, place in _declared(tree, _SETTING, 1, *SETTINGS).items()
             if "." in name}
    if not flags and not tree.has(doc):
        return
    plain = _declared(tree, _FLAG_LITERAL, 1, *SETTINGS, CONTRACT + "*", "router/main.cc")
    in_doc = _declared(tree, _FLAG, 1, doc)
    operators = _declared(tree, _SETTING, 2, OPERATOR_SETTINGS)
    known = {**plain, **flags, **operators}
    in_operator_doc = _declared(tree, _FLAG, 1, OPERATOR_DOC)
    for name, (path, line) in operators.items():
        if name not in in_operator_doc:
            yield Finding(path, line, "setting-undocumented",
                          f"'--{name}' is not in {OPERATOR_DOC}")
    for name, (path, line) in flags.items():
        if name not in in_doc:
            yield Finding(path, line, "setting-undocumented", f"'--{name}' is not in {doc}")
    for page in _documents(tree):
        for name, (path, line) in _declared(tree, _FLAG, 1, page).items():
            if name not in known:
                yield Finding(path, line, "setting-unknown", f"'--{name}' is not in the code")
    sections = {path.split(".")[0] for path in paths}
    documented = {name: place for name, place in _declared(tree, _PATH, 1, doc).items()
                  if name.split(".")[0] in sections}
    yield from _compare(tree, doc, paths, documented, "setting")


def _settings_used(tree):
    users = "\n".join(tree.code(p) for p in tree.product() if not p.startswith(CONTRACT))
    for path in tree.match(CONTRACT + "serve_settings.h"):
        code = tree.code(path)
        for match in re.finditer(r"struct\s+\w+\s*\{(.*?)\n\};", code, re.DOTALL):
            for field in _FIELD.finditer(match.group(1)):
                if not re.search(rf"(?:\.|->)\s*{field.group(1)}\b", users):
                    line = _line(code, match.start(1) + field.start(1))
                    yield Finding(path, line, "setting-unused",
                                  f"nothing reads '{field.group(1)}': use it or delete it")


def _metrics(tree):
    doc = "docs/metrics.md"
    table = _declared(tree, _METRIC_ROW, 2, *METRICS)
    constants = _declared(tree, _METRIC_ROW, 1, *METRICS)
    if not table and not tree.has(doc):
        return
    in_doc = _declared(tree, _METRIC, 0, doc)
    yield from _compare(tree, doc, table, in_doc, "metric")
    for page in _documents(tree):
        for name, (path, line) in _declared(tree, _METRIC, 0, page).items():
            base = re.sub(r"_(?:bucket|sum|count)$", "", name)
            if page != doc and name not in table and base not in table:
                yield Finding(path, line, "metric-unknown", f"'{name}' is not in the code")
    tables = tree.match(*METRICS)
    users = "\n".join(tree.code(p) for p in tree.product() if p not in tables)
    for name, (path, line) in constants.items():
        if not re.search(rf"\b{name}\b", users):
            yield Finding(path, line, "metric-unused",
                          f"nothing writes {name}: use it or delete it")


def _routes(tree):
    doc = "docs/api.md"
    routes = {**_declared(tree, _ROUTE_LITERAL, 1, "router/front/proxy/*.cc"),
              **_declared(tree, _ROUTE_LITERAL, 1, "router/front/selection_api/*.cc"),
              **_declared(tree, _ROUTE_ROW, 2, NAMES)}
    if not routes and not tree.has(doc):
        return
    yield from _compare(tree, doc, routes, _declared(tree, _ROUTE, 1, doc), "route")
