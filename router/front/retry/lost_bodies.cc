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

bool LostBodies::Entry::has(DeathId death) const {
  return std::any_of(parts.begin(), parts.end(),
                     [death](const RequestPart& part) { return part.death == death; });
}

void LostBodies::drop_old(Instant now) {
  const auto is_over = [now](Instant last) { return now - last >= kRememberedTime; };
  for (const Entry& entry : entries_) {
    if (is_over(entry.last)) forget(entry);
  }
  std::erase_if(entries_, [&](const Entry& entry) { return is_over(entry.last); });
  std::erase_if(deaths_, [&](const Death& death) { return is_over(death.last); });
  remembered_ = entries_.size();
}

bool LostBodies::knows_like(const SentText& text, Instant now) {
  // Usually nothing is remembered. Then no lock is taken.
  if (remembered_.load(std::memory_order_relaxed) == 0) return false;
  const MutexLock lock(mutex_);
  drop_old(now);
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

LostBodies::Death* LostBodies::find(DeathId death) {
  const auto found = std::find_if(deaths_.begin(), deaths_.end(),
                                  [death](const Death& d) { return d.id == death; });
  return found == deaths_.end() ? nullptr : &*found;
}

LostBodies::DeathId LostBodies::death_of(const Loss& loss) {
  // A worker that dies loses several requests within a moment. An attempt sent before the last of
  // these losses belongs to the same death.
  const auto same = std::find_if(deaths_.begin(), deaths_.end(), [&loss](const Death& death) {
    return death.worker == loss.worker && loss.sent <= death.last;
  });
  if (same != deaths_.end()) {
    same->last = std::max(same->last, loss.now);
    return same->id;
  }
  if (deaths_.size() >= kDeathsMax) deaths_.erase(deaths_.begin());
  deaths_.push_back({.id = next_death_++, .worker = std::string(loss.worker), .last = loss.now});
  return deaths_.back().id;
}

void LostBodies::forget(const Entry& entry) {
  for (const RequestPart& part : entry.parts) {
    if (Death* death = find(part.death)) death->is_unclear = true;
  }
}

// Returns whether another request was lost in at least kCommonDeathsMin of these deaths.
bool LostBodies::has_in_common(const Entry& entry, const std::vector<DeathId>& deaths) {
  return std::any_of(entries_.begin(), entries_.end(), [&](const Entry& other) {
    const auto both = std::count_if(deaths.begin(), deaths.end(),
                                    [&other](DeathId death) { return other.has(death); });
    return &other != &entry && static_cast<std::size_t>(both) >= kCommonDeathsMin;
  });
}

std::uint32_t LostBodies::losses_of(const Entry& entry) {
  std::uint32_t alone = 0;
  std::vector<DeathId> clear;
  for (const RequestPart& part : entry.parts) {
    const Death* death = find(part.death);
    // A death with a forgotten request proves nothing, because that request may be at fault.
    if (!part.counts || death == nullptr || death->is_unclear) continue;
    clear.push_back(part.death);
    const bool is_shared = std::any_of(entries_.begin(), entries_.end(), [&](const Entry& other) {
      return &other != &entry && other.has(part.death);
    });
    alone += is_shared ? 0 : 1;
  }
  // With many deaths in common, the request itself is the best explanation.
  if (clear.size() < kCommonDeathsMin || has_in_common(entry, clear)) return alone;
  return static_cast<std::uint32_t>(clear.size());
}

LostBodies::Record LostBodies::record_of(const SentText& text, const media::MediaId& body,
                                         Instant now) {
  const MutexLock lock(mutex_);
  drop_old(now);
  const auto entry = find(text, body);
  if (entry == entries_.end()) return {};
  return {.is_remembered = true, .losses = losses_of(*entry)};
}

std::uint32_t LostBodies::add(const SentText& text, const media::MediaId& body, const Loss& loss) {
  const MutexLock lock(mutex_);
  drop_old(loss.now);
  const DeathId death = death_of(loss);
  Entry entry{std::string(text.method), std::string(text.target), text.body.size(), body, {}, {}};
  const auto known = find(text, body);
  if (known != entries_.end()) {
    entry = std::move(*known);
    entries_.erase(known);
  } else if (entries_.size() >= kRememberedMax) {
    forget(entries_.front());
    entries_.erase(entries_.begin());
  }
  // It was sent before another copy was lost, and so it is the same loss.
  const bool is_copy = !entry.parts.empty() && loss.sent <= entry.last;
  if (!entry.has(death)) entry.parts.push_back({death, !is_copy});
  if (entry.parts.size() > kDeathsOfBodyMax) entry.parts.erase(entry.parts.begin());
  entry.last = loss.now;
  entries_.push_back(std::move(entry));
  remembered_ = entries_.size();
  return losses_of(entries_.back());
}

void LostBodies::answered(const SentText& text, const media::MediaId& body) {
  const MutexLock lock(mutex_);
  const auto known = find(text, body);
  if (known != entries_.end()) entries_.erase(known);
  remembered_ = entries_.size();
}

}  // namespace sightline::retry
