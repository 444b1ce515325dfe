// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/roles/front_role.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include <sys/stat.h>
#include <unistd.h>

#include "common/base/check.h"
#include "common/base/log.h"
#include "common/contract/metrics_requests.h"
#include "common/contract/names.h"
#include "common/http/client.h"
#include "common/http/server.h"

#include "router/front/admin/explain.h"
#include "router/front/proxy/client_api.h"
#include "router/front/proxy/serve.h"
#include "router/prompt/media/fetcher.h"

namespace sightline::roles {
namespace {

prepare::TokenCacheOptions token_cache_options(const contract::ModelSettings& model,
                                               MemoryLedger& memory) {
  ByteBudget& share = memory.share(MemoryShare::TokenCache);
  prepare::TokenCacheOptions options{
      .bytes_max = std::min<std::uint64_t>(model.token_cache_bytes_max, share.bytes_max()),
      .memory = &share};
  const std::span secret(options.secret);
  // One call returns at most 256 bytes for certain.
  SL_CHECK(::getentropy(secret.data(), secret.size()) == 0);
  return options;
}

media::ProxyRules proxies_of(const contract::MediaSettings& media) {
  if (media.proxy == contract::MediaProxy::Off) return {};
  // The environment is read here, in the wiring, so the media code stays pure.
  return media::proxies_of_environment([](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  });
}

media::FetchLimits fetch_limits(const contract::MediaSettings& media,
                                const process::OpenFilesPlan& plan, MemoryLedger& memory) {
  return {.image_bytes_max = media.image_bytes_max,
          .connect_timeout = media.connect_timeout,
          .total_timeout = media.fetch_timeout,
          .redirects_max = media.redirects_max,
          .downloads_max = media.downloads_max,
          .held_bytes_max = media.held_bytes_max,
          .memory = &memory.share(MemoryShare::Media),
          .descriptor_max = plan.descriptor_max,
          .allow_private_addresses = media.allow_private_addresses,
          .proxies = proxies_of(media),
          .ca_file = media.ca_file};
}

// libcurl reads the file at each connection. A file that cannot be used is reported at the start
// instead.
Result<Done> check_ca_file(const std::string& path) {
  struct stat file {};
  if (path.empty() || (::stat(path.c_str(), &file) == 0 && S_ISREG(file.st_mode) &&
                       ::access(path.c_str(), R_OK) == 0)) {
    return Done{};
  }
  return client_error(ErrorCode::InvalidArgument,
                      "media.ca_file: " + path + " is not a readable file");
}

http::ClientOptions client_options(const process::OpenFilesPlan& plan) {
  return {.idle_per_thread_max = plan.idle_per_thread_max, .descriptor_max = plan.descriptor_max};
}

http::ServerLimits server_limits(const contract::ServerSettings& server,
                                 const process::OpenFilesPlan& plan) {
  http::ServerLimits limits;
  limits.header_bytes_max = server.header_bytes_max;
  limits.body_bytes_max = server.body_bytes_max;
  limits.total_body_bytes_max = server.total_body_bytes_max;
  limits.connections_max = plan.clients_max;
  limits.descriptor_max = plan.descriptor_max;
  limits.header_timeout = server.header_timeout;
  limits.idle_timeout = server.idle_timeout;
  limits.body_timeout = server.idle_timeout;
  limits.write_timeout = server.idle_timeout;
  return limits;
}

}  // namespace

// Declared in the order of construction. The destructor goes backwards.
struct FrontRole::Parts {
  explicit Parts(Deps given)
      : shared(std::move(given)),
        settings(*shared.settings.read()),
        token_cache(*shared.model->tokenizer, token_cache_options(settings.model, shared.memory),
                    shared.metrics),
        to_workers(shared.pool, client_options(shared.open_files), shared.names),
        fetcher(fetch_limits(settings.media, shared.open_files, shared.memory)),
        services{.settings = shared.settings,
                 .identity = shared.identity,
                 .scheme = shared.scheme,
                 .clock = system_clock(),
                 .model = shared.model,
                 .token_cache = token_cache,
                 .pool = shared.pool,
                 .fetcher = fetcher,
                 .served = shared.served,
                 .selector = shared.selector,
                 .metrics = shared.metrics,
                 .memory = shared.memory.share(MemoryShare::Requests),
                 .answers = &shared.memory.share(MemoryShare::Answers)},
        proxy(services),
        api(services, proxy, to_workers),
        explain(services, proxy.pipeline()) {
    // Memory is taken from the cache of tokens first: tokens can be computed again, a refused
    // request must be sent again.
    for (const MemoryShare share : {MemoryShare::Requests, MemoryShare::Media}) {
      shared.memory.share(share).set_reclaim(
          [this](std::size_t bytes) { return token_cache.give_back(bytes); });
    }
  }
  ~Parts() {
    for (const MemoryShare share : {MemoryShare::Requests, MemoryShare::Media}) {
      // The callbacks refer to this object. The ledger outlives it.
      shared.memory.share(share).set_reclaim({});
    }
  }

