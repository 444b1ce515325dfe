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

// Answers questions to the router role over HTTP, from frontends and other clients:
// - POST /select, /select_and_reserve, /overlap_scores, /explain,
// - POST /reservations/NAME/prefill_complete,
// - DELETE /reservations/NAME, optionally with the ending as body,
// - PUT /reservations: the whole list of an instance,
// - POST /reservations: events of several reservations,
// - GET /served: what the workers serve, with an entity tag,
// - GET /workers and /loads: both return all workers with the load of their ranks,
// - GET /health, without a token.
//
// A LeaseBook holds the reservations. When the book ends one, it ends at the selector. Thread
// safety: any I/O thread may call answer(), and any thread the other methods.
class SelectionApi {
 public:
  // All must live longer.
  struct Deps {
    // Its compute threads read long questions.
    IoPool& pool;
    selection::Selector& selector;
    const fleet::Fleet& fleet;
    const keys::Scheme& scheme;
    runtime::Metrics& metrics;
    const Clock& clock;
    // Returns what the workers serve at this moment.
    std::function<std::shared_ptr<const fleet::Served>()> served;
    // As LocalSelector::adopt().
    std::function<std::optional<selection::Selection>(const selection::Adoption&)> adopt;
    // A request must have a token of this file. Null: no token is needed.
    runtime::TokenFile* tokens = nullptr;
    // Returns Unavailable with the reason while frontends should prefer another router. GET /served
    // reports it. Empty: always ready. Called on any I/O thread.
    std::function<Result<Done>()> ready = {};
    // Returns `selection_json::WorkersReport::stale`, at most kReasonBytesMax. Empty: always fresh.
    // Called on any I/O thread.
    std::function<std::string()> stale = {};
    // Returns `selection_json::WorkersReport::known`. Empty: it is not reported. Called on any I/O
    // thread.
    std::function<std::uint32_t()> known = {};
    // Counts the memory of bodies while they are read. Null: it is not counted.
    ByteBudget* memory = nullptr;
  };
  struct Options {
    // Names the settings that the keys of this deployment depend on. Keys with another text are
    // rejected.
    std::string identity;
    // As for requests.
    std::string scope_model;
    leases::Limits leases;
    // Called with names that are reserved here and perhaps at another router too, because the
    // caller asked or held them there before. Called on any I/O thread. It may be empty.
    std::function<void(const std::vector<leases::Name>&)> on_taken;
  };
  SelectionApi(const Deps& sources, Options options);
  // Ends all reservations.
  ~SelectionApi();
  SelectionApi(const SelectionApi&) = delete;
  SelectionApi& operator=(const SelectionApi&) = delete;

  // Answers requests from their header alone, if no body could change the answer: 401 and 404. Any
  // I/O thread may call it.
  [[nodiscard]] http::Admission admission(const http::Request& head) const;

  // Returns the whole answer. Errors have OpenAI's shape: 400, 401, 404, 405, 409 and 503. A 409
  // means that the keys or the block size differ from this router's, and names both, or that a
  // reservation has ended.
  Task<http::Response> answer(const http::Request& request);

  // Ends the reservations whose time has ended. Call it about once a second.
  void sweep();

  // Another router has reserved the name, as its on_taken reported. The reservation here ends, if
  // its attempt is the same or earlier.
  void supersede(const leases::Name& name);
  // Returns false if a name reported by on_taken was superseded since, or was never reserved.
  [[nodiscard]] bool stands(const leases::Name& name) const;

  // The number of open reservations.
  [[nodiscard]] std::size_t reservations() const;

 private:
  using Ended = std::vector<leases::LeaseId>;

  // Returns the answer to a request without a token or with an unknown path. Returns nothing for
  // other requests.
  [[nodiscard]] std::optional<http::Response> refusal_of(const http::Request& head) const;
  void count(const http::Response& response) const;
  Task<http::Response> dispatch(const http::Request& request);
  Task<http::Response> select(const http::Request& request, bool reserves);
  Task<http::Response> reserve(selection_json::SelectionAsk ask);
  Task<http::Response> overlaps(const http::Request& request, bool explains);
  // Answers paths below /reservations/.
  http::Response reservation(const http::Request& request, std::string_view rest);
  http::Response renew(const http::Request& request);
  http::Response note(const http::Request& request);
  [[nodiscard]] http::Response workers() const;
  [[nodiscard]] http::Response served(const http::Request& request) const;
  // The body as an ask with keys, made by the caller or here. `refusal` is the answer if the ask
  // cannot be decided here.
  struct ReadAsk {
    selection_json::SelectionAsk ask;
    std::optional<http::Response> refusal;
  };
  Task<ReadAsk> read(const http::Request& request) const;
  [[nodiscard]] HeldBytes memory_for(const std::string& body) const {
    return HeldBytes(sources_.memory, claim_of(body.size()));
  }
  std::optional<http::Response> complete(selection_json::SelectionAsk& ask) const;
  // Gives a reservation a name, if the caller did not. Returns an answer if it then has no end.
  std::optional<http::Response> name(selection_json::SelectionAsk& ask);
  bool first_token(const leases::Name& name);
  void release(const leases::Name& name, const selection::Ending& ending);
  // Reserves the load of an instance's reservation that this router does not have. Returns false if
  // it cannot.
  bool adopt(const leases::Name& name, const selection::Adoption& work);
  void end(const Ended& leases, const selection::Ending& ending, std::string_view why);

  const Deps sources_;
  const Options options_;
  // The instance of the names given here.
  const std::string instance_;
  // Held for memory work only.
  mutable Mutex mutex_;
  leases::LeaseBook book_ SL_GUARDED_BY(mutex_);
  std::unordered_map<leases::LeaseId, selection::Selection> reserved_ SL_GUARDED_BY(mutex_);
  std::uint64_t next_number_ SL_GUARDED_BY(mutex_) = 1;
};

}  // namespace sightline::selection_api
