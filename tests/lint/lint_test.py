# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Lint finds a planted violation of each rule, names the rule, and accepts a clean tree."""

import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from tiny_tree import (CLEAN, HEADER, REPOSITORY, SCRIPT_SPDX, SOURCE, SPDX, TEST,  # noqa: E402
                       lint, with_body, write)

LONG_COMMENT = "// " + "a" * 98 + "\n"


def included_own(stem):
    return SPDX + f'#include "{stem}.h"\n\n'


def included(text, line):
    """Returns the source with one more include after its own header."""
    head, rest = text.split(".h\"\n", 1)
    return f'{head}.h"\n\n#include {line}\n{rest}'


SETTINGS = {
    "common/contract/serve_settings.h":
        SPDX + "#pragma once\n\nstruct ServerSettings {\n  int port = 8000;  // TCP\n};\n",
    "common/contract/serve_settings.cc":
        included_own("common/contract/serve_settings") +
        'SettingText text{"server.port", "port", "N", "Port."};\n',
    "tests/unit/common/contract/serve_settings_test.cc": SPDX,
    "router/cache/keys/twice.cc": with_body(["value += settings.port;"]),
    "docs/configuration.md": "`server.port` `--port`\n",
}
METRICS = {
    "common/contract/metric_table.h":
        SPDX + '#pragma once\n\nconstexpr MetricSpec kTwice{"sightline_twice_total"};\n',
    "router/cache/keys/twice.cc": included(
        with_body(["count(kTwice);"]), '"common/contract/metric_table.h"'),
    "docs/metrics.md": "sightline_twice_total\n",
}
ROUTES = {
    "common/contract/names.h":
        SPDX + '#pragma once\n\nconstexpr std::string_view kTwicePath = "/twice";\n',
    "router/cache/keys/twice.cc": included(SOURCE, '"common/contract/names.h"'),
    "docs/api.md": "GET /twice\n",
}

# A class with a guarded member, in a module that is not pure.
COUNTER = {
    **{path: (REPOSITORY / path).read_text()
       for path in ("common/base/clock.h", "common/base/mutex.h")},
    "router/front/retry/count.h": SPDX + """#pragma once

#include "common/base/mutex.h"

namespace sightline::retry {

// Thread safety: all methods from any thread.
class Count {
 public:
  int total();

 private:
  Mutex mutex_;
  int total_ SL_GUARDED_BY(mutex_) = 0;
};

}  // namespace sightline::retry
""",
}


def counter_with(*statements):
    lines = "".join(f"  {line}\n" for line in statements)
    return (included_own("router/front/retry/count") + "namespace sightline::retry {\n\n"
            f"int Count::total() {{\n{lines}}}\n\n}}  // namespace sightline::retry\n")


LOCKED = {**COUNTER, "router/front/retry/count.cc":
          counter_with("const MutexLock lock(mutex_);", "return total_;")}

