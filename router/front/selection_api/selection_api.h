// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/base/byte_budget.h"
#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/base/result.h"
#include "common/http/message.h"
#include "common/http/server.h"
#include "common/runtime/io_pool.h"
#include "common/runtime/metrics.h"
#include "common/runtime/task.h"
#include "common/runtime/token_file.h"

#include "router/cache/keys/block_key.h"
#include "router/front/leases/lease_book.h"
#include "router/front/selection/selector.h"
#include "router/front/selection_json/messages.h"
#include "router/workers/fleet/fleet.h"
#include "router/workers/fleet/served.h"

namespace sightline::selection_api {

// Answers what frontends and others ask of the router role over HTTP: POST /select,
// /select_and_reserve, /overlap_scores, /explain, /reservations/NAME/prefill_complete;
// DELETE /reservations/NAME, perhaps with the ending as body; PUT /reservations: the whole list of
// an instance; POST /reservations: what happened to several; GET /served: what the workers serve,
// with an entity tag; GET /workers and /loads (the same: all workers with the load of their ranks),
// /health (without a token).
// Reservations stand in a LeaseBook; what it ends, ends at the selector.
// Thread safety: answer() on any I/O thread, the rest from any thread.
class SelectionApi {
 public:
  // All outlive it.
  struct Sources {
    IoPool& pool;  // reads long questions on its compute threads
    selection::Selector& selector;
    const fleet::Fleet& fleet;
    const keys::Scheme& scheme;
    runtime::Metrics& metrics;
    const Clock& clock;
    // What the workers serve, at this moment.
    std::function<std::shared_ptr<const fleet::Served>()> served;
    // As LocalSelector::adopt().
    std::function<std::optional<selection::Selection>(const selection::Adoption&)> adopt;
    // Of whose tokens a request must bring one; null: no request needs any.
    runtime::TokenFile* tokens = nullptr;
    // Unavailable, with the reason, while frontends should rather ask another router: told with
    // what is served. Empty: always ready. From any I/O thread.
    std::function<Result<Done>()> ready = {};
    // As selection_json::Told::stale, at most kReasonBytesMax. Empty: always fresh. From any I/O
    // thread.
    std::function<std::string()> stale = {};
    // As selection_json::Told::known. Empty: it is not told. From any I/O thread.
    std::function<std::uint32_t()> known = {};
    // What is read of bodies is charged here meanwhile; null: nowhere.
    ByteBudget* memory = nullptr;
  };
  struct Options {
    // What the keys of this deployment depend on; keys come with the same text, or are refused.
    std::string identity;
    std::string scope_model;  // as for requests
    leases::Limits leases;
    // Told of names that are booked here and perhaps at another router as well, where the caller
    // asked, or held them, before. From any I/O thread; may be empty.
    std::function<void(const std::vector<leases::Name>&)> on_taken;
  };
  SelectionApi(const Sources& sources, Options options);
  // Ends all that is reserved.
  ~SelectionApi();
  SelectionApi(const SelectionApi&) = delete;
  SelectionApi& operator=(const SelectionApi&) = delete;

  // Answers by the header what no body would change: 401 and 404. On any I/O thread.
  [[nodiscard]] http::Admission admission(const http::Request& head) const;

  // The whole answer. Errors are in OpenAI's shape: 400, 401, 404, 405, 409 (other keys or block
  // size than here, naming both; a reservation that is over), 503.
  Task<http::Response> answer(const http::Request& request);

  // Ends the reservations whose time is up. To be called about once a second.
  void sweep();

  // Another router has told in on_taken that it booked the name: what is held here under it, or an
  // earlier attempt of it, ends.
  void supersede(const leases::Name& name);
  // False: what was told in on_taken ended since by supersede(), or was never booked.
  [[nodiscard]] bool stands(const leases::Name& name) const;

  [[nodiscard]] std::size_t reservations() const;

 private:
  using Ended = std::vector<leases::LeaseId>;

  // The answer to a request without a token or a path; nothing: it has both.
  [[nodiscard]] std::optional<http::Response> refusal_of(const http::Request& head) const;
  void count(const http::Response& response) const;
  Task<http::Response> dispatch(const http::Request& request);
  Task<http::Response> select(const http::Request& request, bool reserves);
  Task<http::Response> reserve(selection_json::Ask ask);
  Task<http::Response> overlaps(const http::Request& request, bool explains);
  // What is below /reservations/.
  http::Response reservation(const http::Request& request, std::string_view rest);
  http::Response renew(const http::Request& request);
  http::Response note(const http::Request& request);
  [[nodiscard]] http::Response workers() const;
  [[nodiscard]] http::Response served(const http::Request& request) const;
  // The body as an ask with keys, whoever is to make them. The answer if it cannot be decided here.
  struct Read {
    selection_json::Ask ask;
    std::optional<http::Response> refusal;
  };
  Task<Read> read(const http::Request& request) const;
  [[nodiscard]] HeldBytes memory_for(const std::string& body) const {
    return HeldBytes(sources_.memory, claim_of(body.size()));
  }
  std::optional<http::Response> complete(selection_json::Ask& ask) const;
  // The name of a reservation that was not given one; the answer if it has no end.
  std::optional<http::Response> name(selection_json::Ask& ask);
  bool first_token(const leases::Name& name);
  void release(const leases::Name& name, const selection::Ending& ending);
  // Books what an instance holds and this router does not know of. False: it cannot.
  bool adopt(const leases::Name& name, const selection::Adoption& work);
  void end(const Ended& leases, const selection::Ending& ending, std::string_view why);

  const Sources sources_;
  const Options options_;
  const std::string instance_;  // of the names given here
  mutable Mutex mutex_;         // held for memory work only
  leases::LeaseBook book_ SL_GUARDED_BY(mutex_);
  std::unordered_map<leases::LeaseId, selection::Selection> reserved_ SL_GUARDED_BY(mutex_);
  std::uint64_t next_number_ SL_GUARDED_BY(mutex_) = 1;
};

}  // namespace sightline::selection_api
