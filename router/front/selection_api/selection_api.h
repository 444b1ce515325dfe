// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/base/result.h"
#include "common/http/message.h"
#include "common/runtime/task.h"

#include "router/cache/keys/block_key.h"
#include "router/front/leases/lease_book.h"
#include "router/front/selection/selector.h"
#include "router/front/selection_json/messages.h"
#include "router/workers/fleet/fleet.h"

namespace sightline::selection_api {

inline constexpr std::size_t kTokensMax = 16;  // bearer tokens that are good at the same time

// Answers what frontends and others ask of the router role over HTTP: POST /select,
// /select_and_reserve, /overlap_scores, /explain, /reservations/NAME/prefill_complete;
// DELETE /reservations/NAME, perhaps with the ending as body; GET /workers and /loads (the same:
// all workers with the load of their ranks), /health (without a token).
// Reservations stand in a LeaseBook; what it ends, ends at the selector.
// Thread safety: answer() on any I/O thread, the rest from any thread.
class SelectionApi {
 public:
  // All outlive it.
  struct Sources {
    selection::Selector& selector;
    const fleet::Fleet& fleet;
    const keys::Scheme& scheme;
    const Clock& clock;
  };
  struct Options {
    // What the keys of this deployment depend on; keys come with the same text, or are refused.
    std::string identity;
    std::string scope_model;  // as for requests
    leases::Limits leases;
  };
  SelectionApi(const Sources& sources, Options options);
  // Ends all that is reserved.
  ~SelectionApi();
  SelectionApi(const SelectionApi&) = delete;
  SelectionApi& operator=(const SelectionApi&) = delete;

  // The tokens of which a request must bring one; none: no request needs any. At most kTokensMax.
  void set_tokens(std::vector<std::string> tokens);

  // The whole answer. Errors are in OpenAI's shape: 400, 401, 404, 405, 409 (other keys or block
  // size than here, naming both; a reservation that is over), 503.
  Task<http::Response> answer(const http::Request& request);

  // Ends the reservations whose time is up. To be called about once a second.
  void sweep();

  [[nodiscard]] std::size_t reservations() const;

 private:
  using Ended = std::vector<leases::LeaseId>;

  [[nodiscard]] bool is_allowed(const http::Request& request) const;
  Task<http::Response> select(const http::Request& request, bool reserves);
  Task<http::Response> reserve(selection_json::Ask ask);
  Task<http::Response> overlaps(const http::Request& request, bool explains);
  http::Response reservation(const http::Request& request, std::string_view rest);
  [[nodiscard]] http::Response workers() const;
  // The ask with keys, whoever is to make them; an answer if it cannot be decided here.
  std::optional<http::Response> complete(selection_json::Ask& ask) const;
  // The name of a reservation that was not given one; the answer if it has no end.
  std::optional<http::Response> name(selection_json::Ask& ask);
  void end(const Ended& leases, const selection::Ending& ending);

  const Sources sources_;
  const Options options_;
  const std::string instance_;  // of the names given here
  mutable Mutex mutex_;         // held for memory work only
  std::vector<std::string> tokens_ SL_GUARDED_BY(mutex_);
  leases::LeaseBook book_ SL_GUARDED_BY(mutex_);
  std::unordered_map<leases::LeaseId, selection::Selection> reserved_ SL_GUARDED_BY(mutex_);
  std::uint64_t next_number_ SL_GUARDED_BY(mutex_) = 1;
};

}  // namespace sightline::selection_api
