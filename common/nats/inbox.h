// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "common/base/byte_budget.h"
#include "common/base/clock.h"
#include "common/base/mutex.h"

namespace sightline::nats {

// A received message.
struct Message {
  std::string subject;
  // The subject for an answer. Empty: the sender expects no answer.
  std::string reply;
  std::string payload;
};

// The server has confirmed a subscription: messages from here on arrive.
struct Connected {
  // Empty: all subjects of the inbox, after a connect. Otherwise only this subject, which was
  // subscribed during the connection.
  std::string subject;
};

// No messages arrive until Connected with an empty subject.
struct Disconnected {
  // One sentence.
  std::string reason;
};

// Messages are missing.
struct Lost {
  // 0: the number is unknown.
  std::uint64_t messages = 0;
  // One sentence.
  std::string reason;
};

using Event = std::variant<Message, Connected, Disconnected, Lost>;

// A queue between the threads of NATS and one reader, limited by number and bytes. A message
// without room is dropped, and a Lost takes its place in the queue.
// Thread safety: put() and wake() from any thread, take() and take_now() only from the reader's.
class Inbox {
 public:
  struct Limits {
    // The most messages in the queue.
    std::size_t messages_max = 65'536;
    // Of subjects and payloads, with kMessageOverhead for each message.
    std::size_t bytes_max = 64U << 20U;
  };

  // What the inboxes of one reader share.
  struct Among {
    // Limits the bytes of all of them together, besides each one's own limit. Null: no limit.
    std::shared_ptr<ByteBudget> budget;
    // Called after each put(), on its thread. It must not wait. Null: no call.
    std::function<void()> told;
  };

  explicit Inbox(Limits limits) : limits_(limits) {}
  Inbox(Limits limits, Among among) : limits_(limits), among_(std::move(among)) {}
  ~Inbox();
  Inbox(const Inbox&) = delete;
  Inbox& operator=(const Inbox&) = delete;

  // Returns false if the event was a message and was dropped. Other events always have room. If the
  // reader leaves kNoticesMax of them unread, one Lost and the newest state replace the whole
  // queue.
  bool put(Event event) SL_EXCLUDES(mutex_);

  // The next event. Waits for it until `until`. Returns nothing at that time, or after wake().
  std::optional<Event> take(Instant until) SL_EXCLUDES(mutex_);
  // The next event, if there is one.
  std::optional<Event> take_now() SL_EXCLUDES(mutex_);
  // Makes a take() return immediately: one that waits, or the next that would wait.
  void wake() SL_EXCLUDES(mutex_);

  // The messages dropped so far, including those of each Lost that was put.
  [[nodiscard]] std::uint64_t lost_total() const SL_EXCLUDES(mutex_);

  // Events that are no messages.
  static constexpr std::size_t kNoticesMax = 1024;
  // Bytes of a queued message besides its text.
  static constexpr std::size_t kMessageOverhead = 96;

 private:
  // All of these need mutex_.
  bool put_message(Message message) SL_REQUIRES(mutex_);
  bool take_room(std::size_t bytes) SL_REQUIRES(mutex_);
  void give_room(std::size_t bytes) SL_REQUIRES(mutex_);
  void put_lost(Lost lost) SL_REQUIRES(mutex_);
  void put_notice(Event notice) SL_REQUIRES(mutex_);
  void start_over() SL_REQUIRES(mutex_);
  std::optional<Event> pop() SL_REQUIRES(mutex_);

  const Limits limits_;
  const Among among_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::deque<Event> events_ SL_GUARDED_BY(mutex_);
  std::size_t messages_ SL_GUARDED_BY(mutex_) = 0;
  std::size_t bytes_ SL_GUARDED_BY(mutex_) = 0;
  std::uint64_t lost_total_ SL_GUARDED_BY(mutex_) = 0;
  // The newest state that was put.
  Event state_ SL_GUARDED_BY(mutex_) = Disconnected{"not yet connected"};
  bool woken_ SL_GUARDED_BY(mutex_) = false;
};

}  // namespace sightline::nats
