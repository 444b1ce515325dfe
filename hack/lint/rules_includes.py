# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Checks which file may include which header."""

import fnmatch

import tables
from tree import Finding, module_of

RULES = {
    "include-path": "project headers are included from the repository root and exist",
    "include-edge": "a module includes only the modules that modules.txt allows it",
    "module-unknown": "every directory of sources is a module of modules.txt",
    "own-header-first": "a source includes its own header before anything else",
    "third-party": "a third-party header is included only in its adapter",
    "pure-include": "a pure module includes nothing that does I/O, waits, logs or reads a clock",
}

# Pure modules decide from values only: no I/O, thread, clock, log or metric. A prefix matches
# files, so a list of prefixes can leave out the adapters of a pure module.
PURE = ("common/contract/", "router/openai/", "router/prompt/chat/", "router/prompt/image/",
        "router/prompt/model/", "router/prompt/template/", "router/prompt/tokenizer/",
        "router/cache/keys/", "router/cache/index/", "router/workers/lists/",
        "router/workers/routing/", "router/front/leases/")

IMPURE_HEADERS = {
    "iostream", "ostream", "istream", "fstream", "stdio.h", "print", "syncstream",
    "filesystem", "thread", "mutex", "shared_mutex", "condition_variable", "future", "semaphore",
    "latch", "barrier", "stop_token", "ctime", "time.h", "csignal", "random", "cstdlib",
    "common/base/log.h", "common/base/bounded_queue.h", "common/base/mutex.h",
    "common/base/writer_first_mutex.h",
}
POSIX = ("sys/*", "netinet/*", "arpa/*", "net/*", "linux/*", "unistd.h", "fcntl.h", "poll.h",
         "termios.h",
         "pthread.h", "signal.h", "dirent.h", "netdb.h", "errno.h", "time.h", "sched.h")
# Headers of the C language and the processor, not of the operating system.
PLAIN_C = ("immintrin.h", "cpuid.h", "math.h", "stdint.h", "string.h", "stdlib.h", "stdio.h")


def is_pure(path):
    return path.startswith(PURE)


def check(tree):
    edges = tables.module_edges()
    adapters = tables.third_party()
    for path in tree.sources():
        yield from _project(tree, path, edges)
        if path.endswith(".cc"):
            yield from _own_header(tree, path)
        if path in tree.product():
            yield from _third_party(tree, path, adapters)
        if is_pure(path):
            yield from _purity(tree, path)


def _project(tree, path, edges):
    module = module_of(path)
    if module is not None and module not in edges:
        yield Finding(path, 1, "module-unknown", f"add {module} to hack/lint/modules.txt")
        return
    for include in tree.includes(path):
        if not include.quoted:
            continue
        if not tree.has(include.name):
            yield Finding(path, include.line, "include-path",
                          f'"{include.name}" is no file: write the path from the repository root')
            continue
        target = module_of(include.name)
        if module is None or target is None or target == module:
            continue
        if target not in edges[module]:
            yield Finding(path, include.line, "include-edge",
                          f"{module} may not include {target} (hack/lint/modules.txt)")


def _own_header(tree, path):
    own = path[:-len(".cc")] + ".h"
    includes = tree.includes(path)
    if tree.has(own) and (not includes or includes[0].name != own):
        yield Finding(path, 1, "own-header-first", f'include "{own}" first')


def _third_party(tree, path, adapters):
    for include in tree.includes(path):
        name = include.name
        if include.quoted or ("." not in name and "/" not in name):
            continue
        if any(fnmatch.fnmatch(name, pattern) for pattern in POSIX + PLAIN_C):
            continue
        places = next((p for header, p in adapters if fnmatch.fnmatch(name, header)), None)
        if places is None:
            yield Finding(path, include.line, "third-party",
                          f"<{name}> is not in hack/lint/third_party.txt")
        elif not any(fnmatch.fnmatch(path, place) for place in places):
            yield Finding(path, include.line, "third-party",
                          f"<{name}> belongs to {' '.join(places)}")


def _purity(tree, path):
    for include in tree.includes(path):
        name = include.name
        impure = name in IMPURE_HEADERS or name.startswith("common/runtime/")
        if impure or any(fnmatch.fnmatch(name, pattern) for pattern in POSIX):
            yield Finding(path, include.line, "pure-include",
                          f"{name} has no place in a pure module: take values, return values")