# name of the case: (rule, files that replace files of the clean tree or are added to it)
PLANTED = {
    "vague words": ("plain-words", {
        "README.md": CLEAN["README.md"] + "\nNobody is told.\n"}),
    "semicolons in comments": ("plain-words", {
        "router/cache/keys/twice.cc": SOURCE + "// It doubles; it never halves; it ends.\n"}),
    "a sentence of 31 words": ("plain-words", {
        "router/cache/keys/twice.h": HEADER + f"// {'word ' * 15}\n// {'word ' * 16}\n"}),
    "a function of 61 lines": ("function-length", {
        "router/cache/keys/twice.cc": with_body(["value += 1;"] * 58)}),
    "a test of 81 lines": ("function-length", {
        "tests/unit/router/cache/keys/twice_test.cc": TEST.replace(
            "{ EXPECT_EQ", "{\n" + "  EXPECT_TRUE(true);\n" * 79 + "  EXPECT_EQ").replace(
            "; }", ";\n}")}),
    "a source of 401 lines": ("file-length", {
        "router/cache/keys/twice.cc": SOURCE + "// Why.\n" * 393}),
    "a script of 401 lines": ("file-length", {
        "hack/count": CLEAN["hack/count"] + "echo 1\n" * 396}),
    "a header of 201 lines": ("header-length", {
        "router/cache/keys/twice.h": HEADER + "// What.\n" * 192}),
    "a line of 101 columns": ("line-length", {"router/cache/keys/twice.cc": SOURCE + LONG_COMMENT}),
    "five parameters": ("parameters", {
        "router/cache/keys/twice.cc":
            SOURCE + "\nint five(int a, int b, int c, int d, int e) { return "
                                         "a + b + c + d + e; }\n"}),
    "control statements four deep": ("nesting", {
        "router/cache/keys/twice.cc": with_body([
            "if (value > 1) {", "  while (value > 2) {", "    for (;;) {", "      if (value > 3) {",
            "        --value;", "      }", "    }", "  }", "}"])}),
    "a module of 15 files": ("module-size", {
        f"router/cache/keys/part_{i}.h": HEADER for i in range(13)}),
    "a name of three types": ("name-reused", {
        "router/cache/keys/twice.h": HEADER.replace("// Twice", "".join(
            f"struct {outer} {{\n  struct Part {{\n    int size = 0;\n  }};\n}};\n\n"
            for outer in ("First", "Second", "Third")) + "// Twice")}),
    "a name of two files": ("name-reused", {"router/cli/twice.cc": SPDX}),
    "no licence lines": ("spdx", {"router/cache/keys/twice.h": HEADER.replace(SPDX, "")}),
    "a script without licence lines": ("spdx", {
        "hack/count": CLEAN["hack/count"].replace(SCRIPT_SPDX, "")}),
    "no pragma once": ("pragma-once", {
        "router/cache/keys/twice.h": HEADER.replace("#pragma once\n\n", "\n")}),
    "an include that is no path from the root": ("include-path", {
        "router/cache/keys/twice.cc": SOURCE.replace('"router/cache/keys/twice.h"', '"twice.h"')}),
    "an include of a higher layer": ("include-edge", {
        "router/cache/index/other.h": HEADER.replace("keys", "index"),
        "router/cache/keys/twice.cc": included(SOURCE, '"router/cache/index/other.h"')}),
    "simulated engines that use the router's identity": ("include-edge", {
        "simulator/cluster/other.cc": SOURCE}),
    "common code that includes the router": ("include-edge", {
        "common/base/other.cc": SOURCE}),
    "a module that the table does not know": ("module-unknown", {
        "router/novel/novel.cc": SPDX}),
    "own header second": ("own-header-first", {
        "router/cache/keys/twice.cc": SOURCE.replace(
            '#include "router', '#include <vector>\n\n#include "router')}),
    "a library outside of its adapter": ("third-party", {
        "router/cache/keys/twice.cc": included(SOURCE, "<curl/curl.h>")}),
    "a library that the table does not know": ("third-party", {
        "router/cache/keys/twice.cc": included(SOURCE, "<novel/novel.h>")}),
    "a pure module that writes files": ("pure-include", {
        "router/cache/keys/twice.cc": included(SOURCE, "<fstream>")}),
    "a pure module that opens sockets": ("pure-include", {
        "router/cache/keys/twice.cc": included(SOURCE, "<sys/socket.h>")}),
    "a pure module that logs": ("pure-word", {
        "router/cache/keys/twice.cc": with_body(["log(LogLevel::Info, std::to_string(value));"])}),
    "a pure module that reads a clock": ("pure-word", {
        "router/cache/keys/twice.cc": with_body(["auto now = system_clock().now();"])}),
    "a pure module that prints": ("pure-word", {
        "router/cache/keys/twice.cc": with_body(["std::printf(\"%d\", value);"])}),
    "a class that manages": ("banned-name", {
        "router/cache/keys/twice.cc": SOURCE + "\nclass KeyManager;\n"}),
    "a comment that promises": ("unfinished", {
        "router/cache/keys/twice.cc": SOURCE + "// TODO: more.\n"}),
    "a document that promises": ("unfinished", {
        "README.md": CLEAN["README.md"] + "\nThis is simplified.\n"}),
    "a path of one machine": ("machine-path", {
        "hack/count": CLEAN["hack/count"] + "ls /home/somebody/x\n"}),
    "a source that no target builds": ("dead-file", {
        "router/extra/CMakeLists.txt": "", "router/extra/lost.cc": SPDX}),
    "a header that nobody includes": ("dead-file", {"router/cache/keys/lost.h": HEADER}),
    "a pure source without a test": ("test-missing", {"router/cache/keys/untested.cc": SPDX}),
    "a setting that is not documented": ("setting-undocumented", {
        **SETTINGS, "docs/configuration.md": ""}),
    "a setting that only the document has": ("setting-unknown", {
        **SETTINGS, "docs/configuration.md": "`server.port` `--port` `server.path`\n"}),
    "a flag that only the README has": ("setting-unknown", {
        **SETTINGS, "README.md": "# Tiny\n\nSay `sightline --colour`.\n"}),
    "a setting that nothing reads": ("setting-unused", {
        **SETTINGS, "router/cache/keys/twice.cc": SOURCE}),
    "a metric that is not documented": ("metric-undocumented", {**METRICS, "docs/metrics.md": ""}),
    "a metric that only the document has": ("metric-unknown", {
        **METRICS, "docs/metrics.md": "sightline_twice_total sightline_half_total\n"}),
    "a metric that nothing writes": ("metric-unused", {
        **METRICS, "router/cache/keys/twice.cc": SOURCE}),
    "a route that is not documented": ("route-undocumented", {**ROUTES, "docs/api.md": ""}),
    "a route that only the document has": ("route-unknown", {
        **ROUTES, "docs/api.md": "GET /twice, GET /half\n"}),
    "test data without its origin": ("test-data", {"tests/data/pictures/a.txt": "a"}),
    "16 MB of test data": ("test-data", {
        "tests/data/pictures/README.md": "Made here.\n",
        "tests/data/pictures/a.txt": "a" * (16 << 20)}),
    "an edge that nothing uses": ("unused-edge", {
        "hack/lint/modules.txt": "the table of this repository is read, not this one\n"}),
    "a suppressed report about own code": ("suppression", {
        "hack/sanitizers/races.txt": "# Fails now and then.\nrace:router/cache/index\n"}),
    "a suppressed report without a reason": ("suppression", {
        "hack/sanitizers/races.txt": "# Its own queues.\nrace:libzmq.so\n\nrace:libcurl.so\n"}),
    "a link to nowhere": ("dead-link", {"README.md": "See [it](docs/none.md).\n"}),
    "a link to no heading": ("dead-link", {"README.md": "# Tiny\n\nSee [it](#huge).\n"}),
    "bad form": ("clang-format", {
        "router/cache/keys/twice.cc": SOURCE.replace("2 * value", "2*value")}),
    "a guarded member that is read without its mutex": ("thread-safety", {
        **COUNTER, "router/front/retry/count.cc": counter_with("return total_;")}),
    "a source that the thread-safety analysis cannot read": ("thread-safety", {
        **COUNTER, "router/front/retry/count.cc": counter_with("return novel;")}),
    "a source that clang does not take, where it builds fuzz targets": ("thread-safety", {
        "tests/fuzz/CMakeLists.txt": "",
        "router/cache/keys/twice.cc": SOURCE.replace("{ return 2 * value; }", """{
  const int both[2] = {value, value};
  const auto& [a, b] = both;
  return [&] { return a + b; }();
}""")}),
    "a broken shell script": ("bash-syntax", {"hack/count": CLEAN["hack/count"] + "if true\n"}),
    "a shell script that goes on after errors": ("bash-syntax", {
        "hack/count": CLEAN["hack/count"].replace("set -euo pipefail\n", "")}),
    "a broken Python file": ("python-syntax", {"hack/count.py": SCRIPT_SPDX + "if True\n"}),
}

