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
#include "simulator/api/engine_request.h"
#include "simulator/api/media_input.h"
#include "simulator/api/prompt_input.h"
#include "simulator/api/simulated_model.h"
#include "simulator/cluster/engine.h"
#include "simulator/cluster/simulated_cluster.h"
#include "simulator/faults/answer_writer.h"
#include "simulator/faults/event_faults.h"
#include "simulator/faults/fault_plan.h"

namespace sightline::cluster {

// The settings of an engine's HTTP API.
struct EngineApiOptions {
  std::uint32_t output_tokens_default = 16;
  std::uint64_t processor_cache_bytes = 0;
  // A fixed answer (SimulateSettings::instant).
  bool instant = false;
  // The topic of events.
  std::string topic;
  // The seed for the random part of the ids of answers.
  std::uint64_t id_seed = 0;
  // The number of the engine.
  std::uint32_t engine = 0;
};

// One data-parallel rank of an engine.
struct EngineCore {
  Engine& engine;
  const EventPublisher& publisher;
  faults::EventFaults& event_faults;
};

// The parts of an engine. All must live longer than the API.
struct EngineParts {
  // By rank, at least one.
  std::vector<EngineCore> cores;
  faults::FaultPlan& faults;
  // Ends the engine's process soon, and starts it again after this time.
  std::function<void(std::chrono::milliseconds down)> restart;
};

// The HTTP API of one engine. It has the paths of a vLLM 0.32 server in development mode that
// routers and tests use, and /sim/blocks and /fault.
//
// Not thread-safe: use it on the engine's thread.
class EngineApi {
 public:
  // The clock must live longer.
  EngineApi(const EngineApiOptions& options, std::shared_ptr<const api::EngineModel> model,
            EngineParts parts, const Clock& clock);

  // Answers one request.
  Task<void> handle(const http::Request& request, http::ResponseWriter& writer);

  // Returns the counters of all ranks together.
  [[nodiscard]] EngineCounters counters() const;

 private:
  // A request for tokens, after it was read.
  struct Generation {
    api::RequestFields fields;
    api::AnswerHead head;
    api::AnswerUsage usage;
    std::vector<core::RequestSpec> specs;
    std::size_t rank = 0;
    // The value of the header endpoint-load-metrics. Empty if the client did not request it.
    std::string load;
  };
  // An answer without streaming.
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

  // Waits for the time of a slow probe, if this fault strikes.
  Task<void> answer_later(http::ResponseWriter& writer);
  // Calls the route of a request. Answers 404 or 405 without a route.
  Reply find_and_call(const http::Request& request);
  // The routes. Each answers the path of its name.
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
  // Reads a request for tokens, with the checks and the messages of vLLM.
  Result<Generation> prepare(const http::Request& request, api::AnswerKind kind);
  Result<Done> add_specs(Generation& generation, std::vector<api::PromptInput> prompts) const;
  Task<void> generate(const http::Request& request, faults::AnswerWriter& writer,
                      api::AnswerKind kind);
  // These write the answer of a job. They end early if the client leaves or a fault ends the
  // answer.
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
  // The rank of the last request that named no rank.
  std::size_t last_rank_ = 0;
};

}  // namespace sightline::cluster
