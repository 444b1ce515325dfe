// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/roles/selection_service.h"

#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include "common/contract/metrics_requests.h"
#include "common/http/server.h"
#include "common/runtime/deadlines.h"
#include "common/runtime/token_file.h"

#include "router/front/selection_api/answers.h"
#include "router/workers/fleet/served.h"

namespace sightline::roles {
namespace {

// Room for kTokensMax token ids, or as many keys.
constexpr std::size_t kBodyBytesMax = 48 << 20;
constexpr std::size_t kTotalBodyBytesMax = 512 << 20;
constexpr std::chrono::seconds kSweepInterval{1};
constexpr std::chrono::seconds kDrainTime{1};

http::ServerLimits limits(const process::OpenFilesPlan& plan) {
  http::ServerLimits limits;
  limits.body_bytes_max = kBodyBytesMax;
  limits.total_body_bytes_max = kTotalBodyBytesMax;
  limits.connections_max = plan.frontends_max;
  limits.descriptor_max = plan.descriptor_max;
  return limits;
}

}  // namespace

// Declared in the order of construction. The destructor goes backwards.
struct SelectionService::Parts {
  Parts(std::unique_ptr<runtime::TokenFile> token_file, const Options& options, const Deps& given)
      : deps(given),
        tokens(std::move(token_file)),
        served(given.fleet),
        api({.pool = given.pool,
             .selector = given.selector,
             .fleet = given.fleet,
             .scheme = given.scheme,
             .metrics = given.metrics,
             .clock = system_clock(),
             .served = [this] { return served.read(); },
             .adopt = [this](const selection::Adoption& work) { return deps.selector.adopt(work); },
             .tokens = tokens.get(),
             .ready = given.ready,
             .stale = given.stale,
             .known = given.known,
             .memory = &options.memory.share(MemoryShare::Requests)},
            {.identity = options.identity,
             .scope_model = options.scope_model,
             .leases = {},
             .on_taken = options.on_taken}) {}

  const Deps deps;
  std::unique_ptr<runtime::TokenFile> tokens;
  // The API refers to the tokens and to `served`, so it is declared after them.
  fleet::ServedView served;
  selection_api::SelectionApi api;
  std::unique_ptr<http::Server> server;
  std::optional<Deadline> sweeps;  // used on the first I/O thread while that runs

  Result<Done> listen(const Options& options);
};

Result<Done> SelectionService::Parts::listen(const Options& options) {
  http::ServerOptions server_options{
      .host = options.settings.host,
      .port = options.settings.port,
      .limits = limits(options.open_files),
      .memory = &options.memory.share(MemoryShare::Requests),
      .connection_memory = &options.memory.share(MemoryShare::Connections)};
  server_options.refusal = [this](int status, const Error& error) {
    // The server refuses some requests itself, so their limits are counted here.
    if (!error.limit.empty()) {
      deps.metrics.counter(contract::kLimitHitsTotal, {error.limit}).add();
    }
    return selection_api::refusal(status, error);
  };
  server_options.accept_failed = [this] {
    deps.metrics.counter(contract::kLimitHitsTotal, {"open-files"}).add();
  };
  auto answer = [this](http::Request& request, http::ResponseWriter& peer) -> Task<void> {
    auto response = co_await api.answer(request);
    const auto sent = co_await peer.send(std::move(response));
    static_cast<void>(sent);  // if the peer left, it asks again or renews its list
  };
  server_options.port_flags = "--selection-host or --selection-port";
  server_options.admission = [this](const http::Request& head) { return api.admission(head); };
  auto made = http::Server::create(deps.pool, std::move(server_options), std::move(answer));
  if (!made.ok()) {
    return with_context(std::move(made).error(), "the selection API");
  }
  server = std::move(*made);
  // The sweeps begin on the I/O thread, because a Deadline belongs to one thread.
  auto begin = [](Parts& parts) -> Task<void> {
    parts.sweeps.emplace(parts.deps.pool.deadlines(0), [&parts] {
      parts.api.sweep();
      parts.sweeps->set(kSweepInterval);
    });
    parts.sweeps->set(kSweepInterval);
    co_return;
  };
  spawn(deps.pool.context(0).get_executor(), begin(*this));
  return Done{};
}

SelectionService::SelectionService(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
SelectionService::~SelectionService() = default;

Result<std::unique_ptr<SelectionService>> SelectionService::create(const Options& options,
                                                                   const Deps& deps) {
  std::unique_ptr<runtime::TokenFile> tokens;
  if (!options.settings.token_file.empty()) {
    auto opened = runtime::TokenFile::open(options.settings.token_file, system_clock());
    if (!opened.ok()) return with_context(std::move(opened).error(), "--selection-token-file");
    tokens = std::move(*opened);
  }
  auto parts = std::make_unique<Parts>(std::move(tokens), options, deps);
  if (options.listens) SL_TRY(parts->listen(options));
  return std::make_unique<SelectionService>(std::move(parts));
}

void SelectionService::stop() {
  if (parts_->server) static_cast<void>(parts_->server->drain(kDrainTime));
}
std::optional<std::uint16_t> SelectionService::port() const {
  if (!parts_->server) return std::nullopt;
  return parts_->server->port();
}
selection_api::SelectionApi& SelectionService::api() { return parts_->api; }

}  // namespace sightline::roles
