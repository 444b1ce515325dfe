// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/simulate/engine_api.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "common/base/bytes.h"
#include "common/base/json.h"

#include "router/simapi/api_error.h"
#include "router/simulate/metrics_text.h"

namespace sightline::simulate {
namespace {

using simapi::AnswerKind;

constexpr std::string_view kChatPath = "/v1/chat/completions";
constexpr std::string_view kCompletionPath = "/v1/completions";

std::int64_t unix_seconds(WallTime time) {
  return std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count();
}

}  // namespace

EngineApi::EngineApi(const EngineApiOptions& options, std::shared_ptr<const simapi::Model> model,
                     Engine& engine, const Clock& clock)
    : options_(options),
      model_(std::move(model)),
      engine_(engine),
      clock_(clock),
      processor_cache_(options.processor_cache_bytes),
      ids_(options.id_seed),
      started_s_(unix_seconds(clock.wall())) {}

Task<void> EngineApi::handle(const http::Request& request, http::ResponseWriter& writer) {
  const bool post = request.method == "POST";
  const std::string_view path = request.path();
  if (post && (path == kChatPath || path == kCompletionPath)) {
    const auto kind = path == kChatPath ? AnswerKind::Chat : AnswerKind::Completion;
    if (options_.instant) {
      co_await answer_instantly(request, writer, kind);
    } else {
      co_await generate(request, writer, kind);
    }
    co_return;
  }
  Reply reply = find_and_call(request);
  http::Response response = to_response(std::move(reply));
  co_await writer.send(std::move(response));
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
  return {.status = simapi::status_of(error), .body = simapi::body_of(error)};
}

EngineCounters EngineApi::counters() const {
  const simengine::Scheduler& scheduler = engine_.scheduler();
  const simengine::SchedulerCounters& from = scheduler.counters();
  return {.requests = requests_,
          .prompt_tokens = from.prompt_tokens,
          .cached_tokens = from.cached_tokens,
          .prefill_tokens = from.prefill_tokens,
          .encoder_tokens = from.encoder_tokens,
          .generated_tokens = from.generated_tokens,
          .finished = from.finished,
          .aborted = from.aborted,
          .running = scheduler.running(),
          .waiting = scheduler.waiting(),
          .blocks_cached = scheduler.cache().distinct_cached()};
}

const std::vector<EngineApi::RouteEntry>& EngineApi::routes() {
  static const std::vector<RouteEntry> table{
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
      {"GET", "/sim/blocks", &EngineApi::blocks},
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
  const std::string created = std::to_string(started_s_);
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
  return {.body = metrics_text({.model_name = model_->name,
                                .requests_accepted = requests_,
                                .engine = &engine_,
                                .processor_cache = &processor_cache_}),
          .content_type = std::string(kMetricsContentType)};
}

EngineApi::Reply EngineApi::event_sources(const http::Request&) {
  if (options_.instant) return {.body = "{}"};
  return {.body =
              "{\"0\":{\"enable_kv_cache_events\":true,\"publisher\":\"zmq\",\"endpoint\":"
              "\"tcp://*:" +
              std::to_string(options_.events_port) +
              "\",\"replay_endpoint\":\"tcp://*:" + std::to_string(options_.replay_port) +
              "\",\"buffer_steps\":10000,\"hwm\":100000,\"max_queue_size\":100000,\"topic\":" +
              json::to_quoted(options_.topic) + "}}"};
}

EngineApi::Reply EngineApi::tokenize(const http::Request& request) {
  const auto tokens = [&]() -> Result<std::vector<TokenId>> {
    const auto document =
        SL_TRY(simapi::parse_body(request.body, request.headers.find("content-type").value_or("")));
    const json::Value body = document.root();
    if (body.find("messages")) {
      return SL_TRY(simapi::read_chat_prompt(body, *model_, processor_cache_, clock_.wall()))
          .tokens;
    }
    return SL_TRY(simapi::read_text_prompts(body, *model_)).front().tokens;
  }();
  if (!tokens) return refusal(tokens.error());
  std::string list;
  for (const TokenId token : *tokens) list += (list.empty() ? "" : ",") + std::to_string(token);
  return {.body = "{\"count\":" + std::to_string(tokens->size()) +
                  ",\"max_model_len\":" + std::to_string(model_->max_model_len) + ",\"tokens\":[" +
                  list + "],\"token_strs\":null}"};
}

EngineApi::Reply EngineApi::reset_prefix_cache(const http::Request&) {
  return {.body = engine_.scheduler().reset_prefix_cache() ? R"({"success":true})"
                                                           : R"({"success":false})"};
}

EngineApi::Reply EngineApi::reset_media_cache(const http::Request&) {
  processor_cache_.items.clear();
  return {};
}

EngineApi::Reply EngineApi::reset_encoder_cache(const http::Request&) {
  engine_.scheduler().reset_encoder_cache();
  return {};
}

EngineApi::Reply EngineApi::blocks(const http::Request&) {
  const simengine::PrefixCache& cache = engine_.scheduler().cache();
  std::string list;
  for (const auto& cached : cache.cached()) {
    list += (list.empty() ? "" : ",");
    list += "{\"hash\":\"" + to_hex(cached.hash) + "\",\"event_hash\":\"" +
            std::to_string(simengine::event_integer(cached.hash)) +
            "\",\"tokens\":" + std::to_string(cache.block_size()) +
            ",\"copies\":" + std::to_string(cached.copies) + "}";
  }
  return {.body = "{\"block_size\":" + std::to_string(cache.block_size()) + ",\"blocks\":[" + list +
                  "]}"};
}

}  // namespace sightline::simulate
