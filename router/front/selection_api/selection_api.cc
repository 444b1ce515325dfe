// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/front/selection_api/selection_api.h"

#include <algorithm>
#include <chrono>
#include <memory>

#include "common/base/bytes.h"
#include "common/base/json.h"

#include "router/openai/error_body.h"
#include "router/workers/fleet/served.h"

namespace sightline::selection_api {
namespace {

using selection_json::Ask;
using State = leases::LeaseBook::Found::State;
using Outcome = leases::LeaseBook::Added::Outcome;

// Tokens per block where no worker has told its own; vLLM's default. Nothing is held then.
constexpr std::uint32_t kAssumedBlockSize = 16;
constexpr std::string_view kReservations = "/reservations/";
constexpr std::string_view kPrefillComplete = "/prefill_complete";

http::Response json_response(int status, std::string body) {
  http::Response response;
  response.status = status;
  response.headers.set("content-type", "application/json");
  response.body = std::move(body);
  return response;
}

http::Response refused(const Error& error) {
  auto response = json_response(openai::http_status_of(error), selection_json::write_error(error));
  if (response.status == 503) response.headers.set("retry-after", "1");
  return response;
}

http::Response conflict(const std::string& message, const std::string& param) {
  return json_response(
      409, openai::error_body(client_error(ErrorCode::InvalidArgument, message, param), 409));
}

http::Response over(const leases::Name& name) {
  return conflict("the reservation " + leases::text_of(name) + " is over", "reservation");
}

// The time it takes tells nothing but the lengths.
bool equal_secrets(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]);
  }
  return difference == 0;
}

std::string load_json(const fleet::Load& load) {
  return R"({"in_flight":)" + std::to_string(load.in_flight) + R"(,"prefill_tokens":)" +
         std::to_string(load.prefill_tokens) + R"(,"decode_blocks":)" +
         std::to_string(load.blocks) + "}";
}

std::string ranks_json(const fleet::Worker& worker, Instant now) {
  std::string out = "[";
  for (const fleet::Rank& rank : worker.ranks) {
    out += (out.size() > 1 ? "," : "") + (R"({"rank":)" + std::to_string(rank.number)) +
           R"(,"load":)" + load_json(rank.load->read(now)) + "}";
  }
  return out + "]";
}

