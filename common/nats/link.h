// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "common/base/clock.h"
#include "common/base/result.h"
#include "common/contract/process_settings.h"

namespace sightline::nats {

// The callbacks of a link. They run on threads of NATS and must not wait. Never two at the same
// time, and not after the link is destroyed.
struct LinkCallbacks {
  // Called once, when the link has ended for good.
  std::function<void(std::string reason)> closed;
  // The server refuses a subscription. An empty subject: unknown which.
  std::function<void(std::string subject, std::string reason)> refused;
  // The server refused a published message.
  std::function<void(std::string reason)> publish_refused;
};

// The callbacks of a subscription. The same rules hold.
struct Listener {
  std::function<void(std::string subject, std::string reply, std::string payload)> message;
  // NATS dropped this many messages, here or at a later place.
  std::function<void(std::uint64_t messages)> lost;
};

// What a link is made with.
struct LinkOptions {
  contract::NatsServer server;
  contract::NatsSettings settings;
  std::string name;
  // Whether each message leaves alone.
  bool sends_at_once = false;
};

// One connection to one server. It ends when it is lost.
// Thread safety: one thread at a time.
class Link {
 public:
  // Waits for the server, at most kConnectTimeout. Errors: Unauthorized, Unavailable,
  // InvalidArgument for files that cannot be used.
  static Result<std::unique_ptr<Link>> connect(const LinkOptions& options, LinkCallbacks callbacks);
  ~Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  // Valid from the next flush() on. A subject has one subscription.
  Result<Done> subscribe(const std::string& subject, Listener listener);
  // Messages under way may still come. Sometimes waits for the server, as flush() does.
  void unsubscribe(const std::string& subject);
  // May wait kWriteDeadline for a server that does not read. After an error the link is of no more
  // use.
  Result<Done> publish(const std::string& subject, std::string_view payload);
  // Waits until the server has processed all earlier calls.
  Result<Done> flush(Duration time_max);
  // The most bytes that the server accepts in one message.
  [[nodiscard]] std::size_t payload_max() const;

  static constexpr Duration kConnectTimeout = std::chrono::seconds(2);
  static constexpr Duration kWriteDeadline = std::chrono::seconds(2);
  static constexpr Duration kPingInterval = std::chrono::seconds(10);
  // After the third interval without an answer the link is lost.
  static constexpr int kPingsUnanswered = 2;

  struct State;
  // For connect() only.
  explicit Link(std::unique_ptr<State> state);

 private:
  std::unique_ptr<State> state_;
};

}  // namespace sightline::nats