BANNED = {
    "throw": "throw 1;",
    "using namespace": "using namespace std;",
    "sleep_for": "std::this_thread::sleep_for(second);",
    "sleep": "usleep(1000);",
    "rand": "value += rand();",
    "wall clock": "auto now = std::chrono::system_clock::now();",
    "C clock": "auto now = time(nullptr);",
    "getenv": "auto* home = std::getenv(\"HOME\");",
    "thread": "std::thread worker([] {});",
    "mutex": "std::mutex mutex;",
    "lock": "const std::lock_guard lock(mutex);",
    "condition variable": "std::condition_variable_any changed;",
    "mutex of the system": "pthread_rwlock_rdlock(lock);",
    "jthread": "std::jthread worker([] {});",
    "new": "auto* owned = new int(value);",
    "delete": "delete owned;",
    "malloc": "auto* owned = malloc(8);",
    "views": "auto view = values | std::views::take(2);",
    "assert": "assert(value > 1);",
    "a macro that leaks": "return Pair{std::string(name), SL_TRY(number_of(name))};",
}


def run_on(tmp_path, files):
    write(tmp_path, {**CLEAN, **files})
    return lint(tmp_path)


SUPPRESSED = {"hack/sanitizers/races.txt": "# Why.\n\n# Its queues.\nrace:libzmq.so\n"}