  const Deps shared;
  const contract::ServeSettings settings;  // as they were at the start
  prepare::TokenCache token_cache;
  http::Client to_workers;
  media::Fetcher fetcher;
  proxy::Deps services;
  proxy::Proxy proxy;
  proxy::ClientApi api;
  admin::Explain explain;
  std::unique_ptr<http::Server> server;
};

FrontRole::FrontRole(Deps shared) : parts_(std::make_unique<Parts>(std::move(shared))) {}
FrontRole::~FrontRole() = default;

Result<Done> FrontRole::listen() {
  Parts* const parts = parts_.get();
  const Deps& shared = parts->shared;
  SL_TRY(check_ca_file(parts->settings.media.ca_file));
  http::ServerOptions options{.host = parts->settings.server.host,
                              .port = parts->settings.server.port,
                              .limits = server_limits(parts->settings.server, shared.open_files),
                              .memory = &shared.memory.share(MemoryShare::Requests),
                              .connection_memory = &shared.memory.share(MemoryShare::Connections)};
  options.refusal = [parts](int status, const Error& error) {
    return parts->api.refusal(status, error);
  };
  options.admission = [parts](const http::Request& head) { return parts->api.admission(head); };
  // Without a descriptor, the client sees a refused connection. The metric shows why.
  options.accept_failed = [parts] {
    parts->shared.metrics.counter(contract::kLimitHitsTotal, {"open-files"}).add();
  };
  auto answer = [parts](http::Request& http, http::ResponseWriter& client) {
    return parts->api.handle(http, client);
  };
  parts->server = SL_TRY(http::Server::create(shared.pool, std::move(options), std::move(answer)));
  return Done{};
}

void FrontRole::set_limits(const contract::MediaSettings& media) {
  const Deps& shared = parts_->shared;
  // The share follows the setting. Otherwise the earlier limit would still apply.
  shared.memory.set_bound(MemoryShare::Media, media.held_bytes_max);
  parts_->fetcher.set_limits(fetch_limits(media, shared.open_files, shared.memory));
}

void FrontRole::add_admin(admin_port::AdminServer& admin) {
  admin.add_late_route("POST", std::string(contract::kExplainPath),
                       [parts = parts_.get()](const admin_port::AdminRequest& request,
                                              const admin_port::AdminServer::Respond& respond) {
                         parts->explain.run(request.body, respond);
                       },
                       // A body to explain is a client's body, so it has the same limit.
                       {.body_bytes_max = parts_->settings.server.body_bytes_max});
}

void FrontRole::drain() {
  if (!parts_->server) return;
  log(LogLevel::Info, "draining", {{"requests", parts_->server->active_requests()}});
  const bool all_ended = parts_->server->drain(parts_->settings.server.drain_timeout);
  log(all_ended ? LogLevel::Info : LogLevel::Warn,
      all_ended ? "drained" : "server.drain_timeout is over: closed the remaining connections");
}

std::uint16_t FrontRole::port() const { return parts_->server->port(); }

}  // namespace sightline::roles
