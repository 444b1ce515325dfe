// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/clock.h"
#include "common/base/result.h"
#include "common/contract/process_settings.h"
#include "common/nats/inbox.h"
#include "common/runtime/metrics.h"

namespace sightline::nats {

// How soon what is published leaves the process.
enum class Sending : std::uint8_t {
  AtOnce,     // each message by itself: questions, load
  InBatches,  // what comes within a millisecond together: many events
};

// "control", "events": metric label and log field.
constexpr std::string_view name_of(Sending sending) {
  return sending == Sending::AtOnce ? "control" : "events";
}

struct ConnectionOptions {
  contract::NatsSettings settings;
  std::string name;  // shown by the server
  Sending sending = Sending::AtOnce;
};

// A connection to NATS that is made again for ever, by a thread of its own, which also sends: no
// caller ever waits for the network. Nothing is kept for later while not connected.
//
// A process may have several of different Sending. Thread safety: all methods from any thread.
class Connection {
 public:
  // Returns before it is connected. `metrics` and `clock` outlive it. Errors: InvalidArgument for
  // settings that can never work. Files are read at each attempt to connect, so that they may be
  // replaced; one that cannot be read is trouble(), not an error.
  static Result<std::unique_ptr<Connection>> create(ConnectionOptions options,
                                                    runtime::Metrics& metrics, const Clock& clock);
  // What was published before is sent, as far as the server reads. No inbox gets an event
  // afterwards.
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // What is published on the subject, wildcards allowed, goes to the inbox, which gets Connected
  // once the server has confirmed it, and again after each new connection, Disconnected when one is
  // lost, and Lost where messages are missing or the server refuses the subject. A second
  // subscription of the same inbox to the same subject changes nothing. A Lost that NATS itself
  // causes stands where messages are missing or before.
  void subscribe(const std::string& subject, std::shared_ptr<Inbox> inbox);
  // Messages on their way may still come.
  void unsubscribe(const std::string& subject, const std::shared_ptr<Inbox>& inbox);

  // Hands the message over to be sent; messages leave in this order. False: not sent, counted by
  // reason: not connected, larger than payload_max(), kWaitingBytesMax wait already, or the subject
  // cannot be one. True promises nothing: a connection that is lost takes with it what was under
  // way.
  bool publish(std::string_view subject, std::string_view payload);

  // Bytes that the server takes in one message; 1 MiB until known.
  [[nodiscard]] std::size_t payload_max() const;
  [[nodiscard]] bool connected() const;
  // Since when there is no connection, from the start on; nothing while there is one.
  [[nodiscard]] std::optional<Instant> away_since() const;
  // Why there is no connection, one sentence without secrets; empty while there is one.
  [[nodiscard]] std::string trouble() const;

  // Published, besides what is being sent: payloads and subjects. 64 MiB are seconds of events.
  static constexpr std::size_t kWaitingBytesMax = 64U << 20U;
  static constexpr std::size_t kWaitingMessagesMax = 262'144;

  struct State;
  explicit Connection(std::unique_ptr<State> state);  // by create()

 private:
  std::unique_ptr<State> state_;
};

}  // namespace sightline::nats
