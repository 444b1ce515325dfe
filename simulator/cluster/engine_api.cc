// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "simulator/cluster/engine_api.h"

#include <charconv>
#include <chrono>
#include <optional>
#include <utility>

#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <asio/this_coro.hpp>

#include "common/base/bytes.h"
#include "common/base/json.h"

#include "simulator/api/api_error.h"
#include "simulator/cluster/metrics_text.h"

namespace sightline::cluster {
namespace {

using api::AnswerKind;
using faults::FaultKind;

constexpr std::string_view kChatPath = "/v1/chat/completions";
constexpr std::string_view kCompletionPath = "/v1/completions";
constexpr std::string_view kBlocksPath = "/sim/blocks";
constexpr std::string_view kFaultPath = "/fault";

std::int64_t unix_seconds(WallTime time) {
  return std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count();
}

std::string number_or_null(const std::optional<std::uint64_t>& number) {
  return number ? std::to_string(*number) : "null";
}

// Returns the number after `name` at the beginning of a query.
std::optional<std::uint64_t> number_in(std::string_view query, std::string_view name) {
  std::uint64_t number = 0;
  if (!query.starts_with(name)) return std::nullopt;
  std::from_chars(query.data() + name.size(), query.data() + query.size(), number);
  return number;
}

std::string text_or_null(const std::optional<std::string>& text) {
  return text ? json::to_quoted(*text) : "null";
}

std::string block_json(const core::PrefixCache::Cached& cached) {
  const core::PrefixCache::Content& content = *cached.content;
  std::string tokens;
  for (const TokenId token : content.tokens) {
    tokens += (tokens.empty() ? "" : ",") + std::to_string(token);
  }
  std::string media;
  for (const auto& item : content.extra_keys.media) {
    media += (media.empty() ? "[" : ",[") + json::to_quoted(item.identifier) + "," +
             std::to_string(item.offset) + "]";
  }
  const std::string parent = content.parent ? "\"" + to_hex(*content.parent) + "\"" : "null";
  return "{\"hash\":\"" + to_hex(cached.hash) + "\",\"event_hash\":\"" +
         std::to_string(core::event_integer(cached.hash)) + "\",\"parent\":" + parent +
         ",\"copies\":" + std::to_string(cached.copies) + ",\"tokens\":[" + tokens +
         "],\"media\":[" + media + "],\"lora\":" + text_or_null(content.extra_keys.lora_name) +
         ",\"cache_salt\":" + text_or_null(content.extra_keys.cache_salt) + "}";
}

}  // namespace

EngineApi::EngineApi(const EngineApiOptions& options, std::shared_ptr<const api::EngineModel> model,
                     EngineParts parts, const Clock& clock)
    : options_(options),
      model_(std::move(model)),
      parts_(std::move(parts)),
      clock_(clock),
      processor_cache_(options.processor_cache_bytes),
      ids_(options.id_seed),
      counts_(parts_.cores.size()),
      // The first request that names no rank goes to rank 0.
      last_rank_(parts_.cores.size() - 1) {}

Task<void> EngineApi::handle(const http::Request& request, http::ResponseWriter& writer) {
  const bool post = request.method == "POST";
  const std::string_view path = request.path();
  if (post && (path == kChatPath || path == kCompletionPath)) {
    const auto kind = path == kChatPath ? AnswerKind::Chat : AnswerKind::Completion;
    const std::string id(request.headers.find("x-request-id").value_or(""));
    const faults::FaultTarget occasion{.request = id, .sequence = std::nullopt};
    // A restart is drawn first, because it ends the process for all other faults.
    const auto restart = parts_.faults.draw(FaultKind::Restart, occasion);
    if (restart) {
      parts_.restart(restart->duration);
      writer.abort();  // the process that had the request has ended
      co_return;
    }
    if (parts_.faults.draw(FaultKind::Forget, occasion)) {
      for (const EngineCore& core : parts_.cores) core.engine.scheduler().forget_prefix_cache();
    }
    faults::AnswerWriter answer(writer, parts_.faults, id);
    const bool done = co_await answer.answered_by_fault();
    if (done) co_return;
    if (options_.instant) {
      co_await answer_instantly(request, answer, kind);
    } else {
      co_await generate(request, answer, kind);
    }
    co_return;
  }
  const bool is_probe = request.method == "GET" && path != kFaultPath && path != kBlocksPath;
  if (is_probe) co_await answer_later(writer);
  if (writer.cut_off()) co_return writer.abort();  // the process that had the request has ended
  Reply reply = find_and_call(request);
  http::Response response = to_response(std::move(reply));
  co_await writer.send(std::move(response));
}

// A busy engine answers probes late. Requests for /fault and /sim/blocks are not delayed. The delay
// ends with the connection, so the restart of an engine does not wait for it.
Task<void> EngineApi::answer_later(http::ResponseWriter& writer) {
  const auto slow = parts_.faults.draw(FaultKind::SlowProbe, {});
  if (!slow) co_return;
  const auto executor = co_await asio::this_coro::executor;
  const auto over = std::make_shared<Gate>();
  writer.on_disconnect([over, executor] { asio::post(executor, [over] { over->open(); }); });
  asio::steady_timer timer(executor, slow->duration);
  timer.async_wait([over](const auto&) { over->open(); });
  co_await over->wait();
}

http::Response EngineApi::to_response(Reply reply) {
  http::Response response{.status = reply.status, .headers = {{"server", "uvicorn"}}, .body = {}};
  if (!reply.body.empty()) response.headers.add("content-type", reply.content_type);
  response.headers.add("vary", "Origin");
  response.body = std::move(reply.body);
  return response;
}

std::int64_t EngineApi::created_now() const { return unix_seconds(clock_.wall()); }

EngineApi::Reply EngineApi::refusal(const Error& error) {
  return {.status = api::status_of(error), .body = api::body_of(error)};
}

Error EngineApi::no_such_rank(std::string_view rank) const {
  return client_error(ErrorCode::InvalidArgument, "data_parallel_rank " + std::string(rank) +
                                                      " is out of range [0, " +
                                                      std::to_string(parts_.cores.size()) + ").");
}

EngineCounters EngineApi::counters() const {
  EngineCounters sum;
  for (const Counts& counts : counts_) sum.requests += counts.requests;
  for (const EngineCore& core : parts_.cores) {
    const core::Scheduler& scheduler = core.engine.scheduler();
    const core::SchedulerCounters& from = scheduler.counters();
    sum.prompt_tokens += from.prompt_tokens;
    sum.cached_tokens += from.cached_tokens;
    sum.prefill_tokens += from.prefill_tokens;
    sum.encoder_tokens += from.encoder_tokens;
    sum.generated_tokens += from.generated_tokens;
    sum.finished += from.finished;
    sum.aborted += from.aborted;
    sum.running += scheduler.running();
    sum.waiting += scheduler.waiting();
    sum.blocks_cached += scheduler.cache().distinct_cached();
  }
  return sum;
}

const std::vector<EngineApi::RouteEntry>& EngineApi::routes() {
  static const std::vector<RouteEntry> table{
      // handle() answers these two. The table has them for the 405 of other methods.
      {"POST", kChatPath, nullptr},
      {"POST", kCompletionPath, nullptr},
      {"GET", "/health", &EngineApi::health},
      {"GET", "/ping", &EngineApi::health},
      {"POST", "/ping", &EngineApi::health},
      {"GET", "/version", &EngineApi::version},
      {"GET", "/v1/models", &EngineApi::models},
      {"GET", "/metrics", &EngineApi::metrics},
      {"GET", "/load", &EngineApi::load},
      {"GET", "/kv_event_sources", &EngineApi::event_sources},
      {"POST", "/tokenize", &EngineApi::tokenize},
      {"POST", "/reset_prefix_cache", &EngineApi::reset_prefix_cache},
      {"POST", "/reset_mm_cache", &EngineApi::reset_media_cache},
      {"POST", "/reset_encoder_cache", &EngineApi::reset_encoder_cache},
      {"GET", kBlocksPath, &EngineApi::blocks},
      {"GET", kFaultPath, &EngineApi::list_faults},
      {"POST", kFaultPath, &EngineApi::add_fault},
      {"DELETE", kFaultPath, &EngineApi::end_faults},
  };
  return table;
}

EngineApi::Reply EngineApi::find_and_call(const http::Request& request) {
  bool known = false;
  for (const RouteEntry& entry : routes()) {
    if (entry.path != request.path()) continue;
    if (entry.method == request.method) return (this->*entry.route)(request);
    known = true;
  }
  if (known) return {.status = 405, .body = R"({"detail":"Method Not Allowed"})"};
  return {.status = 404, .body = R"({"detail":"Not Found"})"};
}

EngineApi::Reply EngineApi::health(const http::Request&) { return {}; }

EngineApi::Reply EngineApi::version(const http::Request&) {
  return {.body = R"({"version":"0.32.0"})"};
}

EngineApi::Reply EngineApi::load(const http::Request&) { return {.body = R"({"server_load":0})"}; }

EngineApi::Reply EngineApi::models(const http::Request&) {
  const std::string created = std::to_string(created_now());
  const auto entry = [&](const std::string& name, const std::string& parent_and_length) {
    return "{\"id\":" + json::to_quoted(name) + ",\"object\":\"model\",\"created\":" + created +
           ",\"owned_by\":\"vllm\",\"root\":" + json::to_quoted(model_->path) + "," +
           parent_and_length + ",\"permission\":[{\"id\":\"modelperm-" + to_hex(ids_.next()) +
           "\",\"object\":\"model_permission\",\"created\":" + created +
           ",\"allow_create_engine\":false,\"allow_sampling\":true,\"allow_logprobs\":true,"
           "\"allow_search_indices\":false,\"allow_view\":true,\"allow_fine_tuning\":false,"
           "\"organization\":\"*\",\"group\":null,\"is_blocking\":false}]}";
  };
  std::string list = entry(
      model_->name, "\"parent\":null,\"max_model_len\":" + std::to_string(model_->max_model_len));
  for (const std::string& adapter : model_->lora_modules) {
    list += "," + entry(adapter,
                        "\"parent\":" + json::to_quoted(model_->name) + ",\"max_model_len\":null");
  }
  return {.body = "{\"object\":\"list\",\"data\":[" + list + "]}"};
}

EngineApi::Reply EngineApi::metrics(const http::Request&) {
  MetricsSource source{.model_name = model_->name, .ranks = {}, .faults = &parts_.faults};
  for (std::size_t rank = 0; rank < counts_.size(); ++rank) {
    source.ranks.push_back({.engine = &parts_.cores[rank].engine,
                            .requests_accepted = counts_[rank].requests,
                            .media_queries = counts_[rank].media_queries,
                            .media_hits = counts_[rank].media_hits});
  }
  return {.body = metrics_text(source), .content_type = std::string(kMetricsContentType)};
}

EngineApi::Reply EngineApi::event_sources(const http::Request&) {
  // Instant mode has no events.
  if (options_.instant) return {.body = "{}"};
  std::string ranks;
  for (std::size_t rank = 0; rank < parts_.cores.size(); ++rank) {
    const EventPublisher& publisher = parts_.cores[rank].publisher;
    const std::string replay = publisher.replay_port() == 0
                                   ? "null"
                                   : "\"tcp://*:" + std::to_string(publisher.replay_port()) + "\"";
    ranks += (ranks.empty() ? "\"" : ",\"") + std::to_string(rank) +
             "\":{\"enable_kv_cache_events\":true,\"publisher\":\"zmq\",\"endpoint\":"
             "\"tcp://*:" +
             std::to_string(publisher.events_port()) + "\",\"replay_endpoint\":" + replay +
             ",\"buffer_steps\":10000,\"hwm\":100000,\"max_queue_size\":100000,\"topic\":" +
             json::to_quoted(options_.topic) + "}";
  }
  return {.body = "{" + ranks + "}"};
}

EngineApi::Reply EngineApi::tokenize(const http::Request& request) {
  const auto tokens = [&]() -> Result<std::vector<TokenId>> {
    const auto document =
        SL_TRY(api::parse_body(request.body, request.headers.find("content-type").value_or("")));
    const json::Value body = document.root();
    if (body.find("messages")) return SL_TRY(read_chat(body, 0)).tokens;
    return SL_TRY(api::read_text_prompts(body, *model_)).front().tokens;
  }();
  if (!tokens) return refusal(tokens.error());
  std::string list;
  for (const TokenId token : *tokens) list += (list.empty() ? "" : ",") + std::to_string(token);
  return {.body = "{\"count\":" + std::to_string(tokens->size()) +
                  ",\"max_model_len\":" + std::to_string(model_->max_model_len) + ",\"tokens\":[" +
                  list + "],\"token_strs\":null}"};
}

EngineApi::Reply EngineApi::reset_prefix_cache(const http::Request&) {
  bool all = true;
  for (const EngineCore& core : parts_.cores) {
    // The call comes first. Each rank is reset, even after another one refused.
    all = core.engine.scheduler().reset_prefix_cache() && all;
  }
  return {.body = all ? R"({"success":true})" : R"({"success":false})"};
}

EngineApi::Reply EngineApi::reset_media_cache(const http::Request&) {
  processor_cache_.items.clear();
  return {};
}

EngineApi::Reply EngineApi::reset_encoder_cache(const http::Request&) {
  for (const EngineCore& core : parts_.cores) core.engine.scheduler().reset_encoder_cache();
  return {};
}

EngineApi::Reply EngineApi::blocks(const http::Request& request) {
  const auto rank = number_in(request.query(), "rank=").value_or(0);
  if (rank >= parts_.cores.size()) return refusal(no_such_rank(std::to_string(rank)));
  const EngineCore& core = parts_.cores[rank];
  const core::PrefixCache& cache = core.engine.scheduler().cache();
  std::string list;
  for (const auto& cached : cache.cached()) {
    list += (list.empty() ? "" : ",");
    list += block_json(cached);
  }
  return {.body = "{\"life\":" + std::to_string(core.engine.life()) +
                  ",\"sequence\":" + number_or_null(core.publisher.last_sequence()) +
                  ",\"delivered\":" + number_or_null(core.event_faults.delivered()) +
                  ",\"pending_events\":" + std::to_string(cache.pending_events()) +
                  ",\"block_size\":" + std::to_string(cache.block_size()) + ",\"blocks\":[" + list +
                  "]}"};
}

EngineApi::Reply EngineApi::list_faults(const http::Request& request) {
  return {.body = parts_.faults.to_json(number_in(request.query(), "since=").value_or(0))};
}

EngineApi::Reply EngineApi::add_fault(const http::Request& request) {
  const auto added = [&]() -> Result<Done> {
    const auto document = SL_TRY(json::Document::parse(request.body));
    const faults::Fault fault = SL_TRY(faults::read_fault(document.root()));
    if (fault.engine && *fault.engine != options_.engine) {
      return client_error(ErrorCode::InvalidArgument,
                          "fault: this is engine " + std::to_string(options_.engine) +
                              ". Omit engine, or use the port of the other engine");
    }
    // Without a probability the restart happens immediately and once.
    if (fault.kind != FaultKind::Restart || fault.probability) return parts_.faults.add(fault);
    parts_.faults.note(fault.kind, {});
    parts_.restart(fault.duration);
    return Done{};
  }();
  if (!added.ok()) return refusal(added.error());
  // No strike has this number, so the answer lists only the faults.
  return {.body = parts_.faults.to_json(UINT64_MAX)};
}

EngineApi::Reply EngineApi::end_faults(const http::Request&) {
  parts_.faults.end_all();
  // Held messages are sent, because the faults that held them have ended.
  for (const EngineCore& core : parts_.cores) core.event_faults.flush();
  return {.body = parts_.faults.to_json(UINT64_MAX)};
}

}  // namespace sightline::cluster
