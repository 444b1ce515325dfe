// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/front/admin/explain.h"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <utility>

#include "common/base/json.h"
#include "common/contract/metrics_requests.h"

#include "router/openai/error_body.h"

namespace sightline::admin {
namespace {

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

std::string tokens_json(const std::vector<TokenId>& tokens) {
  std::string out = "[";
  for (const TokenId token : tokens) {
    if (out.size() > 1) out += ',';
    out += std::to_string(token);
  }
  return out + "]";
}

std::string media_json(const openai::ApiRequest& request, const prepare::Prepared& prepared) {
  std::string out = "[";
  for (std::size_t i = 0; i < prepared.media.size(); ++i) {
    const prepare::ResolvedMedia& item = prepared.media[i];
    const auto& spans = prepared.prompt.spans;
    const auto span = std::find_if(spans.begin(), spans.end(),
                                   [i](const model::PlaceholderSpan& s) { return s.item == i; });
    const bool placed = span != spans.end();
    if (out.size() > 1) out += ',';
    out += R"({"id":)" + (item.identifier.empty() ? "null" : json::to_quoted(item.identifier)) +
           R"(,"modality":)" + json::to_quoted(openai::name_of(item.modality)) + R"(,"path":)" +
           json::to_quoted(request.chat()->media[i].path) + R"(,"format":)" +
           json::to_quoted(item.outcome) + R"(,"start":)" +
           (placed ? std::to_string(span->start) : "null") + R"(,"length":)" +
           (placed ? std::to_string(span->length) : "null") + R"(,"width":)" +
           (item.width > 0 ? std::to_string(item.width) : "null") + R"(,"height":)" +
           (item.height > 0 ? std::to_string(item.height) : "null") + "}";
  }
  return out + "]";
}

std::string digests_json(const keys::Scheme& scheme, const proxy::Keyed& keyed) {
  std::string out = "[";
  for (const keys::BlockKey key : *keyed.inquiry.keys) {
    if (out.size() > 1) out += ',';
    out += '"' + scheme.digest(key) + '"';
  }
  return out + "]";
}

std::string terms_json(const routing::Candidate& candidate, const routing::Score& score) {
  return R"({"raw_prefill_blocks":)" + number(score.cost.raw_prefill_blocks) +
         R"(,"overlap_credit_blocks":)" + number(score.cost.overlap_credit_blocks) +
         R"(,"prefill_blocks":)" + number(score.cost.prefill_blocks) + R"(,"decode_blocks":)" +
         number(score.cost.decode_blocks) + R"(,"recompute_blocks":)" +
         number(score.recompute_blocks) + R"(,"spread_blocks":)" + number(score.spread_blocks) +
         R"(,"gpu_blocks":)" + std::to_string(candidate.gpu_blocks) + R"(,"cpu_blocks":)" +
         std::to_string(candidate.cpu_blocks) + R"(,"storage_blocks":)" +
         std::to_string(candidate.storage_blocks) + R"(,"in_flight":)" +
         std::to_string(candidate.in_flight) + R"(,"kv_usage":)" + number(candidate.kv_usage) +
         R"(,"recent_prefill_blocks":)" + number(candidate.recent_prefill_blocks) + "}";
}

using selection::Explanation;

// The beginning of an entry. The rank is named if the worker has several.
std::string entry_head(const Explanation::Entry& entry) {
  return R"({"name":)" + json::to_quoted(entry.worker) +
         (entry.rank ? R"(,"rank":)" + std::to_string(*entry.rank) : "") + R"(,"state":)" +
         json::to_quoted(entry.state) + R"(,"eligible":)";
}

// Eligible workers with their terms, rank by rank, and the other workers with their states.
std::string workers_json(const Explanation& explanation) {
  std::string out = "[";
  for (const Explanation::Entry& entry : explanation.entries) {
    out += (out.size() > 1 ? "," : "") + entry_head(entry);
    if (!entry.is_eligible) {
      out += R"(false,"overlap_blocks":0,"cost_blocks":null,"terms":null})";
      continue;
    }
    const routing::Candidate& c = entry.candidate;
    out += R"(true,"overlap_blocks":)" +
           std::to_string(c.gpu_blocks + c.cpu_blocks + c.storage_blocks) + R"(,"cost_blocks":)" +
           number(entry.score.cost.total_blocks) + R"(,"terms":)" + terms_json(c, entry.score) +
           "}";
  }
  return out + "]";
}

std::string choice_json(const Explanation::Entry& chosen) {
  return json::to_quoted(chosen.worker) +
         (chosen.rank ? R"(,"choice_rank":)" + std::to_string(*chosen.rank) : "");
}

// Returns the endpoint of a body. It is parsed only if it could be for both. Invalid JSON gets its
// error later.
openai::Endpoint endpoint_of(const std::string& body, HeldBytes& memory) {
  if (body.find("\"messages\"") == std::string::npos) return openai::Endpoint::Completions;
  if (body.find("\"prompt\"") == std::string::npos) return openai::Endpoint::Chat;
  const auto none = [](std::string_view) { return json::Inside::Dropped; };
  // Without room for this copy, the request itself has no room either, and reports it.
  if (!memory.add(body.size())) return openai::Endpoint::Chat;
  const auto document = json::Document::parse(body, {.inside_of = none, .memory = &memory});
  memory.remove(body.size());
  const bool completion = document.ok() && document->root().is(json::Kind::Object) &&
                          !document->root().find("messages");
  return completion ? openai::Endpoint::Completions : openai::Endpoint::Chat;
}

admin_port::AdminResponse response_of(Result<std::string> result) {
  if (result.ok()) return {.status = 200, .body = std::move(result).value()};
  return {.status = openai::http_status_of(result.error()),
          .body = openai::error_body(result.error())};
}

}  // namespace

Task<Result<std::string>> Explain::explain(std::string body) const {
  const auto served = services_.served();
  proxy::Requester requester{{}, pipeline_.memory_for(body.size())};
  const auto endpoint = endpoint_of(body, requester.memory);
  auto request = co_await pipeline_.parse(endpoint, std::move(body), *served, requester);
  if (!request.ok()) co_return std::move(request).error();
  auto prepared = co_await pipeline_.prepare(*request, *served, requester);
  if (!prepared.ok()) co_return std::move(prepared).error();
  auto key = co_await pipeline_.key(*request, *prepared, *served, requester.left);
  if (!key.ok()) co_return std::move(key).error();
  const proxy::Keyed& keyed = *key;
  const auto explained = co_await services_.selector.explain(keyed.inquiry);
  if (!explained.ok()) co_return explained.error();
  const selection::Explanation& explanation = *explained;
  const std::string_view gap = prepare::name_of(prepared->gap);
  co_return R"({"prompt":)" + json::to_quoted(prepared->text) + R"(,"token_ids":)" +
      tokens_json(prepared->prompt.tokens) + R"(,"known_tokens":)" +
      std::to_string(prepared->known_tokens()) + R"(,"not_counted":)" +
      (prepared->is_exact() ? "null" : json::to_quoted(gap)) + R"(,"block_size":)" +
      std::to_string(keyed.inquiry.job.block_size) + R"(,"media":)" +
      media_json(*request, *prepared) + R"(,"block_digests":)" +
      digests_json(services_.scheme, keyed) + R"(,"workers":)" + workers_json(explanation) +
      R"(,"choice":)" + choice_json(explanation.entries[explanation.chosen]) + R"(,"reason":)" +
      json::to_quoted(explanation.reason) + "}";
}

void Explain::run(std::string body, admin_port::AdminServer::Respond respond) {
  // The count rises first. Otherwise calls at the same time could exceed the limit together.
  if (running_.fetch_add(1) >= kExplainsMax) {
    --running_;
    services_.metrics.counter(contract::kLimitHitsTotal, {"explains"}).add();
    respond(admin_port::admin_error(
        503, "at most " + std::to_string(kExplainsMax) + " explanations may run at the same time"));
    return;
  }
  // The coroutine outlives this lambda. It gets all values as arguments, which its frame keeps.
  auto task = [](Explain& self, std::string text,
                 admin_port::AdminServer::Respond answer) -> Task<void> {
    auto result = co_await self.explain(std::move(text));
    // The place is free before the client has its answer and may ask again.
    --self.running_;
    answer(response_of(std::move(result)));
  };
  spawn(services_.pool.context(0).get_executor(), task(*this, std::move(body), std::move(respond)));
}

}  // namespace sightline::admin
