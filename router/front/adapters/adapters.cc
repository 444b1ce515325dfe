// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/front/adapters/adapters.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <utility>

#include "common/base/log.h"
#include "common/contract/metrics_requests.h"
#include "common/contract/names.h"
#include "common/http/exchange.h"

#include "router/engine/family/models.h"
#include "router/front/relay/forward.h"

namespace sightline::adapters {
namespace {

// vLLM's answer is a sentence. A list of models has some kilobytes.
constexpr std::size_t kAnswerBytesMax = 4U << 20U;
// The block size of an inquiry without blocks, if no worker's size is known.
constexpr std::uint32_t kAnyBlockSize = 16;

Error unavailable(std::string message) {
  return {ErrorCode::Unavailable, Blame::Internal, true, std::move(message), "", ""};
}

// A draining worker takes no new requests. It does not need the adapter.
bool is_leaving(const selection::Explanation::Entry& entry) { return entry.state == "draining"; }

selection::Inquiry inquiry_of(const fleet::Served& served) {
  selection::Inquiry inquiry;
  inquiry.job.block_size = served.block_size.value_or(kAnyBlockSize);
  return inquiry;
}

// The right to change adapters, held for one change.
struct ChangeLock {
  explicit ChangeLock(std::atomic<bool>& taken_by_one)
      : taken(taken_by_one), is_mine(!taken_by_one.exchange(true)) {}
  ChangeLock(const ChangeLock&) = delete;
  ChangeLock& operator=(const ChangeLock&) = delete;
  ~ChangeLock() {
    if (is_mine) taken = false;
  }

