// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/http/client.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include <asio/ip/basic_resolver.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/post.hpp>

#include "common/base/check.h"

#include "router/http/wire.h"

namespace sightline::http {
namespace {

using asio::ip::tcp;
using Resolver = asio::ip::basic_resolver<tcp, Executor>;
using Addresses = std::vector<tcp::endpoint>;

constexpr std::size_t kResolvedNamesMax = 1024;
constexpr std::size_t kAddressesMax = 16;
constexpr std::size_t kUpstreamBufferBytes = 16384;

struct Resolved {
  Addresses addresses;
  Instant at;
};

Error not_connected() {
  return worker_error(ErrorCode::Unavailable, "the upstream server could not be reached", true);
}

}  // namespace

struct Dial::Lookup {
  Gate done;
  Addresses addresses;
};

void Dial::stop() {
  if (std::exchange(stopped_, true)) return;
  if (wire_) wire_->close();
  // Last: it may resume the coroutine that owns this object.
  const auto lookup = lookup_;
  if (lookup) lookup->done.open();
}

// The connections of one I/O thread.
struct Connections::Shard {
  using Bucket = std::vector<std::shared_ptr<Wire>>;

  Shard(IoPool& pool, std::size_t thread)
      : context(pool.context(thread)),
        deadlines(pool.deadlines(thread)),
        resolver(context.get_executor()) {}

  void drop(const Endpoint& endpoint, const Wire* wire) {
    const auto bucket = idle.find(endpoint);
    if (bucket == idle.end()) return;
    const auto is_it = [wire](const std::shared_ptr<Wire>& kept) { return kept.get() == wire; };
    const auto found = std::find_if(bucket->second.begin(), bucket->second.end(), is_it);
    if (found == bucket->second.end()) return;
    const auto dropped = std::move(*found);
    bucket->second.erase(found);
    dropped->watch({});
    dropped->close();
  }

  void drop_all(const Endpoint& endpoint) {
    const auto bucket = idle.find(endpoint);
    if (bucket == idle.end()) return;
    for (const auto& wire : bucket->second) {
      wire->watch({});
      wire->close();
    }
    idle.erase(bucket);
  }

  std::shared_ptr<Wire> fresh(const ClientOptions& options) {
    const Wire::Buffer buffer{
        .bytes = kUpstreamBufferBytes,
        .bytes_max = std::max(kUpstreamBufferBytes, options.response_header_bytes_max)};
    return std::make_shared<Wire>(context, deadlines, buffer);
  }

