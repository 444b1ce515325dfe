// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/front/selection_api/selection_api.h"

#include <algorithm>
#include <array>
#include <memory>

#include "common/base/bytes.h"
#include "common/contract/metrics_requests.h"
#include "common/contract/metrics_selection.h"

#include "router/front/selection_api/answers.h"
#include "router/front/selection_json/workers_report.h"
#include "router/workers/fleet/served.h"

namespace sightline::selection_api {
namespace {

using selection_json::SelectionAsk;
using State = leases::LeaseBook::NameState::State;
using Outcome = leases::LeaseBook::Added::Outcome;

// Tokens per block if no worker has reported a number. This is vLLM's default. No worker holds a
// block then.
constexpr std::uint32_t kAssumedBlockSize = 16;
constexpr std::string_view kReservations = "/reservations/";

// HEAD is allowed where GET is.
struct Way {
  std::string_view method;
  std::string_view path;
};
constexpr std::array kWays = {Way{"GET", "/health"},          Way{"GET", "/served"},
                              Way{"GET", "/workers"},         Way{"GET", "/loads"},
                              Way{"POST", "/select"},         Way{"POST", "/select_and_reserve"},
                              Way{"POST", "/overlap_scores"}, Way{"POST", "/explain"},
                              Way{"POST", "/reservations"},   Way{"PUT", "/reservations"}};

std::string_view method_of(const http::Request& head) {
  return head.method == "HEAD" ? std::string_view("GET") : std::string_view(head.method);
}

// A path below kReservations names one reservation. reservation() checks the method.
bool has_way(const http::Request& head) {
  if (head.path().starts_with(kReservations)) return true;
  return std::any_of(kWays.begin(), kWays.end(), [&](const Way& way) {
    return way.method == method_of(head) && way.path == head.path();
  });
}

// Returns the selection that would be made. Error: Unavailable, if the worker is gone meanwhile.
Result<selection::Selection> chosen_of(const selection::Explanation& explanation,
                                       const fleet::FleetSnapshot& fleet,
                                       const selection::Inquiry& inquiry) {
  const auto& entry = explanation.entries[explanation.chosen];
  const auto worker = fleet.find(entry.worker);
  if (worker == nullptr) {
    return Error{
        ErrorCode::Unavailable, Blame::Internal, true, "the chosen worker was removed", "", ""};
  }
  selection::Selection chosen;
  chosen.worker = entry.worker;
  chosen.host = worker->spec.host;
  chosen.port = worker->spec.port;
  chosen.rank = entry.rank;
  chosen.family = worker->spec.family;
  chosen.overlap_blocks = std::uint64_t{entry.candidate.gpu_blocks} + entry.candidate.cpu_blocks +
                          entry.candidate.storage_blocks;
  chosen.prompt_blocks = inquiry.keys->size();
  chosen.block_size = inquiry.job.block_size;
  chosen.reason = explanation.reason;
  chosen.score = entry.score;
  return chosen;
}

}  // namespace

SelectionApi::SelectionApi(const Deps& sources, Options options)
    : sources_(sources),
      options_(std::move(options)),
      instance_("router-" + to_hex(static_cast<std::uint64_t>(
                                sources.clock.wall().time_since_epoch().count()))),
      book_(options_.leases) {}

SelectionApi::~SelectionApi() {
  const MutexLock lock(mutex_);
  for (const auto& [lease, selection] : reserved_) sources_.selector.end(lease, {});
}

Task<http::Response> SelectionApi::answer(const http::Request& request) {
  auto response = co_await dispatch(request);
  count(response);
  co_return response;
}

std::optional<http::Response> SelectionApi::refusal_of(const http::Request& head) const {
  const bool is_open = head.path() == "/health" && method_of(head) == "GET";
  if (!is_open && sources_.tokens != nullptr &&
      !sources_.tokens->admits(head.headers.find("authorization").value_or(""))) {
    return refused(client_error(ErrorCode::Unauthorized, "no valid bearer token"));
  }
  if (has_way(head)) return std::nullopt;
  return refused(client_error(ErrorCode::NotFound, "no such path or method"));
}

http::Admission SelectionApi::admission(const http::Request& head) const {
  auto refusal = refusal_of(head);
  if (refusal) count(*refusal);
  return {.refusal = std::move(refusal)};
}

void SelectionApi::count(const http::Response& response) const {
  sources_.metrics.counter(contract::kSelectionRequestsTotal, {std::to_string(response.status)})
      .add();
}

Task<http::Response> SelectionApi::dispatch(const http::Request& request) {
  if (auto refusal = refusal_of(request)) co_return std::move(*refusal);
  const std::string path(request.path());
  if (path.starts_with(kReservations)) {
    co_return reservation(request, std::string_view(path).substr(kReservations.size()));
  }
  if (path == "/health") co_return json_response(200, "{}");
  if (path == "/served") co_return served(request);
  if (method_of(request) == "GET") co_return workers();
  if (path == "/reservations") {
    co_return request.method == "PUT" ? renew(request) : note(request);
  }
  if (path == "/select") co_return co_await select(request, false);
  if (path == "/select_and_reserve") co_return co_await select(request, true);
  co_return co_await overlaps(request, path == "/explain");
}

http::Response SelectionApi::workers() const {
  return json_response(200, workers_json(*sources_.fleet.snapshot(), sources_.clock.now()));
}

http::Response SelectionApi::served(const http::Request& request) const {
  std::string not_ready;
  if (sources_.ready) {
    if (const auto ready = sources_.ready(); !ready.ok()) not_ready = ready.error().message;
  }
  // The reason of /readyz may be longer than a frontend accepts.
  if (not_ready.size() > selection_json::kReasonBytesMax) not_ready = "see its /readyz?verbose";
  selection_json::WorkersReport told{.identity = options_.identity,
                                     .served = *sources_.served(),
                                     .not_ready = not_ready,
                                     .stale = sources_.stale ? sources_.stale() : std::string()};
  if (sources_.known) told.known = sources_.known();
  std::string body = selection_json::write_told(told);
  // Frontends poll this answer every second. The tag saves most of the bodies.
  const std::string tag = "\"" + to_hex(std::hash<std::string>{}(body)) + "\"";
  const bool is_known = request.headers.find("if-none-match") == tag;
  auto response = is_known ? http::Response{.status = 304} : json_response(200, std::move(body));
  response.headers.set("etag", tag);
  return response;
}

Task<SelectionApi::ReadAsk> SelectionApi::read(const http::Request& request) const {
  auto work = [&]() -> Result<ReadAsk> {
    HeldBytes memory = memory_for(request.body);
    auto ask = selection_json::read_ask(request.body, &memory);
    if (!ask.ok()) return ReadAsk{.ask = {}, .refusal = refused(ask.error())};
    auto refusal = complete(*ask);
    return ReadAsk{.ask = std::move(*ask), .refusal = std::move(refusal)};
  };
  // A long question is read on a compute thread. It would delay other requests.
  auto read = co_await offload(sources_.pool, request.body.size(), {}, std::move(work));
  co_return std::move(*read);
}

std::optional<http::Response> SelectionApi::complete(SelectionAsk& ask) const {
  const auto block_size = fleet::served_by(*sources_.fleet.snapshot()).block_size;
  selection::Inquiry& inquiry = ask.inquiry;
  if (ask.tokens) {
    const std::uint32_t size = block_size.value_or(kAssumedBlockSize);
    const keys::KeyScope scope{.model = options_.scope_model,
                               .cache_salt = ask.tokens->cache_salt,
                               .lora = inquiry.adapter};
    auto blocks = keys::block_keys(
        sources_.scheme, sources_.scheme.root(scope),
        {.tokens = ask.tokens->tokens, .media = ask.tokens->media, .block_size = size});
    inquiry.keys = std::make_shared<const std::vector<keys::BlockKey>>(std::move(blocks.keys));
    inquiry.job = {.prompt_tokens = ask.tokens->tokens.size(), .block_size = size};
    for (const keys::MediaSpan& span : ask.tokens->media) {
      inquiry.images.push_back(
          {static_cast<std::uint64_t>(span.start), static_cast<std::uint64_t>(span.length)});
    }
    inquiry.first_prompt_tokens = inquiry.job.prompt_tokens;
    return std::nullopt;
  }
  // Without keys nothing can be wrong about them.
  if (inquiry.keys->empty()) return std::nullopt;
  if (ask.identity != options_.identity) {
    sources_.metrics.counter(contract::kSelectionMismatchesTotal, {"identity"}).add();
    return conflict("the keys have the identity `" + ask.identity + "`, but this router has `" +
                        options_.identity + "`",
                    "identity");
  }
  if (block_size && inquiry.job.block_size != *block_size) {
    sources_.metrics.counter(contract::kSelectionMismatchesTotal, {"block-size"}).add();
    return conflict("the keys are for blocks of " + std::to_string(inquiry.job.block_size) +
                        " tokens, but the workers have blocks of " + std::to_string(*block_size),
                    "block_size");
  }
  return std::nullopt;
}

std::optional<http::Response> SelectionApi::name(SelectionAsk& ask) {
  if (ask.reservation) return std::nullopt;
  if (!ask.lease) {
    return refused(client_error(ErrorCode::InvalidArgument,
                                "a request without `reservation` needs `lease_s`", "lease_s"));
  }
  const MutexLock lock(mutex_);
  ask.reservation = leases::Name{instance_, next_number_++, 0};
  return std::nullopt;
}

Task<http::Response> SelectionApi::select(const http::Request& request, bool reserves) {
  auto [ask, refusal] = co_await read(request);
  if (refusal) co_return std::move(*refusal);
  if (reserves) {
    if (auto nameless = name(ask)) co_return std::move(*nameless);
    co_return co_await reserve(std::move(ask));
  }
  // A reservation with an immediate release would influence the spread of recent work.
  const auto explanation = co_await sources_.selector.explain(ask.inquiry);
  if (!explanation.ok()) co_return refused(explanation.error());
  const auto chosen = chosen_of(*explanation, *sources_.fleet.snapshot(), ask.inquiry);
  if (!chosen.ok()) co_return refused(chosen.error());
  co_return json_response(200, selection_json::write_selection(*chosen, std::nullopt));
}

Task<http::Response> SelectionApi::reserve(SelectionAsk ask) {
  const leases::Name& reserved = *ask.reservation;
  {
    // A repeated question gets the same answer and reserves nothing new.
    const MutexLock lock(mutex_);
    const auto found = book_.find(reserved);
    if (found.state == State::Over) co_return over(reserved);
    if (found.state == State::Open) {
      co_return json_response(200,
                              selection_json::write_selection(reserved_.at(found.lease), reserved));
    }
  }
  const auto selected = co_await sources_.selector.select(ask.inquiry);
  if (!selected.ok()) co_return refused(selected.error());
  const Instant now = sources_.clock.now();
  std::optional<Instant> own_end;
  if (ask.lease) own_end = now + *ask.lease;
  leases::LeaseBook::Added added;
  selection::Selection counts = *selected;
  {
    const MutexLock lock(mutex_);
    // Between the two locks another copy of the question may have reserved the name.
    added = book_.add(reserved, selected->reservation, own_end, now);
    if (added.outcome == Outcome::Booked) reserved_.emplace(selected->reservation, *selected);
    if (added.outcome == Outcome::Open) counts = reserved_.at(added.open);
  }
  if (added.ended) end({*added.ended}, {}, "asked-again");
  if (added.outcome != Outcome::Booked) sources_.selector.end(selected->reservation, {});
  if (added.outcome == Outcome::Over) co_return over(reserved);
  if (added.outcome == Outcome::Full) {
    sources_.metrics.counter(contract::kLimitHitsTotal, {"reservations"}).add();
    co_return refused(overload_error("reservations", "too many reservations of other processes"));
  }
  // A higher attempt means that another router may have reserved the name too.
  if (reserved.attempt > 0 && options_.on_taken) options_.on_taken({reserved});
  co_return json_response(200, selection_json::write_selection(counts, reserved));
}

Task<http::Response> SelectionApi::overlaps(const http::Request& request, bool explains) {
  auto [ask, refusal] = co_await read(request);
  if (refusal) co_return std::move(*refusal);
  const auto explanation = co_await sources_.selector.explain(ask.inquiry);
  if (!explanation.ok()) co_return refused(explanation.error());
  co_return json_response(200, explains ? selection_json::write_explanation(*explanation)
                                        : overlaps_json(*explanation, ask.inquiry.job.block_size));
}

}  // namespace sightline::selection_api
