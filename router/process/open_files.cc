// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/process/open_files.h"

#include <algorithm>

#include <sys/resource.h>

#include "common/base/log.h"

namespace sightline::process {
namespace {

constexpr std::size_t kOpenFilesMax = 1'000'000;
// Of one engine. libzmq's sockets for events, their monitor and a replay take two each, and their
// connections one each. Probes and a few requests take the rest.
constexpr std::size_t kOpenFilesPerEngine = 16;
// Of simulated engines: clients, listeners, threads and log.
constexpr std::size_t kOpenFilesBase = 1024;

// Of a router without clients and engines: standard streams, log, configuration and libraries. Each
// I/O thread has a listener, an epoll, a timer and a wake-up.
constexpr std::size_t kOwnFiles = 48;
constexpr std::size_t kOwnFilesPerThread = 4;
// Reserved for the admin port, probes, files and connections that are turned away, no matter what
// clients do. The admin port may take half of them.
constexpr std::size_t kSpareFiles = 96;
constexpr std::size_t kAdminConnections = 48;
// For engines that come later, by a new configuration or with more ranks than reported.
constexpr std::size_t kLaterEnginesMin = 8;
// A download has a connection, and two sockets while its host name is looked up.
constexpr std::size_t kOpenFilesPerDownload = 3;
constexpr std::size_t kIdlePerThread = 256;  // or one for each engine, if there are more
// On the selection port. Each frontend keeps some for each of its I/O threads.
constexpr std::size_t kFrontendConnections = 4096;
// With fewer clients it would be no router. Then only the spare descriptors are certain.
constexpr std::size_t kClientsMin = 8;

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
      "the limit of open files is too low for this number of engines: raise it with ulimit -n, "
      "LimitNOFILE= of the unit, or the container's ulimits",
      {{"limit", limit}, {"needed", needed}, {"engines", engines}});
}

OpenFilesPlan plan_open_files(std::size_t limit, const contract::ServeSettings& settings,
                              std::size_t io_threads) {
  std::size_t engines = 0;
  for (const auto& worker : settings.workers) engines += std::max(worker.ranks, 1U);
  engines += std::max(engines, kLaterEnginesMin);
  const std::size_t spare = std::min(kSpareFiles, limit / 8);
  // With a very low limit, no kind of connection may take what another needs.
  const std::size_t own = kOwnFiles + kOwnFilesPerThread * io_threads;
  const std::size_t followed = std::min(engines * kOpenFilesPerEngine, limit / 4);
  const std::size_t downloads =
      std::min<std::size_t>(settings.media.downloads_max * kOpenFilesPerDownload, limit / 8);
  // A router without clients of its own serves only frontends, so they get a larger part.
  const std::size_t frontends_share = contract::is_frontend(settings.roles) ? 16 : 2;
  const std::size_t frontends = contract::is_router(settings.roles)
                                    ? std::min(kFrontendConnections, limit / frontends_share)
                                    : 0;
  const std::size_t taken = spare + own + followed + downloads + frontends;
  const std::size_t rest = limit - std::min(limit, taken);
  const std::size_t idle =
      std::clamp<std::size_t>(rest / 8 / io_threads, 1, std::max(kIdlePerThread, engines));
  const std::size_t kinds = contract::is_router(settings.roles) ? 1 : 2;  // engines, and routers
  const std::size_t shared = rest - std::min(rest, idle * io_threads * kinds);
  // A client has a connection of its own, and one to an engine while its request runs.
  const std::size_t requests =
      std::min<std::size_t>(settings.server.concurrent_requests_max, shared / 2);
  const std::size_t clients = std::max(shared - requests, kClientsMin);
  return {.clients_max = std::min<std::size_t>(clients, settings.server.connections_max),
          .frontends_max = frontends,
          .admin_max = std::clamp<std::size_t>(spare / 2, 1, kAdminConnections),
          .idle_per_thread_max = idle,
          .descriptor_max = static_cast<int>(limit - spare)};
}

void tell_plan(std::size_t limit, const OpenFilesPlan& plan,
               const contract::ServeSettings& settings) {
  const bool has_clients = contract::is_frontend(settings.roles);
  const std::size_t wanted = has_clients ? settings.server.connections_max : kFrontendConnections;
  const std::size_t given = has_clients ? plan.clients_max : plan.frontends_max;
  if (given >= wanted) return;
  log(LogLevel::Warn,
      "the limit of open files reduces the number of connections: raise it with ulimit -n, "
      "LimitNOFILE= of the unit, or the container's ulimits",
      {{"limit", limit},
       {"of", has_clients ? "clients" : "frontends"},
       {"connections_max", given},
       {"wanted", wanted}});
}

}  // namespace sightline::process