// What would be selected. Error: Unavailable: the worker has gone meanwhile.
Result<selection::Selection> chosen_of(const selection::Explanation& explanation,
                                       const fleet::FleetSnapshot& fleet,
                                       const selection::Inquiry& inquiry) {
  const auto& entry = explanation.entries[explanation.chosen];
  const auto worker = fleet.find(entry.worker);
  if (worker == nullptr) {
    return Error{ErrorCode::Unavailable, Blame::Internal, true, "the worker has gone", "", ""};
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

// Leading tokens that each rank holds, tier by tier.
std::string overlaps_json(const selection::Explanation& explanation, std::uint32_t block_size) {
  std::string out = R"({"block_size":)" + std::to_string(block_size) + R"(,"workers":[)";
  for (const auto& entry : explanation.entries) {
    if (!entry.is_eligible) continue;
    const std::uint64_t gpu = std::uint64_t{entry.candidate.gpu_blocks} * block_size;
    const std::uint64_t cpu = gpu + std::uint64_t{entry.candidate.cpu_blocks} * block_size;
    const std::uint64_t disk = cpu + std::uint64_t{entry.candidate.storage_blocks} * block_size;
    out += (out.back() == '[' ? "" : ",") + (R"({"worker":)" + json::to_quoted(entry.worker)) +
           R"(,"rank":)" + std::to_string(entry.rank.value_or(0)) + R"(,"longest_matched":)" +
           std::to_string(disk) + R"(,"gpu":)" + std::to_string(gpu) + R"(,"cpu":)" +
           std::to_string(cpu) + R"(,"disk":)" + std::to_string(disk) + "}";
  }
  return out + "]}";
}

}  // namespace

SelectionApi::SelectionApi(const Sources& sources, Options options)
    : sources_(sources),
      options_(std::move(options)),
      instance_("router-" + to_hex(static_cast<std::uint64_t>(
                                sources.clock.wall().time_since_epoch().count()))),
      book_(options_.leases) {}

SelectionApi::~SelectionApi() {
  const MutexLock lock(mutex_);
  for (const auto& [lease, selection] : reserved_) sources_.selector.end(lease, {});
}

void SelectionApi::set_tokens(std::vector<std::string> tokens) {
  if (tokens.size() > kTokensMax) tokens.resize(kTokensMax);
  const MutexLock lock(mutex_);
  tokens_ = std::move(tokens);
}

std::size_t SelectionApi::reservations() const {
  const MutexLock lock(mutex_);
  return book_.open();
}

bool SelectionApi::is_allowed(const http::Request& request) const {
  constexpr std::string_view kScheme = "Bearer ";
  const std::string_view given = request.headers.find("authorization").value_or("");
  const MutexLock lock(mutex_);
  if (tokens_.empty()) return true;
  bool is_known = false;
  for (const std::string& token : tokens_) {
    is_known |= given.starts_with(kScheme) && equal_secrets(given.substr(kScheme.size()), token);
  }
  return is_known;
}

Task<http::Response> SelectionApi::answer(const http::Request& request) {
  const std::string path(request.path());
  const bool posts = request.method == "POST";
  if (path == "/health" && request.method == "GET") co_return json_response(200, "{}");
  if (!is_allowed(request)) {
    co_return refused(client_error(ErrorCode::Unauthorized, "no valid bearer token"));
  }
  if (path == "/select" && posts) co_return co_await select(request, false);
  if (path == "/select_and_reserve" && posts) co_return co_await select(request, true);
  if (path == "/overlap_scores" && posts) co_return co_await overlaps(request, false);
  if (path == "/explain" && posts) co_return co_await overlaps(request, true);
  if ((path == "/workers" || path == "/loads") && request.method == "GET") co_return workers();
  if (path.starts_with(kReservations)) {
    co_return reservation(request, std::string_view(path).substr(kReservations.size()));
  }
  co_return refused(client_error(ErrorCode::NotFound, "no such path or method"));
}

std::optional<http::Response> SelectionApi::complete(Ask& ask) const {
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
    inquiry.first_prompt_tokens = inquiry.job.prompt_tokens;
    return std::nullopt;
  }
  if (inquiry.keys->empty()) return std::nullopt;
  if (ask.identity != options_.identity) {
    return conflict("the keys are of the identity `" + ask.identity + "`, this router has `" +
                        options_.identity + "`",
                    "identity");
  }
  if (block_size && inquiry.job.block_size != *block_size) {
    return conflict("the keys are of blocks of " + std::to_string(inquiry.job.block_size) +
                        " tokens, the workers have blocks of " + std::to_string(*block_size),
                    "block_size");
  }
  return std::nullopt;
}

std::optional<http::Response> SelectionApi::name(Ask& ask) {
  if (ask.reservation) return std::nullopt;
  if (!ask.lease) {
    return refused(client_error(ErrorCode::InvalidArgument,
                                "a reservation without a name of the caller's needs `lease_s`",
                                "lease_s"));
  }
  const MutexLock lock(mutex_);
  ask.reservation = leases::Name{instance_, next_number_++, 0};
  return std::nullopt;
}

Task<http::Response> SelectionApi::select(const http::Request& request, bool reserves) {
  auto ask = selection_json::read_ask(request.body);
  if (!ask.ok()) co_return refused(ask.error());
  if (auto other = complete(*ask)) co_return std::move(*other);
  if (reserves) {
    if (auto nameless = name(*ask)) co_return std::move(*nameless);
    co_return co_await reserve(std::move(*ask));
  }
  // Booking and giving it back at once would leave a trace in the spread of recent work.
  const auto explanation = sources_.selector.explain(ask->inquiry);
  if (!explanation.ok()) co_return refused(explanation.error());
  const auto chosen = chosen_of(*explanation, *sources_.fleet.snapshot(), ask->inquiry);
  if (!chosen.ok()) co_return refused(chosen.error());
  co_return json_response(200, selection_json::write_selection(*chosen, std::nullopt));
}