  asio::io_context& context;
  Deadlines& deadlines;
  Resolver resolver;
  std::map<Endpoint, Bucket> idle;
  std::map<Endpoint, Resolved> resolved;
};

struct Connections::State {
  IoPool& pool;
  ClientOptions options;
  std::vector<std::unique_ptr<Shard>> shards;
};

Connections::Connections(IoPool& pool, const ClientOptions& options)
    : state_(std::make_unique<State>(State{pool, options, {}})) {
  for (std::size_t i = 0; i < pool.size(); ++i) {
    state_->shards.push_back(std::make_unique<Shard>(pool, i));
  }
}

Connections::~Connections() = default;

const ClientOptions& Connections::options() const { return state_->options; }

Connections::Shard& Connections::shard_here() { return *state_->shards[state_->pool.index_here()]; }

std::shared_ptr<Wire> Connections::take_idle(const Endpoint& endpoint) {
  auto& shard = shard_here();
  const auto bucket = shard.idle.find(endpoint);
  if (bucket == shard.idle.end()) return nullptr;
  while (!bucket->second.empty()) {
    auto wire = std::move(bucket->second.back());
    bucket->second.pop_back();
    wire->watch({});
    if (wire->is_quiet()) {
      wire->clear_deadline();
      return wire;
    }
    wire->close();
  }
  return nullptr;
}

void Connections::keep(const Endpoint& endpoint, std::shared_ptr<Wire> wire) {
  if (!state_->pool.running()) {
    wire->close();
    return;
  }
  auto& shard = shard_here();
  auto& bucket = shard.idle[endpoint];
  if (bucket.size() >= state_->options.idle_per_endpoint_max || wire->ended() ||
      !wire->received().empty()) {
    wire->close();
    return;
  }
  // Whatever happens on an idle connection, be it bytes nobody asked for, ends its use.
  wire->watch([&shard, endpoint, kept = wire.get()] { shard.drop(endpoint, kept); });
  wire->set_deadline(state_->options.idle_age_max);
  wire->listen();
  bucket.push_back(std::move(wire));
}

Task<Result<std::shared_ptr<Wire>>> Connections::connect(const Endpoint& endpoint, Duration timeout,
                                                         Dial& dial) {
  auto& shard = shard_here();
  bool timed_out = false;
  auto give_up = [&] {
    timed_out = true;
    dial.stop();
  };
  Deadline deadline(shard.deadlines, give_up);
  deadline.set(timeout);
  const auto addresses = co_await resolve(endpoint, dial);
  std::shared_ptr<Wire> connected;
  dial.refused_ = !addresses.empty();
  for (const auto& address : addresses) {
    if (dial.stopped_) break;
    dial.wire_ = shard.fresh(state_->options);
    const auto io = co_await dial.wire_->connect(address);
    const auto wire = std::exchange(dial.wire_, nullptr);
    dial.refused_ = dial.refused_ && io == Io::Refused;
    if (io == Io::Done && !dial.stopped_) {
      connected = wire;
      break;
    }
    wire->close();
  }
  if (connected) co_return connected;
  if (timed_out) {
    co_return worker_error(ErrorCode::Timeout, "connecting to the upstream server took too long",
                           true);
  }
  if (dial.stopped_) {
    co_return worker_error(ErrorCode::Cancelled, "connecting was given up", false);
  }
  co_return not_connected();
}

Task<std::vector<tcp::endpoint>> Connections::resolve(const Endpoint& endpoint, Dial& dial) {
  asio::error_code code;
  const auto literal = asio::ip::make_address(endpoint.host, code);
  if (!code) co_return Addresses{tcp::endpoint(literal, endpoint.port)};
  auto& shard = shard_here();
  const auto now = system_clock().now();
  const auto known = shard.resolved.find(endpoint);
  if (known != shard.resolved.end() && now - known->second.at < state_->options.resolved_age_max) {
    co_return known->second.addresses;
  }
  const auto lookup = std::make_shared<Dial::Lookup>();
  dial.lookup_ = lookup;
  auto take = [lookup](const asio::error_code& error, const tcp::resolver::results_type& found) {
    for (const auto& entry : found) {
      if (error || lookup->addresses.size() == kAddressesMax) break;
      lookup->addresses.push_back(entry.endpoint());
    }
    lookup->done.open();
  };
  shard.resolver.async_resolve(endpoint.host, std::to_string(endpoint.port),
                               Resolver::numeric_service, std::move(take));
  co_await lookup->done.wait();
  dial.lookup_ = nullptr;
  if (!lookup->addresses.empty() && !dial.stopped_) {
    if (shard.resolved.size() >= kResolvedNamesMax) shard.resolved.clear();
    shard.resolved[endpoint] = {lookup->addresses, now};
  }
  co_return lookup->addresses;
}

void Connections::forget(const Endpoint& endpoint) {
  for (std::size_t i = 0; i < state_->shards.size(); ++i) {
    asio::post(state_->pool.context(i), [self = shared_from_this(), i, endpoint] {
      self->state_->shards[i]->drop_all(endpoint);
    });
  }
}

void Connections::forget_here(const Endpoint& endpoint) { shard_here().drop_all(endpoint); }

Client::Client(IoPool& pool, const ClientOptions& options)
    : connections_(std::make_shared<Connections>(pool, options)) {}

void Client::forget(const Endpoint& endpoint) { connections_->forget(endpoint); }

}  // namespace sightline::http
