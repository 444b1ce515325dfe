// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/kube/reflector/reflector.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "operator/kube/object/metadata.h"

namespace sightline::reflector {

using client::Failure;
using client::Reason;

namespace {

// The server does not have this version: it is too old, or not there yet after a restart.
bool is_version_gone(const Failure& failure) {
  return failure.reason == Reason::Expired || has_cause(failure, client::kVersionTooLarge);
}

}  // namespace

std::string Reflector::list_version() const {
  if (is_version_unavailable_ || is_too_long_) return {};
  // "0" is the cheapest for the server, and old data is better than no data at start.
  return version_.empty() ? "0" : version_;
}

Want Reflector::next(Instant now) {
  if (now < not_before_) return WantWait{not_before_};
  if (!is_listing_) {
    // Watches of different resources then do not all end at the same moment.
    return WantWatch{version_, pace::jittered(options_.watch_min, 1, rng_)};
  }
  if (!continue_from_.empty()) {
    return WantList{{}, options_.page_objects_max, continue_from_};
  }
  // A list at a version comes from the server's cache, in one piece. Pages would bypass the cache.
  std::string version = list_version();
  const bool is_whole = is_paging_off_ || (!version.empty() && version != "0");
  return WantList{std::move(version), is_whole ? 0 : options_.page_objects_max, {}};
}

std::optional<StoreChange> Reflector::on_list(client::List page) {
  pages_.insert(pages_.end(), std::make_move_iterator(page.items.begin()),
                std::make_move_iterator(page.items.end()));
  continue_from_ = std::move(page.continue_from);
  if (!continue_from_.empty()) return std::nullopt;
  version_ = std::move(page.resource_version);
  is_version_unavailable_ = false;
  is_paging_off_ = false;
  is_listing_ = false;
  return StoreChange{StoreChange::ChangeKind::Replace, std::exchange(pages_, {})};
}

void Reflector::on_list_failed(Instant now, const Failure& failure) {
  const bool was_paging = !continue_from_.empty();
  // The pages of different versions do not fit together.
  pages_.clear();
  continue_from_.clear();
  if (was_paging && failure.reason == Reason::Expired) {
    is_paging_off_ = true;  // once more, without pages
    return;
  }
  is_paging_off_ = false;
  // The server's cached list comes in one piece. If that exceeds our limit, request pages.
  if (failure.reason == Reason::LimitExceeded && !is_too_long_) {
    is_too_long_ = true;
    return;
  }
  if (is_version_gone(failure) && !is_version_unavailable_) {
    is_version_unavailable_ = true;
    return;
  }
  if (failure.reason == Reason::NotFound) {
    // A missing kind is normal before its CRD is installed, so no growing wait.
    not_before_ = now + pace::jittered(options_.absent_wait, 1, rng_);
    return;
  }
  wait(now);
}

void Reflector::list_again(Instant now) {
  is_listing_ = true;
  internal_errors_since_.reset();
  wait(now);
}

void Reflector::on_watch_opened(Instant now) {
  opened_at_ = now;
  heard_at_ = now;
  events_ = 0;
  is_unordered_ = version_.empty() || version_ == "0";
}

void Reflector::on_watch_failed(Instant now, const Failure& failure) {
  // The watch continues at its version afterwards.
  if (failure.reason == Reason::ConnectionRefused || failure.reason == Reason::TooManyRequests) {
    return wait(now);  // the server is away or busy. A list would add load
  }
  list_again(now);
}

void Reflector::on_error_event(Instant now, const Failure& failure) {
  // The server is busy: keep the version and wait.
  if (failure.reason == Reason::TooManyRequests) return wait(now);
  if (failure.reason == Reason::InternalError) {
    if (!internal_errors_since_) internal_errors_since_ = now;
    if (now - *internal_errors_since_ < options_.internal_errors_max) return wait(now);
  }
  list_again(now);
}

Reflector::EventEffect Reflector::on_event(Instant now, std::string_view type,
                                           object::Value object) {
  heard_at_ = now;
  if (type == "ERROR") {
    on_error_event(now, client::failure_of(object, 0));
    return {.change = {}, .is_watch_over = true, .is_unknown = false};
  }
  ++events_;
  const bool is_upsert = type == "ADDED" || type == "MODIFIED";
  const bool is_known = is_upsert || type == "DELETED" || type == "BOOKMARK";
  if (!is_known) return {.change = {}, .is_watch_over = false, .is_unknown = true};
  internal_errors_since_.reset();
  // The first events of a watch without a version describe existing objects, in any order. Their
  // versions must not become the start of the next watch.
  is_unordered_ = is_unordered_ && type == "ADDED";
  const std::string_view version = object::resource_version_of(object);
  if (!version.empty() && !is_unordered_) version_ = version;
  if (type == "BOOKMARK") return {};
  EventEffect seen;
  seen.change.emplace();
  seen.change->what = is_upsert ? StoreChange::ChangeKind::Upsert : StoreChange::ChangeKind::Erase;
  seen.change->objects.push_back(std::move(object));
  return seen;
}

void Reflector::on_watch_ended(Instant now, const std::optional<Failure>& failure) {
  // The same event would fail again, so only a new list gets past it.
  const bool is_unreadable =
      failure && (failure->reason == Reason::Malformed || failure->reason == Reason::LimitExceeded);
  // A server that ends watches immediately may have dropped the version.
  const bool is_short = events_ == 0 && now - opened_at_ < options_.watch_short;
  if (is_unreadable || is_short) list_again(now);
}

Duration Reflector::silence_left(Instant now) const {
  return std::max(Duration::zero(), heard_at_ + options_.silence_max - now);
}

}  // namespace sightline::reflector
