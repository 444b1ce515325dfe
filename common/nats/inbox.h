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

struct Message {
  std::string subject;
  std::string reply;  // subject that an answer goes to; empty: none is wanted
  std::string payload;
};

// The server has confirmed that from now on what is published is heard.
struct Connected {
  // Empty: all subjects of the inbox, after a connection was made. Otherwise this one alone, which
  // was subscribed to while connected.
  std::string subject;
};

// Nothing is heard until Connected with an empty subject.
struct Disconnected {
  std::string reason;  // one sentence
};

// Messages are missing.
struct Lost {
  std::uint64_t messages = 0;  // 0: unknown how many
  std::string reason;          // one sentence
};

using Event = std::variant<Message, Connected, Disconnected, Lost>;

// Queue between the threads of NATS and one reader, bounded by number and bytes. A message that
// finds no room is dropped, and a Lost stands in the queue where it is missing.
// Thread safety: put and wake from any thread, take and take_now from the reader's alone.
class Inbox {
 public:
  struct Limits {
    std::size_t messages_max = 65'536;
    std::size_t bytes_max = 64U << 20U;  // subjects, payloads and what each message takes besides
  };

  // What the inboxes of one reader share, and how it hears of them.
  struct Among {
    // Of the bytes of all of them, beside each one's own limit; null: none.
    std::shared_ptr<ByteBudget> budget;
    // Told after each put, on the thread that put, which must not wait; null: nobody.
    std::function<void()> told;
  };

  explicit Inbox(Limits limits) : limits_(limits) {}
  Inbox(Limits limits, Among among) : limits_(limits), among_(std::move(among)) {}
  ~Inbox();
  Inbox(const Inbox&) = delete;
  Inbox& operator=(const Inbox&) = delete;

  // False when the event was a message and was dropped. Other events always find room: where a
  // reader leaves kNoticesMax of them unread, one Lost and the newest state take the place of all
  // that is queued.
  bool put(Event event) SL_EXCLUDES(mutex_);

  // The next event. Waits for one until then; nothing when the time is over or somebody woke.
  std::optional<Event> take(Instant until) SL_EXCLUDES(mutex_);
  // The next event, if one is there.
  std::optional<Event> take_now() SL_EXCLUDES(mutex_);
  // A take() that waits, or the next that would, returns at once.
  void wake() SL_EXCLUDES(mutex_);

  // Messages dropped so far, those of a Lost that was put included.
  [[nodiscard]] std::uint64_t lost_total() const SL_EXCLUDES(mutex_);

  static constexpr std::size_t kNoticesMax = 1024;     // events that are no messages
  static constexpr std::size_t kMessageOverhead = 96;  // bytes of a queued message besides its text

 private:
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
  Event state_ SL_GUARDED_BY(mutex_) = Disconnected{"not yet connected"};  // newest that was put
  bool woken_ SL_GUARDED_BY(mutex_) = false;
};

}  // namespace sightline::nats
