// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/http/client.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include <asio/ip/tcp.hpp>
#include <asio/post.hpp>

#include "common/base/check.h"
#include "common/http/wire.h"

namespace sightline::http {
namespace {

using asio::ip::tcp;
using Addresses = std::vector<asio::ip::address>;

// The first size of a response's buffer.
constexpr std::size_t kUpstreamBufferBytes = 16384;

Error not_connected() {
  return worker_error(ErrorCode::Unavailable, "the upstream server could not be reached", true);
}

Error no_means() {
  return overload_error("open-files",
                        "the router has no descriptor or port for one more connection");
}

}  // namespace

struct Dial::Lookup {
  Gate done;
  Addresses addresses;  // the addresses of an earlier look-up, until it is done
};

void Dial::stop() {
  if (std::exchange(stopped_, true)) return;
  if (wire_) wire_->close();
  // Last, because it may resume the coroutine that owns this object.
  const auto lookup = lookup_;
  if (lookup) lookup->done.open();
}

// The connections of one I/O thread. Only this thread uses them, so they need no lock.
struct Connections::Shard {
  using Bucket = std::vector<std::shared_ptr<Wire>>;

  Shard(IoPool& pool, std::size_t thread)
      : context(pool.context(thread)), deadlines(pool.deadlines(thread)) {}

  void drop(const ServerAddress& endpoint, const Wire* wire) {
    const auto bucket = idle.find(endpoint);
    if (bucket == idle.end()) return;
    const auto is_it = [wire](const std::shared_ptr<Wire>& kept) { return kept.get() == wire; };
    const auto found = std::find_if(bucket->second.begin(), bucket->second.end(), is_it);
    if (found == bucket->second.end()) return;
    const auto dropped = std::move(*found);
    bucket->second.erase(found);
    --idle_count;
    // Without a callback, because close() ends the receiving, which would call it.
    dropped->watch({});
    dropped->close();
  }

