// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/nats/inbox.h"

#include <algorithm>
#include <utility>

namespace sightline::nats {
namespace {

constexpr Duration kWaitMax = std::chrono::hours(1);  // of one wait. Longer ones are several waits

std::size_t bytes_of_message(const Message& message) {
  return message.subject.size() + message.reply.size() + message.payload.size() +
         Inbox::kMessageOverhead;
}

bool is_state(const Event& event) {
  if (std::holds_alternative<Disconnected>(event)) return true;
  const auto* connected = std::get_if<Connected>(&event);
  return connected != nullptr && connected->subject.empty();
}

}  // namespace

Inbox::~Inbox() {
  const MutexLock lock(mutex_);
  give_room(bytes_);
}

bool Inbox::put(Event event) {
  bool is_kept = true;
  {
    const MutexLock lock(mutex_);
    if (auto* message = std::get_if<Message>(&event)) {
      is_kept = put_message(std::move(*message));
    } else if (auto* lost = std::get_if<Lost>(&event)) {
      lost_total_ += lost->messages;
      put_lost(std::move(*lost));
    } else {
      if (is_state(event)) state_ = event;
      put_notice(std::move(event));
    }
  }
  changed_.notify_one();
  // Outside of the lock, because it may call back into the inbox.
  if (among_.told) among_.told();
  return is_kept;
}

bool Inbox::take_room(std::size_t bytes) {
  if (bytes > limits_.bytes_max - bytes_) return false;
  if (among_.budget) return among_.budget->add(bytes_, bytes);
  bytes_ += bytes;
  return true;
}

void Inbox::give_room(std::size_t bytes) {
  if (among_.budget) return among_.budget->remove(bytes_, bytes);
  bytes_ -= bytes;
}

bool Inbox::put_message(Message message) {
  const std::size_t bytes = bytes_of_message(message);
  if (messages_ >= limits_.messages_max || !take_room(bytes)) {
    ++lost_total_;
    put_lost({1, "the reader is too slow: its inbox is full"});
    return false;
  }
  ++messages_;
  events_.emplace_back(std::move(message));
  return true;
}

void Inbox::put_lost(Lost lost) {
  // Losses with the same reason become one notice, so they cannot fill the queue.
  auto* last = events_.empty() ? nullptr : std::get_if<Lost>(&events_.back());
  const bool is_one = last != nullptr && last->reason == lost.reason &&
                      (last->messages == 0) == (lost.messages == 0);
  if (is_one) {
    last->messages += lost.messages;
  } else {
    put_notice(std::move(lost));
  }
}

void Inbox::put_notice(Event notice) {
  const bool is_newest_state = is_state(notice);
  if (events_.size() - messages_ >= kNoticesMax) {
    start_over();
    // start_over() has put the newest state already.
    if (is_newest_state) return;
  }
  events_.push_back(std::move(notice));
}

void Inbox::start_over() {
  const std::uint64_t dropped = messages_;
  lost_total_ += dropped;
  events_.clear();
  messages_ = 0;
  give_room(bytes_);
  events_.emplace_back(Lost{0, "the reader left too many notices unread"});
  events_.push_back(state_);
}

std::optional<Event> Inbox::take(Instant until) {
  const MutexLock lock(mutex_);
  const auto has_news = [this]() SL_REQUIRES(mutex_) { return woken_ || !events_.empty(); };
  while (!has_news()) {
    const Duration left = until - system_clock().now();
    if (left <= Duration::zero()) return std::nullopt;
    changed_.wait_for(mutex_, std::min(left, kWaitMax), has_news);
  }
  std::optional<Event> event = pop();
  // An event answers the caller. wake() then still ends the next wait.
  if (!event) woken_ = false;
  return event;
}

std::optional<Event> Inbox::take_now() {
  const MutexLock lock(mutex_);
  return pop();
}

std::optional<Event> Inbox::pop() {
  if (events_.empty()) return std::nullopt;
  Event event = std::move(events_.front());
  events_.pop_front();
  if (const auto* message = std::get_if<Message>(&event)) {
    --messages_;
    give_room(bytes_of_message(*message));
  }
  return event;
}

void Inbox::wake() {
  {
    const MutexLock lock(mutex_);
    woken_ = true;
  }
  changed_.notify_one();
}

std::uint64_t Inbox::lost_total() const {
  const MutexLock lock(mutex_);
  return lost_total_;
}

}  // namespace sightline::nats