def test_a_clean_tree_passes(tmp_path):
    status, rules, output = run_on(tmp_path, SUPPRESSED)
    assert (status, rules) == (0, set()), output


@pytest.mark.parametrize("files", [SETTINGS, METRICS, ROUTES], ids=["setting", "metric", "route"])
def test_a_tree_whose_documents_agree_passes(files, tmp_path):
    status, rules, output = run_on(tmp_path, files)
    assert (status, rules) == (0, set()), output


@pytest.mark.parametrize("case", PLANTED)
def test_lint_finds_a_planted_violation(case, tmp_path):
    rule, files = PLANTED[case]
    status, rules, output = run_on(tmp_path, files)
    assert status == 1 and rule in rules, output


@pytest.mark.parametrize("word", BANNED)
def test_lint_finds_a_banned_word_only_in_code(word, tmp_path):
    status, rules, output = run_on(tmp_path, {
        "router/cache/keys/twice.cc": with_body([BANNED[word]])})
    assert status == 1 and "banned-word" in rules, output
    text = BANNED[word].replace('"', "'")
    quiet = {
        "router/cache/keys/twice.cc": with_body([f"// {text}", f'const char* text = "{text}";'])}
    write(tmp_path, quiet)
    status, rules, output = lint(tmp_path)
    assert (status, rules) == (0, set()), output


def test_a_test_may_have_any_mutex(tmp_path):
    waiting = TEST.replace("{ EXPECT_EQ", "{\n  std::mutex mutex;\n  EXPECT_EQ").replace(
        "; }", ";\n}")
    status, rules, output = run_on(tmp_path, {
        "tests/unit/router/cache/keys/twice_test.cc": waiting})
    assert (status, rules) == (0, set()), output


def test_a_guarded_member_may_be_read_under_its_mutex(tmp_path):
    status, rules, output = run_on(tmp_path, LOCKED)
    assert (status, rules) == (0, set()), output


def test_lint_analyses_sources_of_a_changed_header_again(tmp_path):
    run_on(tmp_path, LOCKED)
    header = "router/front/retry/count.h"
    other = LOCKED[header].replace("GUARDED_BY(mutex_)", "GUARDED_BY(other_)").replace(
        "Mutex mutex_;", "Mutex mutex_;\n  Mutex other_;")
    write(tmp_path, {header: other})
    status, rules, output = lint(tmp_path)
    assert (status, rules) == (1, {"thread-safety"}), output
    assert "router/front/retry/count.cc" in output and "other_" in output
    write(tmp_path, {header: LOCKED[header]})
    status, rules, output = lint(tmp_path)
    assert (status, rules) == (0, set()), output


def test_lint_bans_skipped_tests(tmp_path):
    skipping = TEST.replace("{ EXPECT_EQ", "{\n  GTEST_SKIP();\n  EXPECT_EQ").replace("; }", ";\n}")
    status, rules, output = run_on(tmp_path, {
        "tests/unit/router/cache/keys/twice_test.cc": skipping})
    assert status == 1 and rules == {"banned-word"}, output


def test_lint_finds_an_unused_exception(tmp_path):
    clock = SPDX + '\nnamespace sightline {}\n'
    files = {"common/base/clock.cc": clock,
             "hack/lint/allowed.txt": "the table of this repository is read, not this one\n"}
    status, rules, output = run_on(tmp_path, files)
    assert status == 1 and rules == {"unused-allowance"}, output
    assert "common/base/clock.cc" in output


def test_every_rule_has_a_planted_violation():
    listed = subprocess.run(["/usr/bin/python3", str(REPOSITORY / "hack/lint"), "--rules"],
                            capture_output=True, text=True, check=True).stdout
    rules = {line.split()[0] for line in listed.splitlines()}
    planted = {rule for rule, _ in PLANTED.values()} | {"banned-word"}
    assert rules - planted == set()
