// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/simulate/simulated_cluster.h"

#include <algorithm>
#include <cstdio>
#include <future>
#include <utility>

#include <asio/post.hpp>

#include "common/base/clock.h"
#include "common/runtime/io_pool.h"
#include "common/runtime/shutdown.h"

#include "router/http/server.h"
#include "router/simulate/engine_api.h"
#include "router/simulate/simulate.h"

namespace sightline::simulate {
namespace {

// Longest prompt plus answer in instant mode, where nothing depends on it.
constexpr std::uint32_t kInstantModelLength = 1U << 20U;

std::uint16_t port_of(std::uint16_t base, std::uint32_t engine) {
  return base == 0 ? std::uint16_t{0} : static_cast<std::uint16_t>(base + engine);
}

std::string host_in_url(const std::string& host) {
  return host.find(':') == std::string::npos ? host : "[" + host + "]";
}

Result<std::shared_ptr<const simapi::Model>> model_of(const SimulateSettings& s) {
  if (s.instant) {
    auto model = std::make_shared<simapi::Model>();
    model->name = s.served_model_name.empty() ? "instant" : s.served_model_name;
    model->path = model->name;
    model->max_model_len = kInstantModelLength;
    return std::shared_ptr<const simapi::Model>(std::move(model));
  }
  if (s.model_path.empty())
    return client_error(ErrorCode::InvalidArgument,
                        "--model-path is missing: name a model directory");
  return simapi::load_model({.path = s.model_path,
                             .served_name = s.served_model_name,
                             .max_model_len = s.max_model_len,
                             .pool_tokens = std::uint64_t{s.blocks - 1} * s.block_size,
                             .lora_modules = s.lora_modules});
}

EngineOptions engine_options(const SimulateSettings& s, const simapi::Model& model) {
  return {.scheduler = {.cache = {.block_size = s.block_size, .blocks = s.blocks},
                        .running_max = s.max_running,
                        .step_tokens_max = s.max_batched_tokens,
                        .step_prompt_tokens_max = s.max_batched_tokens,
                        .encoder_cache_tokens = s.max_batched_tokens},
          .rates = {.prefill = s.prefill_tokens_per_s,
                    .encoder = s.encoder_tokens_per_s,
                    .decode = s.decode_tokens_per_s},
          .sampler = [words = model.words](std::uint64_t seed, std::size_t position) {
            return words->word(seed, position).token;
          }};
}

// One engine and its sockets; members end in reverse order.
struct Unit {
  asio::io_context* context = nullptr;
  EngineEndpoints endpoints;
  std::unique_ptr<EventPublisher> publisher;
  std::unique_ptr<Engine> engine;
  std::unique_ptr<EngineApi> api;
  std::unique_ptr<http::Server> server;
};

// Runs work on an I/O thread and waits for it.
template <class Work>
void run_there(asio::io_context& context, Work work) {
  std::promise<void> done;
  asio::post(context, [&work, &done] {
    work();
    done.set_value();
  });
  done.get_future().wait();
}

}  // namespace

std::string EngineEndpoints::worker_flag(const std::string& name) const {
  return "name=" + name + ",url=" + url + ",events=" + events + ",replay=" + replay;
}

struct SimulatedCluster::State {
  explicit State(const SimulateSettings& s) : settings(s) {}
  ~State();
  Result<Done> start();
  Result<Done> start_engine(std::uint32_t index);
  Result<Done> listen(Unit& unit, std::uint16_t port);