  void drop_all(const ServerAddress& endpoint) {
    const auto bucket = idle.find(endpoint);
    if (bucket == idle.end()) return;
    for (const auto& wire : bucket->second) {
      wire->watch({});
      wire->close();
    }
    idle_count -= bucket->second.size();
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
  std::map<ServerAddress, Bucket> idle;
  std::size_t idle_count = 0;  // connections in `idle`
};

struct Connections::State {
  IoPool& pool;
  ClientOptions options;
  hosts::Lookup& names;
  std::vector<std::unique_ptr<Shard>> shards;
};

Connections::Connections(IoPool& pool, const ClientOptions& options, hosts::Lookup& names)
    : state_(std::make_unique<State>(State{pool, options, names, {}})) {
  for (std::size_t i = 0; i < pool.size(); ++i) {
    state_->shards.push_back(std::make_unique<Shard>(pool, i));
  }
}

Connections::~Connections() = default;

const ClientOptions& Connections::options() const { return state_->options; }

Connections::Shard& Connections::shard_here() { return *state_->shards[state_->pool.index_here()]; }

std::shared_ptr<Wire> Connections::take_idle(const ServerAddress& endpoint) {
  auto& shard = shard_here();
  const auto bucket = shard.idle.find(endpoint);
  if (bucket == shard.idle.end()) return nullptr;
  while (!bucket->second.empty()) {
    // The one used last is the least likely to be closed by the server.
    auto wire = std::move(bucket->second.back());
    bucket->second.pop_back();
    --shard.idle_count;
    wire->watch({});
    if (wire->is_quiet()) {
      wire->clear_deadline();
      return wire;
    }
    wire->close();
  }
  return nullptr;
}

void Connections::keep(const ServerAddress& endpoint, std::shared_ptr<Wire> wire) {
  // After stop() no callback would ever remove the connection.
  if (!state_->pool.running()) {
    wire->close();
    return;
  }
  auto& shard = shard_here();
  auto& bucket = shard.idle[endpoint];
  const ClientOptions& options = state_->options;
  // Unread bytes would be taken for the next response.
  if (bucket.size() >= options.idle_per_endpoint_max ||
      shard.idle_count >= options.idle_per_thread_max || wire->ended() ||
      !wire->received().empty()) {
    wire->close();
    return;
  }
  // Any event on an idle connection, even unexpected bytes, ends its use.
  wire->watch([&shard, endpoint, kept = wire.get()] { shard.drop(endpoint, kept); });
  wire->set_deadline(state_->options.idle_age_max);
  wire->listen();
  ++shard.idle_count;
  bucket.push_back(std::move(wire));
}

Task<Result<std::shared_ptr<Wire>>> Connections::connect(const ServerAddress& endpoint,
                                                         Duration timeout, Dial& dial) {
  auto& shard = shard_here();
  bool timed_out = false;
  auto give_up = [&] {
    timed_out = true;
    dial.stop();
  };
  Deadline deadline(shard.deadlines, give_up);
  deadline.set(timeout);
  const auto addresses = co_await resolve(endpoint.host, dial);
  std::shared_ptr<Wire> connected;
  // Both stay true only if every address fails in the same way.
  dial.refused_ = !addresses.empty();
  dial.local_ = !addresses.empty();
  for (const auto& address : addresses) {
    if (dial.stopped_) break;
    dial.wire_ = shard.fresh(state_->options);
    const tcp::endpoint there(address, endpoint.port);
    const auto io = co_await dial.wire_->connect(there, state_->options.descriptor_max);
    const auto wire = std::exchange(dial.wire_, nullptr);
    dial.refused_ = dial.refused_ && io == Io::Refused;
    dial.local_ = dial.local_ && io == Io::Local;
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
    co_return worker_error(ErrorCode::Cancelled, "the connection attempt was cancelled", false);
  }
  if (dial.is_local()) co_return no_means();
  co_return not_connected();
}

Task<Addresses> Connections::resolve(const std::string& host, Dial& dial) {
  asio::error_code code;
  // A numeric address needs no look-up.
  const auto numeric = asio::ip::make_address(host, code);
  if (!code) co_return Addresses{numeric};
  auto& shard = shard_here();
  const auto lookup = std::make_shared<Dial::Lookup>();
  // The look-up may end after this attempt, on another thread. A weak pointer then finds nothing.
  auto later = [weak = std::weak_ptr(lookup),
                &context = shard.context](const hosts::Resolved& found) {
    auto take = [weak, addresses = found.addresses] {
      const auto waiting = weak.lock();
      if (!waiting || waiting->done.is_open()) return;
      waiting->addresses = addresses;
      waiting->done.open();
    };
    asio::post(context, std::move(take));
  };
  auto known = state_->names.find(host, std::move(later));
  // A fresh answer needs no wait.
  if (!known.asked_at) co_return std::move(known.found.addresses);
  lookup->addresses = std::move(known.found.addresses);
  auto stop_waiting = [&lookup] { lookup->done.open(); };
  Deadline patience(shard.deadlines, stop_waiting);
  // With old addresses the wait is short, because they are probably still right. Without any, only
  // the connect timeout ends it.
  if (!lookup->addresses.empty()) {
    const auto waited = system_clock().now() - *known.asked_at;
    patience.set(std::max(state_->options.lookup_patience - waited, Duration::zero()));
  }
  dial.lookup_ = lookup;
  co_await lookup->done.wait();
  dial.lookup_ = nullptr;
  co_return std::move(lookup->addresses);
}

void Connections::forget(const ServerAddress& endpoint) {
  // By post, because each thread owns its connections.
  for (std::size_t i = 0; i < state_->shards.size(); ++i) {
    asio::post(state_->pool.context(i), [self = shared_from_this(), i, endpoint] {
      self->state_->shards[i]->drop_all(endpoint);
    });
  }
}

void Connections::forget_here(const ServerAddress& endpoint) { shard_here().drop_all(endpoint); }

Client::Client(IoPool& pool, const ClientOptions& options, hosts::Lookup& names)
    : connections_(std::make_shared<Connections>(pool, options, names)) {}

Client::Client(IoPool& pool, const ClientOptions& options)
    : names_(std::make_unique<hosts::Lookup>(system_clock())),
      connections_(std::make_shared<Connections>(pool, options, *names_)) {}

Client::~Client() = default;

void Client::forget(const ServerAddress& endpoint) { connections_->forget(endpoint); }

}  // namespace sightline::http
