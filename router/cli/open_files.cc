// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/cli/open_files.h"

#include <algorithm>

#include <sys/resource.h>

#include "common/base/log.h"

namespace sightline::cli {
namespace {

constexpr std::size_t kOpenFilesMax = 1'000'000;
// Of one engine: libzmq's sockets for events, their monitor and a replay take two each and their
// connections one each; probes and a few requests take the rest.
constexpr std::size_t kOpenFilesPerEngine = 16;
// Of the process: clients, listeners, threads, log.
constexpr std::size_t kOpenFilesBase = 1024;

}  // namespace

std::size_t raise_open_files() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  const auto wanted = std::min<rlim_t>(limit.rlim_max, kOpenFilesMax);
  if (limit.rlim_cur < wanted) {
    const rlimit raised{.rlim_cur = wanted, .rlim_max = limit.rlim_max};
    if (setrlimit(RLIMIT_NOFILE, &raised) == 0) limit = raised;
  }
  return static_cast<std::size_t>(std::min<rlim_t>(limit.rlim_cur, kOpenFilesMax));
}

void check_open_files(std::size_t limit, std::size_t engines) {
  const std::size_t needed = kOpenFilesBase + kOpenFilesPerEngine * engines;
  if (limit >= needed) return;
  log(LogLevel::Warn,
      "the limit of open files is low for so many engines: raise it with ulimit -n, LimitNOFILE= "
      "of the unit, or the container's ulimits",
      {{"limit", limit}, {"needed", needed}, {"engines", engines}});
}

}  // namespace sightline::cli
