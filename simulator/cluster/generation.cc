// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
// The part of EngineApi that generates tokens.
#include <charconv>
#include <chrono>
#include <optional>
#include <utility>

#include "common/base/bytes.h"
#include "common/base/json.h"

#include "simulator/api/api_error.h"
#include "simulator/cluster/engine_api.h"

namespace sightline::cluster {
namespace {

using api::AnswerKind;
using api::AnswerStream;
using api::PromptInput;
using api::RequestFields;

constexpr std::string_view kInstantWord = " word";

// Stops the engine's work when the handler ends early for any reason.
class JobGuard {
 public:
  JobGuard(Engine& engine, std::shared_ptr<Job> job) : engine_(engine), job_(std::move(job)) {}
  ~JobGuard() { engine_.cancel(job_); }
  JobGuard(const JobGuard&) = delete;
  JobGuard& operator=(const JobGuard&) = delete;

 private:
  Engine& engine_;
  std::shared_ptr<Job> job_;
};

// Adds an output to the usage of its request.
void count(const Job::Output& output, api::AnswerUsage& usage) {
  // The other samples of a prompt find the blocks that the first sample computed. Only the first
  // one shows what the request found in the cache.
  if (usage.completion_tokens++ > 0) return;
  usage.cached_tokens = output.cached_tokens;
  usage.created_tokens = output.created_tokens;
}

}  // namespace

api::AnswerHead EngineApi::head_of(const http::Request& request, const RequestFields& fields,
                                   AnswerKind kind) {
  const auto header = request.headers.find("x-request-id");
  std::string id = header ? std::string(*header) : fields.request_id.value_or("");
  if (id.empty()) id = to_hex(ids_.next());
  return {.kind = kind,
          .id = (kind == AnswerKind::Chat ? "chatcmpl-" : "cmpl-") + id,
          .created = created_now(),
          .model = fields.model,
          .with_token_ids = fields.return_token_ids,
          .prompt_token_ids = {}};
}

// All ranks share the processor cache of their server. Each rank counts the items of its own
// requests.
Result<PromptInput> EngineApi::read_chat(const json::Value& body, std::size_t rank) {
  const std::uint64_t queries = processor_cache_.queries;
  const std::uint64_t hits = processor_cache_.hits;
  auto prompt = api::read_chat_prompt(body, *model_, processor_cache_, clock_.wall());
  counts_[rank].media_queries += processor_cache_.queries - queries;
  counts_[rank].media_hits += processor_cache_.hits - hits;
  return prompt;
}

// Returns the rank that the request names, or the one with the least work. Of several ranks it
// returns the next one.
Result<std::size_t> EngineApi::choose_rank(const http::Request& request) {
  const std::size_t ranks = parts_.cores.size();
  const std::string_view named = request.headers.find("x-data-parallel-rank").value_or("");
  std::int64_t number = 0;
  const auto parsed = std::from_chars(named.data(), named.data() + named.size(), number);
  // Other text than a number is ignored.
  if (parsed.ec != std::errc::invalid_argument && parsed.ptr == named.data() + named.size()) {
    const bool is_rank =
        parsed.ec == std::errc{} && number >= 0 && number < static_cast<std::int64_t>(ranks);
    if (!is_rank) return no_such_rank(named);
    return static_cast<std::size_t>(number);
  }
  const std::size_t begin = last_rank_ + 1;
  std::optional<std::size_t> least;
  for (std::size_t i = 0; i < ranks; ++i) {
    const std::size_t rank = (begin + i) % ranks;
    const core::Scheduler& scheduler = parts_.cores[rank].engine.scheduler();
    // A waiting request counts four times (vLLM, DPLBAsyncMPClient in v1/engine/core_client.py).
    const std::size_t load = 4 * scheduler.waiting() + scheduler.running();
    if (least && load >= *least) continue;
    least = load;
    last_rank_ = rank;
  }
  return last_rank_;
}

Result<EngineApi::Generation> EngineApi::prepare(const http::Request& request, AnswerKind kind) {
  const auto document =
      SL_TRY(api::parse_body(request.body, request.headers.find("content-type").value_or("")));
  const json::Value body = document.root();
  SL_TRY(api::require_field(body, kind == AnswerKind::Chat ? "messages" : "prompt"));
  const std::size_t rank = SL_TRY(choose_rank(request));
  Generation generation{.fields = SL_TRY(api::read_fields(body, *model_)), .head = {}};
  generation.rank = rank;
  if (!generation.fields.session_id) {
    const auto session = request.headers.find("x-session-id");
    if (session) generation.fields.session_id = std::string(*session);
  }
  generation.head = head_of(request, generation.fields, kind);
  generation.load = load_report(request, rank);
  std::vector<PromptInput> prompts;
  if (kind == AnswerKind::Chat) {
    prompts.push_back(SL_TRY(read_chat(body, rank)));
  } else {
    prompts = SL_TRY(api::read_text_prompts(body, *model_));
  }
  SL_TRY(add_specs(generation, std::move(prompts)));
  return generation;
}

Result<Done> EngineApi::add_specs(Generation& generation, std::vector<PromptInput> prompts) const {
  const RequestFields& fields = generation.fields;
  const api::OutputBounds bounds{.max_model_len = model_->max_model_len,
                                 .fallback = options_.output_tokens_default};
  for (PromptInput& prompt : prompts) {
    generation.usage.prompt_tokens += prompt.tokens.size();
    generation.usage.image_tokens += prompt.image_tokens();
    core::RequestSpec spec;
    spec.output_tokens_max = SL_TRY(api::output_tokens_for(prompt.tokens.size(), fields, bounds));
    spec.report_reused = fields.report_reused;
    spec.keys = {.lora = fields.lora,
                 .media = std::move(prompt.media),
                 .cache_salt = fields.cache_salt,
                 .session_id = fields.session_id};
    spec.prompt = std::move(prompt.tokens);
    for (std::uint32_t sample = 0; sample < fields.samples; ++sample) {
      spec.answer_seed = core::answer_seed(spec.prompt, sample);
      generation.specs.push_back(spec);
    }
  }
  if (fields.return_token_ids) generation.head.prompt_token_ids = generation.specs.front().prompt;
  return Done{};
}

std::string EngineApi::load_report(const http::Request& request, std::size_t rank) const {
  const auto format = request.headers.find("endpoint-load-metrics-format");
  const core::Scheduler& scheduler = parts_.cores[rank].engine.scheduler();
  const auto usable = static_cast<double>(scheduler.cache().blocks_usable());
  const std::string used =
      std::to_string((usable - static_cast<double>(scheduler.cache().blocks_free())) / usable);
  const std::string waiting = std::to_string(scheduler.waiting()) + ".0";
  if (format == "TEXT") {
    return "TEXT named_metrics.num_requests_waiting=" + waiting +
           ", named_metrics.kv_cache_usage_perc=" + used;
  }
  if (format != "JSON") return {};
  return "JSON {\"named_metrics\": {\"num_requests_waiting\": " + waiting +
         ", \"kv_cache_usage_perc\": " + used + "}}";
}

Task<void> EngineApi::generate(const http::Request& request, faults::AnswerWriter& writer,
                               AnswerKind kind) {
  Result<Generation> prepared = prepare(request, kind);
  if (!prepared) {
    http::Response response = to_response(refusal(prepared.error()));
    co_await writer.send(std::move(response));
    co_return;
  }
  Generation generation = std::move(prepared).value();
  ++counts_[generation.rank].requests;
  Engine& engine = parts_.cores[generation.rank].engine;
  const std::shared_ptr<Job> job = engine.submit(std::move(generation.specs));
  const JobGuard guard(engine, job);
  // A client that leaves ends the work before the next step.
  writer.on_disconnect([&engine, job] { engine.cancel(job); });
  if (generation.fields.stream) {
    co_await answer_stream(generation, *job, writer);
  } else {
    co_await answer_whole(generation, *job, writer);
  }
}

Task<void> EngineApi::answer_whole(Generation& generation, Job& job, faults::AnswerWriter& writer) {
  std::vector<api::Choice> choices(job.samples());
  for (std::size_t i = 0; i < choices.size(); ++i) choices[i].index = i;
  while (!job.ended()) {
    co_await job.wait();
    for (const Job::Output& output : job.take()) {
      count(output, generation.usage);
      choices[output.sample].text += model_->words->text_of(output.token);
      choices[output.sample].token_ids.push_back(output.token);
    }
  }
  // Nothing is answered, because the client left or the engine restarts.
  if (job.cancelled()) co_return;
  http::Response response =
      to_response({.body = whole_answer(generation.head, choices, generation.usage)});
  if (!generation.load.empty()) response.headers.add("endpoint-load-metrics", generation.load);
  co_await writer.send(std::move(response));
}

Task<void> EngineApi::answer_stream(Generation& generation, Job& job,
                                    faults::AnswerWriter& writer) {
  const AnswerStream stream(generation.head,
                            {.include_usage = generation.fields.include_usage,
                             .continuous_usage = generation.fields.continuous_usage});
  http::Headers headers = stream_headers();
  Result<Done> sent = co_await writer.begin(200, std::move(headers));
  std::vector<bool> opened(job.samples());
  while (sent.ok() && !job.ended()) {
    co_await job.wait();
    std::string events;
    for (const Job::Output& output : job.take()) {
      if (!opened[output.sample]) events += stream.opening(output.sample, generation.usage);
      opened[output.sample] = true;
      count(output, generation.usage);
      events += stream.token({.index = output.sample,
                              .text = model_->words->text_of(output.token),
                              .id = output.token,
                              .last = output.last},
                             generation.usage);
    }
    sent = co_await writer.write(events);
  }
  if (!sent.ok() || job.cancelled()) co_return;
  const std::string closing = stream.closing(generation.usage);
  sent = co_await writer.write(closing);
  if (sent.ok()) co_await writer.finish();
}

http::Headers EngineApi::stream_headers() {
  return {{"server", "uvicorn"},
          {"content-type", "text/event-stream; charset=utf-8"},
          {"vary", "Origin"}};
}

Task<void> EngineApi::answer_instantly(const http::Request& request, faults::AnswerWriter& writer,
                                       AnswerKind kind) {
  const auto fields = read_instant(request);
  if (!fields) {
    http::Response response = to_response(refusal(fields.error()));
    co_await writer.send(std::move(response));
    co_return;
  }
  ++counts_.front().requests;
  const std::size_t tokens = fields->output_tokens.value_or(options_.output_tokens_default);
  const api::AnswerUsage usage{.prompt_tokens = 1, .completion_tokens = tokens};
  api::AnswerHead head = head_of(request, *fields, kind);
  if (!fields->stream) {
    api::Choice choice;
    for (std::size_t i = 0; i < tokens; ++i) choice.text += kInstantWord;
    http::Response response =
        to_response({.body = whole_answer(head, std::span(&choice, 1), usage)});
    co_await writer.send(std::move(response));
    co_return;
  }
  const AnswerStream stream(std::move(head), {.include_usage = fields->include_usage});
  // Every event but the last is the same text. It is made once, because this mode must be cheap.
  const std::string event = stream.token({.text = kInstantWord}, usage);
  const std::string last = stream.token({.text = kInstantWord, .last = true}, usage);
  http::Headers headers = stream_headers();
  Result<Done> sent = co_await writer.begin(200, std::move(headers));
  const std::string opening = stream.opening(0, usage);
  if (sent.ok()) sent = co_await writer.write(opening);
  for (std::size_t i = 0; i < tokens && sent.ok(); ++i) {
    sent = co_await writer.write(i + 1 < tokens ? event : last);
  }
  const std::string closing = stream.closing(usage);
  if (sent.ok()) sent = co_await writer.write(closing);
  if (sent.ok()) co_await writer.finish();
}

Result<RequestFields> EngineApi::read_instant(const http::Request& request) const {
  const auto document =
      SL_TRY(api::parse_body(request.body, request.headers.find("content-type").value_or("")));
  return api::read_fields(document.root(), *model_);
}

}  // namespace sightline::cluster
