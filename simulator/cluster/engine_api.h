// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/rng.h"
#include "common/http/message.h"
#include "common/http/server.h"
#include "common/runtime/task.h"

#include "simulator/api/answer.h"
#include "simulator/api/media_input.h"
#include "simulator/api/model.h"
#include "simulator/api/prompt_input.h"
#include "simulator/api/request.h"
#include "simulator/cluster/engine.h"
#include "simulator/cluster/simulated_cluster.h"
#include "simulator/faults/answer_writer.h"
#include "simulator/faults/event_faults.h"
#include "simulator/faults/fault_plan.h"

namespace sightline::cluster {

struct EngineApiOptions {
  std::uint32_t output_tokens_default = 16;
  std::uint64_t processor_cache_bytes = 0;
  bool instant = false;       // a fixed answer; see SimulateSettings
  std::string topic;          // of events
  std::uint64_t id_seed = 0;  // of the random part of answers' ids
  std::uint32_t engine = 0;   // its number
};

// One data-parallel rank of an engine.
struct EngineCore {
  Engine& engine;
  const EventPublisher& publisher;
  faults::EventFaults& event_faults;
};

// What an engine's API works on; all of it outlives the API.
struct EngineParts {
  std::vector<EngineCore> cores;  // by rank; at least one
  faults::FaultPlan& faults;
  // Has the engine's process end soon and begin again after that time.
  std::function<void(std::chrono::milliseconds down)> restart;
};

// The HTTP face of one engine: the paths of a vLLM 0.32 server in development mode that a router
// or a test may call, /sim/blocks and /fault. Thread safety: none; on its engine's thread.
class EngineApi {
 public:
  // clock outlives it.
  EngineApi(const EngineApiOptions& options, std::shared_ptr<const api::EngineModel> model,
            EngineParts parts, const Clock& clock);

  Task<void> handle(const http::Request& request, http::ResponseWriter& writer);

  [[nodiscard]] EngineCounters counters() const;

 private:
  // What a request for tokens became.
  struct Generation {
    api::RequestFields fields;
    api::AnswerHead head;
    api::AnswerUsage usage;
    std::vector<core::RequestSpec> specs;
    std::size_t rank = 0;
    std::string load;  // value of the endpoint-load-metrics header; empty = not asked for
  };
  struct Reply {
    int status = 200;
    std::string body;
    std::string content_type = "application/json";
  };
  using Route = Reply (EngineApi::*)(const http::Request&);
  struct RouteEntry {
    std::string_view method;
    std::string_view path;
    Route route;
  };
  static const std::vector<RouteEntry>& routes();

  Task<void> answer_later(http::ResponseWriter& writer);
  Reply find_and_call(const http::Request& request);
  Reply health(const http::Request& request);
  Reply version(const http::Request& request);
  Reply models(const http::Request& request);
  Reply metrics(const http::Request& request);
  Reply load(const http::Request& request);
  Reply event_sources(const http::Request& request);
  Reply tokenize(const http::Request& request);
  Reply reset_prefix_cache(const http::Request& request);
  Reply reset_media_cache(const http::Request& request);
  Reply reset_encoder_cache(const http::Request& request);
  Reply blocks(const http::Request& request);
  Reply list_faults(const http::Request& request);
  Reply add_fault(const http::Request& request);
  Reply end_faults(const http::Request& request);

  Result<api::PromptInput> read_chat(const json::Value& body, std::size_t rank);
  Result<std::size_t> choose_rank(const http::Request& request);
  [[nodiscard]] Error no_such_rank(std::string_view rank) const;
  Result<Generation> prepare(const http::Request& request, api::AnswerKind kind);
  Result<Done> add_specs(Generation& generation, std::vector<api::PromptInput> prompts) const;
  Task<void> generate(const http::Request& request, faults::AnswerWriter& writer,
                      api::AnswerKind kind);
  Task<void> answer_whole(Generation& generation, Job& job, faults::AnswerWriter& writer);
  Task<void> answer_stream(Generation& generation, Job& job, faults::AnswerWriter& writer);
  Task<void> answer_instantly(const http::Request& request, faults::AnswerWriter& writer,
                              api::AnswerKind kind);
  [[nodiscard]] Result<api::RequestFields> read_instant(const http::Request& request) const;
  [[nodiscard]] std::string load_report(const http::Request& request, std::size_t rank) const;
  [[nodiscard]] std::int64_t created_now() const;
  static http::Response to_response(Reply reply);
  static Reply refusal(const Error& error);
  static http::Headers stream_headers();
  api::AnswerHead head_of(const http::Request& request, const api::RequestFields& fields,
                          api::AnswerKind kind);

  const EngineApiOptions options_;
  const std::shared_ptr<const api::EngineModel> model_;
  const EngineParts parts_;
  const Clock& clock_;
  api::ProcessorCache processor_cache_;
  Rng ids_;
  // By rank.
  struct Counts {
    std::uint64_t requests = 0;
    std::uint64_t media_queries = 0;
    std::uint64_t media_hits = 0;
  };
  std::vector<Counts> counts_;
  std::size_t last_rank_ = 0;  // of the last request that named none
};

}  // namespace sightline::cluster