  std::atomic<bool>& taken;
  const bool is_mine;
};

}  // namespace

Task<Result<http::Response>> Adapters::change(const http::Request& http,
                                              const std::string& request_id) {
  const auto change = read_change(http.path(), http.body);
  if (!change.ok()) co_return change.error();
  // Two changes at the same time would see each other's steps as the earlier state of workers.
  const ChangeLock turn(is_changing_);
  if (!turn.is_mine) {
    co_return unavailable("another adapter is being loaded or unloaded. Try again shortly");
  }
  auto answer = co_await change_alone(*change, http, request_id);
  co_return answer;
}

Task<Result<http::Response>> Adapters::change_alone(const AdapterChange& change,
                                                    const http::Request& http,
                                                    const std::string& request_id) const {
  const http::RequestHead head{http.method, http.target,
                               relay::engine_headers(http.headers, request_id)};
  auto found = co_await targets();
  if (!found.ok()) co_return std::move(found).error();
  for (AdapterTarget& target : *found) {
    const auto seen = co_await look_at(target, change, head.headers);
    if (!seen.ok()) co_return seen.error();
  }
  auto answer = co_await change_all(change, *found, head, http.body);
  co_return answer;
}

Task<Result<std::vector<Adapters::AdapterTarget>>> Adapters::targets() const {
  selection::Inquiry inquiry = inquiry_of(*services_.served());
  const auto explained = co_await services_.selector.explain(inquiry);
  if (!explained.ok()) co_return explained.error();
  std::set<std::string> missing;
  for (const selection::Explanation::Entry& entry : explained->entries) {
    if (is_leaving(entry)) continue;
    if (!entry.is_eligible) {
      co_return unavailable("worker " + entry.worker + " is " + entry.state +
                            ": an adapter must be loaded or unloaded on all workers together");
    }
    missing.insert(entry.worker);
  }
  std::vector<AdapterTarget> targets;
  // Each selection excludes the workers selected before. Together they give the address of every
  // worker.
  inquiry.is_read = false;
  while (!missing.empty()) {
    auto chosen = co_await services_.selector.select(inquiry);
    if (!chosen.ok()) co_return std::move(chosen).error();
    const selection::Reservation unused(services_.selector, chosen->reservation);
    missing.erase(chosen->worker);
    inquiry.tried.failed.push_back(chosen->worker);
    targets.push_back({chosen->worker, {chosen->host, chosen->port}, ""});
  }
  co_return targets;
}

Task<Result<Done>> Adapters::look_at(AdapterTarget& target, const AdapterChange& change,
                                     const http::Headers& headers) const {
  const http::RequestHead head{"GET", "/v1/models", headers};
  const std::string nothing;
  auto answer = co_await ask(target, head, nothing);
  if (!answer.ok()) co_return std::move(answer).error();
  const auto models = family::parse_models(std::move(answer->body));
  if (!models.ok()) {
    co_return unavailable("worker " + target.worker + ": " + models.error().message);
  }
  for (const family::ServedModel& model : *models) {
    // An entry without a parent is a base model and not an adapter.
    if (model.id == change.name && !model.parent.empty()) target.loaded_from = model.root;
  }
  co_return Done{};
}

Task<Result<http::Response>> Adapters::change_all(const AdapterChange& change,
                                                  const std::vector<AdapterTarget>& targets,
                                                  const http::RequestHead& head,
                                                  const std::string& body) const {
  const auto is_done = [&](const AdapterTarget& target) {
    return change.is_done_at(target.loaded_from);
  };
  const bool is_done_at_all = std::all_of(targets.begin(), targets.end(), is_done);
  const std::string_view action = change.is_load ? "load" : "unload";
  const auto count = [&](std::string_view outcome) {
    services_.metrics.counter(contract::kAdapterChangesTotal, {action, outcome}).add();
  };
  std::vector<const AdapterTarget*> changed;
  http::Response response;
  for (const AdapterTarget& target : targets) {
    // If all workers are done already, each gets the request anyway. The client then gets the
    // engine's own answer.
    if (is_done(target) && !is_done_at_all) continue;
    auto answer = co_await ask(target, head, body);
    // A request without an answer may have been carried out.
    if (!answer.ok() || answer->is_good()) changed.push_back(&target);
    if (answer.ok()) {
      response = {.status = answer->status, .headers = {}, .body = std::move(answer->body)};
      response.headers.set("content-type", answer->headers.find("content-type").value_or(""));
      response.headers.set(contract::kWorkerHeader, target.worker);
      if (answer->is_good()) continue;
    }
    const std::string left = co_await undo(change, changed, head.headers);
    count(left.empty() ? "undone" : "torn");
    if (!left.empty()) {
      co_return unavailable("worker " + target.worker + " refused the change of adapter " +
                            change.name + ". The change could not be undone on: " + left);
    }
    if (!answer.ok()) co_return std::move(answer).error();
    co_return response;
  }
  count("done");
  log(LogLevel::Info, "adapter changed on all workers",
      {{"adapter", change.name}, {"action", action}, {"workers", targets.size()}});
  co_return response;
}

Task<std::string> Adapters::undo(const AdapterChange& change,
                                 const std::vector<const AdapterTarget*>& changed,
                                 const http::Headers& headers) const {
  std::string left;
  for (const AdapterTarget* target : changed) {
    const UndoRequest request = undo_of(change, target->loaded_from);
    const http::RequestHead head{"POST", request.path, headers};
    const auto answer = co_await ask(*target, head, request.body);
    // If the adapter is not there, the wanted state is reached.
    const bool is_unknown_there = answer.ok() && answer->status == 404;
    const bool is_undone = answer.ok() && (answer->is_good() || is_unknown_there);
    if (is_undone) continue;
    log(LogLevel::Error, "could not undo the change of an adapter",
        {{"worker", target->worker}, {"adapter", change.name}});
    left += (left.empty() ? "" : ", ") + target->worker;
  }
  co_return left;
}

Task<Result<Adapters::WorkerAnswer>> Adapters::ask(const AdapterTarget& target,
                                                   const http::RequestHead& head,
                                                   const std::string& body) const {
  const auto limits = services_.settings.read()->fleet;
  const std::array<std::string_view, 1> pieces{body};
  http::Exchange exchange(services_.to_workers);
  // If a kept connection broke, the router could not know whether the change was made.
  http::Call call{.endpoint = target.address, .head = head, .body = pieces, .fresh = true};
  call.timeouts = {.connect = limits.connect_timeout,
                   .write = limits.request_timeout,
                   .first_byte = limits.request_timeout,
                   .between_bytes = limits.request_timeout};
  const auto started = co_await exchange.start(call);
  const auto failure = [&](const Error& error) {
    return unavailable("worker " + target.worker + ": " + error.message);
  };
  if (!started.ok()) co_return failure(started.error());
  auto text = co_await http::read_all(exchange, kAnswerBytesMax);
  if (!text.ok()) co_return failure(text.error());
  co_return WorkerAnswer{exchange.status(), exchange.headers(), std::move(*text)};
}

}  // namespace sightline::adapters
