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

// How soon a published message leaves the process.
enum class Sending : std::uint8_t {
  // Each message alone: questions, load.
  AtOnce,
  // The messages of a millisecond together: many events.
  InBatches,
};

// "control" or "events": metric label and log field.
constexpr std::string_view name_of(Sending sending) {
  return sending == Sending::AtOnce ? "control" : "events";
}

// What a connection is made with.
struct ConnectionOptions {
  contract::NatsSettings settings;
  // The server shows this name.
  std::string name;
  Sending sending = Sending::AtOnce;
};

// A connection to NATS. A thread of its own connects, reconnects without end and sends, so a caller
// never waits for the network. While not connected, it stores no messages for later. A process may
// have several, with different Sending.
// Thread safety: all methods from any thread.
class Connection {
 public:
  // Returns before the connection exists. `metrics` and `clock` outlive it. Errors: InvalidArgument
  // for settings that can never work. Each attempt to connect reads the files, so they may be
  // replaced. An unreadable file is no error, but a trouble().
  static Result<std::unique_ptr<Connection>> create(ConnectionOptions options,
                                                    runtime::Metrics& metrics, const Clock& clock);
  // Sends the messages published before, if the server takes them. After it returns, no inbox gets
  // an event.
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Messages on this subject, which may have wildcards, go to the inbox. The inbox also gets:
  // - Connected, when the server has confirmed the subscription, and after each reconnect
  // - Disconnected, when the connection is lost
  // - Lost, where messages are missing or the server refuses the subject
  //
  // A second subscription of the same inbox to the same subject has no effect. A Lost that NATS
  // causes is in the queue where the messages are missing, or before.
  void subscribe(const std::string& subject, std::shared_ptr<Inbox> inbox);
  // Messages that are already under way may still come.
  void unsubscribe(const std::string& subject, const std::shared_ptr<Inbox>& inbox);

  // Queues the message. Messages leave in this order. Returns false if it will not be sent, and
  // counts the reason: not connected, larger than payload_max(), kWaitingBytesMax or
  // kWaitingMessagesMax reached, or an invalid subject. True is no promise: a lost connection also
  // loses the messages under way.
  bool publish(std::string_view subject, std::string_view payload);

  // The most bytes that the server accepts in one message. 1 MiB until the server has said it.
  [[nodiscard]] std::size_t payload_max() const;
  [[nodiscard]] bool connected() const;
  // Since when there is no connection, from the start on. Nothing while there is one.
  [[nodiscard]] std::optional<Instant> away_since() const;
  // Why there is no connection: one sentence without secrets. Empty while there is one.
  [[nodiscard]] std::string trouble() const;

  // The most bytes of payloads and subjects that wait, besides those being sent. 64 MiB are seconds
  // of events.
  static constexpr std::size_t kWaitingBytesMax = 64U << 20U;
  static constexpr std::size_t kWaitingMessagesMax = 262'144;

  struct State;
  // For create() only.
  explicit Connection(std::unique_ptr<State> state);

 private:
  std::unique_ptr<State> state_;
};

}  // namespace sightline::nats
