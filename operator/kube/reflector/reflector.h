// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/base/clock.h"
#include "common/base/rng.h"

#include "operator/kube/client/api_client.h"
#include "operator/kube/object/value.h"
#include "operator/kube/pace/backoff.h"

namespace sightline::reflector {

// List the resource. The members mean the same as in client::ListOptions.
struct WantList {
  std::string resource_version;
  std::size_t limit = 0;
  std::string continue_from;
};
// Watch the resource from this version on.
struct WantWatch {
  std::string resource_version;
  Duration timeout{};
};
// Wait until this time.
struct WantWait {
  Instant until{};
};
using Want = std::variant<WantList, WantWatch, WantWait>;

// A change of the copy.
struct StoreChange {
  enum class ChangeKind {
    // These objects are all that exist.
    Replace,
    // This object is new or changed.
    Upsert,
    // This object is gone. It has its last state.
    Erase,
  };
  ChangeKind what = ChangeKind::Replace;
  std::vector<object::Value> objects;
};

// The pace of lists and watches.
struct ReflectorOptions {
  std::size_t page_objects_max = 500;
  // A watch lasts between once and twice this time.
  Duration watch_min = std::chrono::minutes(5);
  // A watch that ends sooner without an event counts as a failure.
  Duration watch_short = std::chrono::seconds(1);
  // Bookmarks come every minute, so a silent watch is dead after this time.
  Duration silence_max = std::chrono::seconds(150);
  // The wait before a kind is looked for again that the server does not know, between once and
  // twice this time. The kind may be installed at any time.
  Duration absent_wait = std::chrono::seconds(5);
  // For this long the reflector watches on after an internal error of the server.
  Duration internal_errors_max = std::chrono::minutes(1);
  pace::BackoffOptions backoff = {.first = std::chrono::milliseconds(800),
                                  .factor = 2,
                                  .max = std::chrono::seconds(30),
                                  .jitter = 1,
                                  .reset_after = std::chrono::minutes(2)};
};

// Keeps a copy of a resource up to date with a list and watches, by the rules of client-go. It says
// what to request from the API server, gets the results, and says how to change the copy. Pure.
// Thread safety: one thread at a time.
class Reflector {
 public:
  Reflector(const ReflectorOptions& options, std::uint64_t seed)
      : options_(options), backoff_(options.backoff), rng_(seed) {}

  // What to do now.
  [[nodiscard]] Want next(Instant now);

  // The result of WantList. Nothing while there are more pages.
  std::optional<StoreChange> on_list(client::List page);
  // Decides how to list next: in pages, at another version, or the same after a wait.
  void on_list_failed(Instant now, const client::Failure& failure);

  // The result of WantWatch, and of the watch.
  void on_watch_opened(Instant now);
  void on_watch_failed(Instant now, const client::Failure& failure);
  struct EventEffect {
    std::optional<StoreChange> change;
    // Close the watch and call next().
    bool is_watch_over = false;
    // The event type is unknown.
    bool is_unknown = false;
  };
  // An event of the watch.
  EventEffect on_event(Instant now, std::string_view type, object::Value object);
  // The watch ended. failure: it did not end in an orderly way.
  void on_watch_ended(Instant now, const std::optional<client::Failure>& failure);
  // How long the watch may still be silent. Zero: close it, then call on_watch_ended().
  [[nodiscard]] Duration silence_left(Instant now) const;

  [[nodiscard]] const std::string& resource_version() const { return version_; }

 private:
  // Lists again after a wait, because the watch cannot continue.
  void list_again(Instant now);
  // Waits by the back-off.
  void wait(Instant now) { not_before_ = now + backoff_.next(now, rng_); }
  void on_error_event(Instant now, const client::Failure& failure);
  // The version to list at. Empty: the newest.
  [[nodiscard]] std::string list_version() const;

  const ReflectorOptions options_;
  pace::Backoff backoff_;
  Rng rng_;
  // Whether the next step is a list, or a watch.
  bool is_listing_ = true;
  Instant not_before_{};
  // The last version seen.
  std::string version_;
  // The server does not have version_: request the newest.
  bool is_version_unavailable_ = false;
  bool is_paging_off_ = false;
  // For one answer: request the newest, in pages.
  bool is_too_long_ = false;
  // The token of the next page, and the pages so far.
  std::string continue_from_;
  std::vector<object::Value> pages_;
  // When the watch was opened, and when it last delivered an event.
  Instant opened_at_{};
  Instant heard_at_{};
  // The number of events of this watch.
  std::size_t events_ = 0;
  // It began without a version, so its first events have no order.
  bool is_unordered_ = false;
  // Since when the server has reported only internal errors.
  std::optional<Instant> internal_errors_since_;
};

}  // namespace sightline::reflector
