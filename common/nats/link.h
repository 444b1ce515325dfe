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

// What a link tells, on threads of NATS, which may not wait for anything: none is called while
// another is, nor once the link is destroyed.
struct LinkCallbacks {
  std::function<void(std::string reason)> closed;  // once; it will not come back
  // A subject that may not be heard; empty: unknown which.
  std::function<void(std::string subject, std::string reason)> refused;
  // Something that was published was refused.
  std::function<void(std::string reason)> publish_refused;
};

// What a subscription hears; likewise.
struct Listener {
  std::function<void(std::string subject, std::string reply, std::string payload)> message;
  std::function<void(std::uint64_t messages)> lost;  // NATS dropped so many, here or further on
};

struct LinkOptions {
  contract::NatsServer server;
  contract::NatsSettings settings;
  std::string name;
  bool sends_at_once = false;
};

// One connection to one server, which ends when it is lost. Thread safety: none.
class Link {
 public:
  // Waits for the server, for kConnectTimeout at most. Errors: Unauthorized, Unavailable,
  // InvalidArgument for files that cannot be used.
  static Result<std::unique_ptr<Link>> connect(const LinkOptions& options, LinkCallbacks callbacks);
  ~Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  // Counts from the next flush. One subscription per subject.
  Result<Done> subscribe(const std::string& subject, Listener listener);
  // Messages on their way may still come. Sometimes waits for the server, as flush() does.
  void unsubscribe(const std::string& subject);
  // May wait for a server that does not read, for kWriteDeadline. After an error the link is of no
  // more use.
  Result<Done> publish(const std::string& subject, std::string_view payload);
  // Waits until the server has done all that was asked of it before.
  Result<Done> flush(Duration time_max);
  [[nodiscard]] std::size_t payload_max() const;

  static constexpr Duration kConnectTimeout = std::chrono::seconds(2);
  static constexpr Duration kWriteDeadline = std::chrono::seconds(2);
  static constexpr Duration kPingInterval = std::chrono::seconds(10);
  static constexpr int kPingsUnanswered = 2;  // at the third interval the link is lost

  struct State;
  explicit Link(std::unique_ptr<State> state);  // by connect()

 private:
  std::unique_ptr<State> state_;
};

}  // namespace sightline::nats