Task<http::Response> SelectionApi::reserve(Ask ask) {
  const leases::Name& reserved = *ask.reservation;
  {
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
    added = book_.add(reserved, selected->reservation, own_end, now);
    if (added.outcome == Outcome::Booked) reserved_.emplace(selected->reservation, *selected);
    if (added.outcome == Outcome::Open) counts = reserved_.at(added.open);
  }
  if (added.ended) end({*added.ended}, {});
  if (added.outcome != Outcome::Booked) sources_.selector.end(selected->reservation, {});
  if (added.outcome == Outcome::Over) co_return over(reserved);
  if (added.outcome == Outcome::Full) {
    co_return refused(overload_error("reservations", "too many reservations of other processes"));
  }
  co_return json_response(200, selection_json::write_selection(counts, reserved));
}

Task<http::Response> SelectionApi::overlaps(const http::Request& request, bool explains) {
  auto ask = selection_json::read_ask(request.body);
  if (!ask.ok()) co_return refused(ask.error());
  if (auto other = complete(*ask)) co_return std::move(*other);
  const auto explanation = sources_.selector.explain(ask->inquiry);
  if (!explanation.ok()) co_return refused(explanation.error());
  co_return json_response(200, explains ? selection_json::write_explanation(*explanation)
                                        : overlaps_json(*explanation, ask->inquiry.job.block_size));
}

// A release that comes twice, or before its reservation, is as good as one.
http::Response SelectionApi::reservation(const http::Request& request, std::string_view rest) {
  const bool first_token = request.method == "POST" && rest.ends_with(kPrefillComplete);
  if (!first_token && request.method != "DELETE") {
    return refused(client_error(ErrorCode::NotFound, "no such path or method"));
  }
  if (first_token) rest.remove_suffix(kPrefillComplete.size());
  const auto named = leases::parse_name(rest);
  if (!named) {
    return refused(client_error(ErrorCode::InvalidArgument,
                                "a reservation is named INSTANCE.NUMBER.ATTEMPT", "reservation"));
  }
  if (first_token) {
    leases::LeaseBook::Found found;
    {
      const MutexLock lock(mutex_);
      found = book_.find(*named);
      book_.hear(named->instance, sources_.clock.now());
    }
    if (found.state != State::Open) {
      return refused(client_error(ErrorCode::NotFound, "no such reservation", "reservation"));
    }
    sources_.selector.first_token(found.lease);
    return json_response(200, "{}");
  }
  selection::Ending ending;
  if (!request.body.empty()) {
    auto read = selection_json::read_ending(request.body);
    if (!read.ok()) return refused(read.error());
    ending = std::move(*read);
  }
  std::optional<leases::LeaseId> lease;
  {
    const MutexLock lock(mutex_);
    lease = book_.release(*named, sources_.clock.now());
  }
  if (lease) end({*lease}, ending);
  return json_response(200, "{}");
}

http::Response SelectionApi::workers() const {
  const auto snapshot = sources_.fleet.snapshot();
  const Instant now = sources_.clock.now();
  std::string out = "[";
  for (const auto& worker : snapshot->workers) {
    out += (out.size() > 1 ? "," : "") + (R"({"worker":)" + json::to_quoted(worker->spec.name)) +
           R"(,"url":)" + json::to_quoted(worker->spec.url) + R"(,"state":)" +
           json::to_quoted(fleet::name_of(worker->state)) + R"(,"ranks":)" +
           ranks_json(*worker, now) + "}";
  }
  return json_response(200, out + "]");
}

void SelectionApi::sweep() {
  Ended ended;
  {
    const MutexLock lock(mutex_);
    ended = book_.expire(sources_.clock.now());
  }
  end(ended, {});
}

void SelectionApi::end(const Ended& leases, const selection::Ending& ending) {
  {
    const MutexLock lock(mutex_);
    for (const leases::LeaseId lease : leases) reserved_.erase(lease);
  }
  for (const leases::LeaseId lease : leases) sources_.selector.end(lease, ending);
}

}  // namespace sightline::selection_api