  const SimulateSettings settings;
  std::shared_ptr<const simapi::Model> model;
  std::vector<std::unique_ptr<IoPool>> pools;  // of one thread each
  std::vector<std::unique_ptr<Unit>> units;
};

SimulatedCluster::State::~State() {
  for (const auto& unit : units) {
    if (!unit->server) continue;
    unit->server->drain(Duration::zero());
    run_there(*unit->context, [&unit] { unit->engine->cancel_all(); });
    // Handlers refer to the engine: each must have returned before it goes.
    while (unit->server->active_requests() > 0) run_there(*unit->context, [] {});
  }
  for (const auto& pool : pools) pool->stop();
  units.clear();
}

Result<Done> SimulatedCluster::State::start() {
  SL_TRY(validate(settings));
  model = SL_TRY(model_of(settings));
  for (std::uint32_t i = 0; i < std::min(settings.threads, settings.engines); ++i) {
    pools.push_back(std::make_unique<IoPool>(IoPoolOptions{}));
  }
  for (std::uint32_t i = 0; i < settings.engines; ++i) SL_TRY(start_engine(i));
  return Done{};
}

Result<Done> SimulatedCluster::State::start_engine(std::uint32_t index) {
  units.push_back(std::make_unique<Unit>());
  Unit& unit = *units.back();
  IoPool& pool = *pools[index % pools.size()];
  unit.context = &pool.context(0);
  const std::string host = host_in_url(settings.host);
  const std::uint16_t port = port_of(settings.base_port, index);
  auto format = SL_TRY(simengine::parse_event_format(settings.event_encoding));
  format.byte_hashes = settings.event_hashes == "bytes";
  const std::string topic = "kv@" + host + ":" + std::to_string(port) + "@" + model->name;
  unit.publisher =
      SL_TRY(EventPublisher::create({.host = settings.host,
                                     .events_port = port_of(settings.events_base_port, index),
                                     .replay_port = port_of(settings.replay_base_port, index),
                                     .topic = topic,
                                     .format = format},
                                    system_clock()));
  unit.engine = std::make_unique<Engine>(*unit.context, engine_options(settings, *model),
                                         *unit.publisher, system_clock());
  const EngineApiOptions api{
      .output_tokens_default = settings.output_tokens_default,
      .processor_cache_bytes =
          static_cast<std::uint64_t>(settings.mm_processor_cache_gb * (1ULL << 30U)),
      .instant = settings.instant,
      .events_port = unit.publisher->events_port(),
      .replay_port = unit.publisher->replay_port(),
      .topic = topic,
      .id_seed =
          static_cast<std::uint64_t>(system_clock().wall().time_since_epoch().count()) + index};
  unit.api = std::make_unique<EngineApi>(api, model, *unit.engine, system_clock());
  const std::string tcp = "tcp://" + host + ":";
  unit.endpoints.events = tcp + std::to_string(unit.publisher->events_port());
  unit.endpoints.replay = tcp + std::to_string(unit.publisher->replay_port());
  return listen(unit, port);
}

Result<Done> SimulatedCluster::State::listen(Unit& unit, std::uint16_t port) {
  const std::size_t index = units.size() - 1;
  IoPool& pool = *pools[index % pools.size()];
  EngineApi& api = *unit.api;
  const auto handler = [&api](http::Request& request, http::ResponseWriter& writer) {
    return api.handle(request, writer);
  };
  http::ServerOptions options{.host = settings.host, .port = port};
  unit.server = SL_TRY(http::Server::create(pool, std::move(options), handler));
  unit.endpoints.url =
      "http://" + host_in_url(settings.host) + ":" + std::to_string(unit.server->port());
  return Done{};
}

Result<std::unique_ptr<SimulatedCluster>> SimulatedCluster::start(
    const SimulateSettings& settings) {
  auto state = std::make_unique<State>(settings);
  SL_TRY(state->start());
  return std::make_unique<SimulatedCluster>(std::move(state));
}

SimulatedCluster::SimulatedCluster(std::unique_ptr<State> state) : state_(std::move(state)) {}
SimulatedCluster::~SimulatedCluster() = default;

std::size_t SimulatedCluster::size() const { return state_->units.size(); }

const EngineEndpoints& SimulatedCluster::endpoints(std::size_t engine) const {
  return state_->units[engine]->endpoints;
}

EngineCounters SimulatedCluster::counters(std::size_t engine) const {
  const Unit& unit = *state_->units[engine];
  EngineCounters counters;
  run_there(*unit.context, [&] { counters = unit.api->counters(); });
  return counters;
}

Result<int> run_simulate(const SimulateSettings& settings) {
  // Before any thread: blocks the signals in all of them.
  Shutdown shutdown;
  auto cluster = SL_TRY(SimulatedCluster::start(settings));
  for (std::size_t i = 0; i < cluster->size(); ++i) {
    const std::string name = "w" + std::to_string(i);
    std::printf("engine %zu: --worker '%s'\n", i, cluster->endpoints(i).worker_flag(name).c_str());
  }
  std::printf("ready\n");
  std::fflush(stdout);
  shutdown.on_stop("engines", [&cluster] { cluster.reset(); });
  shutdown.wait();
  return 0;
}

}  // namespace sightline::simulate
