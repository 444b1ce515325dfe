// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/front/retry/lost_bodies.h"

#include <algorithm>
#include <utility>

#include "common/base/bytes.h"

namespace sightline::retry {

media::MediaId LostBodies::id_of(std::string_view body) const {
  return media::media_id_of(key_, bytes_of(body));
}

bool LostBodies::knows_like(const SentText& text, Instant now) {
  const auto is_over = [now](const Entry& entry) { return now - entry.last >= kRememberedTime; };
  std::erase_if(entries_, is_over);
  remembered_ = entries_.size();
  return std::any_of(entries_.begin(), entries_.end(), [&text](const Entry& entry) {
    return entry.bytes == text.body.size() && entry.target == text.target &&
           entry.method == text.method;
  });
}

std::vector<LostBodies::Entry>::iterator LostBodies::find(const SentText& text,
                                                          const media::MediaId& body) {
  return std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return entry.body == body && entry.target == text.target && entry.method == text.method;
  });
}

std::uint32_t LostBodies::losses_of(const SentText& text, Instant now) {
  if (remembered_.load(std::memory_order_relaxed) == 0) return 0;
  {
    const MutexLock lock(mutex_);
    if (!knows_like(text, now)) return 0;
  }
  const media::MediaId body = id_of(text.body);
  const MutexLock lock(mutex_);
  const auto entry = find(text, body);
  return entry == entries_.end() ? 0 : entry->losses;
}

std::uint32_t LostBodies::add(const SentText& text, Instant sent, Instant now) {
  const media::MediaId body = id_of(text.body);
  const MutexLock lock(mutex_);
  static_cast<void>(knows_like(text, now));
  Entry entry{std::string(text.method), std::string(text.target), text.body.size(), body, 0, now};
  const auto known = find(text, body);
  if (known != entries_.end()) {
    entry.losses = known->losses;
    // Sent before the other copy was lost: the same death.
    if (sent <= known->last) return entry.losses;
    entries_.erase(known);
  } else if (entries_.size() >= kRememberedMax) {
    entries_.erase(entries_.begin());
  }
  const std::uint32_t losses = ++entry.losses;
  entries_.push_back(std::move(entry));
  remembered_ = entries_.size();
  return losses;
}

void LostBodies::answered(const SentText& text, Instant now) {
  {
    const MutexLock lock(mutex_);
    if (!knows_like(text, now)) return;
  }
  const media::MediaId body = id_of(text.body);
  const MutexLock lock(mutex_);
  const auto known = find(text, body);
  if (known != entries_.end()) entries_.erase(known);
  remembered_ = entries_.size();
}

}  // namespace sightline::retry
