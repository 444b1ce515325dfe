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

// What the copy of a resource has to do next.
struct WantList {
  std::string resource_version;
  std::size_t limit = 0;
  std::string continue_from;
};
struct WantWatch {
  std::string resource_version;
  Duration timeout{};
};
struct WantWait {
  Instant until{};
};
using Want = std::variant<WantList, WantWatch, WantWait>;

// What becomes of the copy.
struct StoreChange {
  enum class What {
    Replace,  // the objects are all there are
    Upsert,   // the one object is new or changed
    Erase,    // the one object is gone; this was its last state
  };
  What what = What::Replace;
  std::vector<object::Value> objects;
};

struct ReflectorOptions {
  std::size_t page_objects_max = 500;
  // A watch lasts between once and twice as long.
  Duration watch_min = std::chrono::minutes(5);
  // A watch that ends sooner, and without an event, counts as a failure.
  Duration watch_short = std::chrono::seconds(1);
  // Bookmarks come every minute: a watch that is silent for so long is dead.
  Duration silence_max = std::chrono::seconds(150);
  // A kind that the server does not know is looked for again after once to twice as long: it may be
  // installed, or made again, at any time.
  Duration absent_wait = std::chrono::seconds(5);
  // For so long an internal error of the server is answered by watching on.
  Duration internal_errors_max = std::chrono::minutes(1);
  pace::BackoffOptions backoff = {.first = std::chrono::milliseconds(800),
                                  .factor = 2,
                                  .max = std::chrono::seconds(30),
                                  .jitter = 1,
                                  .reset_after = std::chrono::minutes(2)};
};

// Keeps a copy of a resource up to date by a list and watches, by the rules of client-go: it says
// what to ask of the API server, is told what came of it, and says what to change in the copy.
// Pure; thread safety: none.
class Reflector {
 public:
  Reflector(const ReflectorOptions& options, std::uint64_t seed)
      : options_(options), backoff_(options.backoff), rng_(seed) {}

  [[nodiscard]] Want next(Instant now);

  // The answer to WantList. Nothing while there are more pages.
  std::optional<StoreChange> on_list(client::List page);
  void on_list_failed(Instant now, const client::Failure& failure);

  // The answer to WantWatch, and what came of it.
  void on_watch_opened(Instant now);
  void on_watch_failed(Instant now, const client::Failure& failure);
  struct Seen {
    std::optional<StoreChange> change;
    bool is_watch_over = false;  // close it and ask next()
    bool is_unknown = false;     // an event type that we do not know
  };
  Seen on_event(Instant now, std::string_view type, object::Value object);
  // It ended; failure: in no orderly way.
  void on_watch_ended(Instant now, const std::optional<client::Failure>& failure);
  // How long the watch may still be silent; zero: close it, then on_watch_ended().
  [[nodiscard]] Duration silence_left(Instant now) const;

  [[nodiscard]] const std::string& resource_version() const { return version_; }

 private:
  void list_again(Instant now);
  void wait(Instant now) { not_before_ = now + backoff_.next(now, rng_); }
  void on_error_event(Instant now, const client::Failure& failure);
  [[nodiscard]] std::string list_version() const;

  const ReflectorOptions options_;
  pace::Backoff backoff_;
  Rng rng_;
  bool is_listing_ = true;
  Instant not_before_{};
  std::string version_;                  // the last that was seen
  bool is_version_unavailable_ = false;  // the server does not have it: ask for the newest
  bool is_paging_off_ = false;
  bool is_too_long_ = false;  // for one answer: ask for the newest, in pages
  std::string continue_from_;
  std::vector<object::Value> pages_;
  // Of the watch.
  Instant opened_at_{};
  Instant heard_at_{};
  std::size_t events_ = 0;
  bool is_unordered_ = false;  // begun without a version: the first events are in no order
  std::optional<Instant> internal_errors_since_;
};

}  // namespace sightline::reflector
