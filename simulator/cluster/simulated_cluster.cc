// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "simulator/cluster/simulated_cluster.h"

#include <algorithm>
#include <future>
#include <optional>
#include <utility>

#include <asio/post.hpp>
#include <unistd.h>

#include "common/base/bounded_queue.h"
#include "common/base/clock.h"
#include "common/base/line_writer.h"
#include "common/base/log.h"
#include "common/http/server.h"
#include "common/runtime/io_pool.h"
#include "common/runtime/shutdown.h"
#include "common/runtime/worker_thread.h"

#include "simulator/cluster/engine_api.h"
#include "simulator/cluster/simulate.h"

namespace sightline::cluster {
namespace {

// The longest prompt plus answer in instant mode, where nothing depends on it.
constexpr std::uint32_t kInstantModelLength = 1U << 20U;
// How often and how fast a restarted engine tries to bind its ports.
constexpr int kBindTriesMax = 200;
constexpr std::chrono::milliseconds kBindPause{50};

std::uint16_t port_of(std::uint16_t base, std::uint32_t place) {
  return base == 0 ? std::uint16_t{0} : static_cast<std::uint16_t>(base + place);
}

std::string host_in_url(const std::string& host) {
  return host.find(':') == std::string::npos ? host : "[" + host + "]";
}

Result<std::shared_ptr<const api::EngineModel>> model_of(const SimulateSettings& s) {
  if (s.instant) {
    auto model = std::make_shared<api::EngineModel>();
    model->name = s.served_model_name.empty() ? "instant" : s.served_model_name;
    model->path = model->name;
    model->max_model_len = kInstantModelLength;
    return std::shared_ptr<const api::EngineModel>(std::move(model));
  }
  if (s.model_path.empty())
    return client_error(ErrorCode::InvalidArgument,
                        "--model-path is missing: give a model directory");
  return api::load_model({.path = s.model_path,
                          .served_name = s.served_model_name,
                          .max_model_len = s.max_model_len,
                          // One block is vLLM's null block, which holds no tokens.
                          .pool_tokens = std::uint64_t{s.blocks - 1} * s.block_size,
                          .lora_modules = s.lora_modules});
}

EngineOptions engine_options(const SimulateSettings& s, const api::EngineModel& model) {
  return {.scheduler = {.cache = {.block_size = s.block_size,
                                  .blocks = s.blocks,
                                  .drop_last_hit = s.drop_last_hit,
                                  .window_blocks = s.window_blocks},
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

// One data-parallel rank. Its members are destroyed in reverse order.
struct Core {
  std::optional<faults::EventFaults> event_faults;
  std::unique_ptr<EventPublisher> publisher;
  std::unique_ptr<Engine> engine;
};

// One engine and its sockets. Its members are destroyed in reverse order.
struct Unit {
  asio::io_context* context = nullptr;
  EngineAddresses endpoints;
  std::optional<faults::FaultPlan> faults;
  std::vector<std::unique_ptr<Core>> cores;  // by rank
  std::unique_ptr<EngineApi> api;
  std::unique_ptr<http::Server> server;
  EngineApiOptions api_options;
  bool restart_ordered = false;  // only on the engine's thread
};

// An engine whose process must end, and the time until it begins again.
struct RestartOrder {
  std::size_t engine = 0;
  std::chrono::milliseconds down{0};
};

// An engine whose process has ended.
struct DeadEngine {
  std::size_t engine = 0;
  std::uint16_t port = 0;
  Instant begin_at;  // the time of its next try to begin again
  int tries = 0;
};

// Runs work on an I/O thread and waits for its end.
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

std::string EngineAddresses::worker_flag(const std::string& name) const {
  std::string flag = "name=" + name + ",url=" + url;
  if (!events.empty()) flag += ",events=" + events;
  if (!replay.empty()) flag += ",replay=" + replay;
  if (ranks > 1 && !events.empty()) flag += ",dp=" + std::to_string(ranks);
  return flag;
}

struct SimulatedCluster::State {
  explicit State(const SimulateSettings& s) : settings(s) {}
  ~State();
  Result<Done> start();
  Result<Done> start_engine(std::uint32_t index);
  Result<Done> add_faults(Unit& unit, std::uint32_t index);
  Result<Done> start_core(Unit& unit, std::uint32_t index, std::uint32_t rank);
  void tell_endpoints(Unit& unit) const;
  void make_api(std::size_t index);
  Result<Done> listen(std::size_t index, std::uint16_t port);
  static void quiesce(Unit& unit);
  void carry_out_restarts(const std::stop_token& stop);
  DeadEngine end(const RestartOrder& order);
  // Returns true if the engine runs again or never will.
  bool begin_again(DeadEngine& dead);
  Result<Done> reopen(const DeadEngine& dead);
  [[nodiscard]] std::string topic_of(std::uint32_t index) const;

  const SimulateSettings settings;
  std::shared_ptr<const api::EngineModel> model;
  std::vector<std::unique_ptr<IoPool>> pools;  // of one thread each
  std::vector<std::unique_ptr<Unit>> units;
  BoundedQueue<RestartOrder> restarts{kEnginesMax};
  std::optional<WorkerThread> restarter;
};

SimulatedCluster::State::~State() {
  // Restarts end first, because they use the engines and open sockets.
  restarts.close();
  restarter.reset();
  for (const auto& unit : units) quiesce(*unit);
  for (const auto& pool : pools) pool->stop();
  units.clear();
}

// Cuts all connections. Returns when no handler uses the engine any longer.
void SimulatedCluster::State::quiesce(Unit& unit) {
  if (!unit.server) return;
  unit.server->drain(Duration::zero());
  run_there(*unit.context, [&unit] {
    for (const auto& core : unit.cores) core->engine->cancel_all();
  });
  // The handlers end on the engine's thread. The empty task waits until it has run them once more.
  while (unit.server->active_requests() > 0) run_there(*unit.context, [] {});
}

Result<Done> SimulatedCluster::State::start() {
  SL_TRY(validate(settings));
  model = SL_TRY(model_of(settings));
  for (std::uint32_t i = 0; i < std::min(settings.threads, settings.engines); ++i) {
    pools.push_back(std::make_unique<IoPool>(IoPoolOptions{}));
  }
  for (std::uint32_t i = 0; i < settings.engines; ++i) SL_TRY(start_engine(i));
  restarter.emplace("sim-restart", [this](std::stop_token stop) { carry_out_restarts(stop); });
  return Done{};
}

Result<Done> SimulatedCluster::State::start_engine(std::uint32_t index) {
  units.push_back(std::make_unique<Unit>());
  Unit& unit = *units.back();
  IoPool& pool = *pools[index % pools.size()];
  unit.context = &pool.context(0);
  SL_TRY(add_faults(unit, index));
  for (std::uint32_t rank = 0; rank < settings.data_parallel_size; ++rank) {
    SL_TRY(start_core(unit, index, rank));
  }
  unit.api_options = {
      .output_tokens_default = settings.output_tokens_default,
      .processor_cache_bytes =
          static_cast<std::uint64_t>(settings.mm_processor_cache_gb * (1ULL << 30U)),
      .instant = settings.instant,
      .topic = topic_of(index),
      // The ids of answers differ in each run.
      .id_seed =
          static_cast<std::uint64_t>(system_clock().wall().time_since_epoch().count()) + index,
      .engine = index};
  make_api(index);
  tell_endpoints(unit);
  return listen(index, port_of(settings.base_port, index));
}

// If the system chose the ports of several ranks, they do not follow one another. A single endpoint
// cannot represent them then, and a router asks the engine.
void SimulatedCluster::State::tell_endpoints(Unit& unit) const {
  const EventPublisher& first = *unit.cores.front()->publisher;
  const std::string tcp = "tcp://" + host_in_url(settings.host) + ":";
  unit.endpoints.ranks = settings.data_parallel_size;
  const bool is_one = settings.data_parallel_size == 1;
  if (is_one || settings.events_base_port != 0) {
    unit.endpoints.events = tcp + std::to_string(first.events_port());
  }
  if (first.replay_port() != 0 && (is_one || settings.replay_base_port != 0)) {
    unit.endpoints.replay = tcp + std::to_string(first.replay_port());
  }
}

std::string SimulatedCluster::State::topic_of(std::uint32_t index) const {
  const std::uint16_t port = port_of(settings.base_port, index);
  return "kv@" + host_in_url(settings.host) + ":" + std::to_string(port) + "@" + model->name;
}

Result<Done> SimulatedCluster::State::add_faults(Unit& unit, std::uint32_t index) {
  // An index is below kEnginesMax, so each engine and each seed have their own draws.
  unit.faults.emplace(std::uint64_t{settings.fault_seed} * kEnginesMax + index, system_clock());
  for (const std::string& text : settings.faults) {
    const faults::Fault fault = SL_TRY(faults::parse_fault(text));
    if (fault.engine.value_or(index) == index) SL_TRY(unit.faults->add(fault));
  }
  return Done{};
}

Result<Done> SimulatedCluster::State::start_core(Unit& unit, std::uint32_t index,
                                                 std::uint32_t rank) {
  unit.cores.push_back(std::make_unique<Core>());
  Core& core = *unit.cores.back();
  core.event_faults.emplace(*unit.context, *unit.faults, system_clock());
  const std::uint32_t place = index * settings.data_parallel_size + rank;
  auto format = SL_TRY(core::parse_event_format(settings.event_encoding));
  format.byte_hashes = settings.event_hashes == "bytes";
  core.publisher =
      SL_TRY(EventPublisher::create({.host = settings.host,
                                     .events_port = port_of(settings.events_base_port, place),
                                     .with_replay = !settings.no_replay,
                                     .replay_port = port_of(settings.replay_base_port, place),
                                     .topic = topic_of(index),
                                     .rank = rank,
                                     .format = format,
                                     .faults = &*core.event_faults},
                                    system_clock()));
  core.engine = std::make_unique<Engine>(*unit.context, engine_options(settings, *model),
                                         *core.publisher, system_clock());
  return Done{};
}

void SimulatedCluster::State::make_api(std::size_t index) {
  Unit& unit = *units[index];
  const auto order_restart = [this, &unit, index](std::chrono::milliseconds down) {
    // Several requests may order a restart before the process ends. They cause only one.
    if (unit.restart_ordered) return;
    unit.restart_ordered = restarts.push({.engine = index, .down = down});
  };
  EngineParts parts{.cores = {}, .faults = *unit.faults, .restart = order_restart};
  for (const auto& core : unit.cores) {
    parts.cores.push_back({*core->engine, *core->publisher, *core->event_faults});
  }
  unit.api = std::make_unique<EngineApi>(unit.api_options, model, std::move(parts), system_clock());
}

Result<Done> SimulatedCluster::State::listen(std::size_t index, std::uint16_t port) {
  Unit& unit = *units[index];
  IoPool& pool = *pools[index % pools.size()];
  const auto handler = [&unit](http::Request& request, http::ResponseWriter& writer) {
    return unit.api->handle(request, writer);
  };
  http::ServerOptions options{.host = settings.host, .port = port};
  unit.server = SL_TRY(http::Server::create(pool, std::move(options), handler));
  // A restart listens on the same port. Other threads may read the address meanwhile.
  if (unit.endpoints.url.empty()) {
    unit.endpoints.url =
        "http://" + host_in_url(settings.host) + ":" + std::to_string(unit.server->port());
  }
  return Done{};
}

// An engine ends when this is ordered, even if other engines take long to return. A reader of the
// time of a restart expects its effect at that time.
void SimulatedCluster::State::carry_out_restarts(const std::stop_token& stop) {
  std::vector<DeadEngine> dead;
  while (!stop.stop_requested()) {
    const Instant now = system_clock().now();
    Duration wait = std::chrono::hours(1);
    for (const DeadEngine& engine : dead) wait = std::min(wait, engine.begin_at - now);
    if (const auto order = restarts.pop_for(std::max(wait, Duration::zero()))) {
      dead.push_back(end(*order));
    }
    std::erase_if(dead, [&](DeadEngine& engine) { return begin_again(engine); });
  }
}

// Outside it looks like this: connections end and nothing listens. Then the same ports return, with
// nothing cached or counted and with event numbers from 0. Block hashes stay the same.
DeadEngine SimulatedCluster::State::end(const RestartOrder& order) {
  Unit& unit = *units[order.engine];
  // The port may be one that the system chose. The engine must return to it.
  const std::uint16_t port = unit.server->port();
  quiesce(unit);
  run_there(*unit.context, [&] {
    for (const auto& core : unit.cores) {
      core->engine->restart();
      core->event_faults->forget();
    }
    make_api(order.engine);
  });
  unit.server.reset();
  for (const auto& core : unit.cores) core->publisher->close();
  return {.engine = order.engine, .port = port, .begin_at = system_clock().now() + order.down};
}

bool SimulatedCluster::State::begin_again(DeadEngine& dead) {
  if (system_clock().now() < dead.begin_at) return false;
  const Result<Done> begun = reopen(dead);
  // The kernel may give an unused port to an outgoing connection for a while.
  if (!begun.ok() && ++dead.tries < kBindTriesMax) {
    dead.begin_at = system_clock().now() + kBindPause;
    return false;
  }
  if (!begun.ok()) {
    log(LogLevel::Error, "a simulated engine cannot restart",
        {{"engine", dead.engine}, {"error", begun.error().message}});
  }
  Unit& unit = *units[dead.engine];
  run_there(*unit.context, [&unit] { unit.restart_ordered = false; });
  return true;
}

Result<Done> SimulatedCluster::State::reopen(const DeadEngine& dead) {
  for (const auto& core : units[dead.engine]->cores) {
    if (!core->publisher->is_open()) SL_TRY(core->publisher->reopen());
  }
  return listen(dead.engine, dead.port);
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

const EngineAddresses& SimulatedCluster::endpoints(std::size_t engine) const {
  return state_->units[engine]->endpoints;
}

EngineCounters SimulatedCluster::counters(std::size_t engine) const {
  const Unit& unit = *state_->units[engine];
  EngineCounters counters;
  run_there(*unit.context, [&] { counters = unit.api->counters(); });
  return counters;
}

Result<int> run_simulate(const SimulateSettings& settings) {
  // Created before any thread: it blocks the signals in all threads.
  Shutdown shutdown;
  auto cluster = SL_TRY(SimulatedCluster::start(settings));
  LineWriter out({.fd = STDOUT_FILENO, .thread_name = "sl-out"});
  for (std::size_t i = 0; i < cluster->size(); ++i) {
    const std::string flag = cluster->endpoints(i).worker_flag("w" + std::to_string(i));
    out.write("engine " + std::to_string(i) + ": --worker '" + flag + "'\n");
  }
  out.write("ready\n");
  shutdown.on_stop("engines", [&cluster] { cluster.reset(); });
  shutdown.wait();
  return 0;
}

}  // namespace sightline::cluster
