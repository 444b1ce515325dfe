// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/commands/container_commands.h"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>
#include <utility>

#include "common/base/json.h"

namespace sightline::commands {
namespace {

using agreement::Agreement;
using crd::Backend;

// A rendered flag, and the end of its error message: what to change instead, or why not.
struct Reserved {
  std::string_view flag;
  std::string_view instead;
};

constexpr std::string_view kBlockSize = "and change spec.kv.blockSize";
constexpr std::string_view kEvents = "and change spec.kv.events";
constexpr std::string_view kModel = "and change spec.model";
constexpr std::string_view kPorts = "because host and port are fixed";
constexpr std::string_view kParallelism = "and change parallelism of the template";
constexpr std::string_view kProcessor = "and change spec.multimodal.processor";
constexpr std::string_view kSeed = "and change spec.kv.hashSeed";
// Not rendered, but refused too.
constexpr std::string_view kUntilSplit;
constexpr std::string_view kNothing = "because routers rely on the operator's choice";

// vLLM 0.32: `vllm serve`. --media-io-kwargs turns uuids into digests. Without prefix caching there
// is no cache to route by.
constexpr std::array kVllmReserved = {
    Reserved{"--model", kModel},
    Reserved{"--served-model-name", kModel},
    Reserved{"--revision", kModel},
    Reserved{"--tokenizer", kModel},
    Reserved{"--tokenizer-revision", kModel},
    Reserved{"--chat-template", kModel},
    Reserved{"--max-model-len", kModel},
    Reserved{"--host", kPorts},
    Reserved{"--port", kPorts},
    Reserved{"--uds", kPorts},
    Reserved{"--block-size", kBlockSize},
    Reserved{"--kv-events-config", kEvents},
    Reserved{"--enable-prompt-tokens-details", kNothing},
    Reserved{"--no-enable-prompt-tokens-details", kNothing},
    Reserved{"--enable-prefix-caching", kNothing},
    Reserved{"--no-enable-prefix-caching", kNothing},
    Reserved{"--mm-processor-kwargs", kProcessor},
    Reserved{"--media-io-kwargs", kNothing},
    Reserved{"--tensor-parallel-size", kParallelism},
    Reserved{"-tp", kParallelism},
    Reserved{"--pipeline-parallel-size", kParallelism},
    Reserved{"-pp", kParallelism},
    Reserved{"--data-parallel-size", kParallelism},
    Reserved{"-dp", kParallelism},
    Reserved{"--kv-transfer-config", kUntilSplit},
    Reserved{"--ec-transfer-config", kUntilSplit},
    Reserved{"--config", kNothing},
};

// SGLang 0.5.23: `python3 -m sglang.launch_server`.
constexpr std::array kSglangReserved = {
    Reserved{"--model-path", kModel},
    Reserved{"--model", kModel},
    Reserved{"--served-model-name", kModel},
    Reserved{"--revision", kModel},
    Reserved{"--tokenizer-path", kModel},
    Reserved{"--chat-template", kModel},
    Reserved{"--context-length", kModel},
    Reserved{"--host", kPorts},
    Reserved{"--port", kPorts},
    Reserved{"--page-size", kBlockSize},
    Reserved{"--kv-events-config", kEvents},
    Reserved{"--enable-metrics", kNothing},
    Reserved{"--enable-cache-report", kNothing},
    Reserved{"--disable-radix-cache", kNothing},
    Reserved{"--tensor-parallel-size", kParallelism},
    Reserved{"--tp-size", kParallelism},
    Reserved{"--tp", kParallelism},
    Reserved{"--pipeline-parallel-size", kParallelism},
    Reserved{"--pp-size", kParallelism},
    Reserved{"--data-parallel-size", kParallelism},
    Reserved{"--dp-size", kParallelism},
    Reserved{"--dp", kParallelism},
    Reserved{"--disaggregation-mode", kUntilSplit},
    Reserved{"--config", kNothing},
};

// TensorRT-LLM 1.3: `trtllm-serve`.
constexpr std::array kTrtllmReserved = {
    Reserved{"--host", kPorts},          Reserved{"--port", kPorts},
    Reserved{"--backend", kNothing},     Reserved{"--max_seq_len", kModel},
    Reserved{"--tokenizer", kModel},     Reserved{"--tp_size", kParallelism},
    Reserved{"--pp_size", kParallelism}, Reserved{"--extra_llm_api_options", kNothing},
    Reserved{"--config", kNothing},
};

constexpr std::array kSimulatorReserved = {
    Reserved{"--engines", "and change replicas of the pool"},
    Reserved{"--host", kPorts},
    Reserved{"--base-port", kPorts},
    Reserved{"--events-base-port", kPorts},
    Reserved{"--replay-base-port", kPorts},
    Reserved{"--model-path", kModel},
    Reserved{"--served-model-name", kModel},
    Reserved{"--max-model-len", kModel},
    Reserved{"--block-size", kBlockSize},
    Reserved{"--data-parallel-size", kParallelism},
    Reserved{"--no-replay", kNothing},
    Reserved{"--instant", kNothing},
};

constexpr std::array kReservedEnvironment = {
    Reserved{"PYTHONHASHSEED", kSeed},
};

std::span<const Reserved> reserved_of(Backend backend) {
  switch (backend) {
    case Backend::Vllm:
      return kVllmReserved;
    case Backend::Sglang:
      return kSglangReserved;
    case Backend::Trtllm:
      return kTrtllmReserved;
    case Backend::Simulator:
      return kSimulatorReserved;
  }
  return {};
}

// Python's argparse accepts `_` for `-` in vLLM's flags.
std::string flag_of(std::string_view argument) {
  std::string flag(argument.substr(0, argument.find('=')));
  std::replace(flag.begin(), flag.end(), '_', '-');
  return flag;
}

// Whether an argument sets a reserved flag: by its name, by the beginning of its name (Python's
// argparse accepts abbreviations), or by a member of its JSON (vLLM: --kv-events-config.endpoint).
bool sets(std::string_view flag, std::string_view reserved) {
  if (flag == reserved || flag.starts_with(std::string(reserved) + ".")) return true;
  return flag.starts_with("--") && flag.size() > 2 && reserved.starts_with(flag);
}

std::string endpoint(std::int64_t port) { return "tcp://*:" + std::to_string(port); }

std::string events_config() {
  return R"({"enable_kv_cache_events":true,"publisher":"zmq","endpoint":")" +
         endpoint(kEventsPort) + R"(","replay_endpoint":")" + endpoint(kReplayPort) +
         R"(","topic":""})";
}

// SGLang has no member enable_kv_cache_events.
std::string sglang_events_config() {
  return R"({"publisher":"zmq","endpoint":")" + endpoint(kEventsPort) + R"(","replay_endpoint":")" +
         endpoint(kReplayPort) + R"(","topic":""})";
}

std::string processor_json(const Agreement& agreement) {
  std::string out = "{";
  for (const auto& [name, value] : agreement.processor) {
    out += (out.size() > 1 ? "," : "") + json::to_quoted(name) + ":" + std::to_string(value);
  }
  return out + "}";
}

class Arguments {
 public:
  void add(std::string flag) { args_.push_back(std::move(flag)); }
  void add(std::string flag, std::string value) {
    args_.push_back(std::move(flag));
    args_.push_back(std::move(value));
  }
  void add(std::string flag, std::int64_t value) { add(std::move(flag), std::to_string(value)); }
  std::vector<std::string> take(const std::vector<std::string>& own) {
    args_.insert(args_.end(), own.begin(), own.end());
    return std::move(args_);
  }

 private:
  std::vector<std::string> args_;
};

struct Worker {
  const Agreement& agreement;
  const crd::Spec& spec;
  const crd::Pool& pool;
  const Places& places;
  const crd::WorkerTemplate& own;
};

void add_ranks(Arguments& args, const Worker& worker) {
  const crd::Parallelism& parallelism = worker.own.parallelism;
  if (parallelism.tensor > 1) args.add("--tensor-parallel-size", parallelism.tensor);
  if (parallelism.pipeline > 1) args.add("--pipeline-parallel-size", parallelism.pipeline);
  if (parallelism.data > 1) args.add("--data-parallel-size", parallelism.data);
}

std::map<std::string, std::string> seed_of(const Agreement& agreement) {
  if (agreement.hash_seed.empty()) return {};
  return {{"PYTHONHASHSEED", agreement.hash_seed}};
}

ContainerCommand vllm(const Worker& worker) {
  const Agreement& agreement = worker.agreement;
  Arguments args;
  args.add(worker.places.model);
  args.add("--served-model-name", agreement.model_name);
  args.add("--host", worker.places.host);
  args.add("--port", kEnginePort);
  args.add("--block-size", agreement.block_size);
  args.add("--enable-prefix-caching");
  args.add("--enable-prompt-tokens-details");
  if (agreement.events == crd::EventsMode::Exact) args.add("--kv-events-config", events_config());
  if (worker.spec.model.max_model_len) {
    args.add("--max-model-len", *worker.spec.model.max_model_len);
  }
  if (!worker.places.chat_template.empty()) {
    args.add("--chat-template", worker.places.chat_template);
  }
  if (!agreement.processor.empty()) args.add("--mm-processor-kwargs", processor_json(agreement));
  add_ranks(args, worker);
  return {
      .command = {"vllm", "serve"}, .args = args.take(worker.own.args), .env = seed_of(agreement)};
}

ContainerCommand sglang(const Worker& worker) {
  const Agreement& agreement = worker.agreement;
  Arguments args;
  args.add("--model-path", worker.places.model);
  args.add("--served-model-name", agreement.model_name);
  args.add("--host", worker.places.host);
  args.add("--port", kEnginePort);
  args.add("--page-size", agreement.block_size);
  args.add("--enable-metrics");
  args.add("--enable-cache-report");
  if (agreement.events == crd::EventsMode::Exact) {
    args.add("--kv-events-config", sglang_events_config());
  }
  if (worker.spec.model.max_model_len) {
    args.add("--context-length", *worker.spec.model.max_model_len);
  }
  if (!worker.places.chat_template.empty()) {
    args.add("--chat-template", worker.places.chat_template);
  }
  add_ranks(args, worker);
  return {.command = {"python3", "-m", "sglang.launch_server"},
          .args = args.take(worker.own.args),
          .env = seed_of(agreement)};
}

ContainerCommand trtllm(const Worker& worker) {
  Arguments args;
  args.add(worker.places.model);
  args.add("--host", worker.places.host);
  args.add("--port", kEnginePort);
  args.add("--backend", "pytorch");
  if (worker.spec.model.max_model_len) args.add("--max_seq_len", *worker.spec.model.max_model_len);
  const crd::Parallelism& parallelism = worker.own.parallelism;
  if (parallelism.tensor > 1) args.add("--tp_size", parallelism.tensor);
  if (parallelism.pipeline > 1) args.add("--pp_size", parallelism.pipeline);
  return {.command = {"trtllm-serve"}, .args = args.take(worker.own.args), .env = {}};
}

ContainerCommand simulator(const Worker& worker) {
  const Agreement& agreement = worker.agreement;
  Arguments args;
  args.add("simulate");
  args.add("--engines", 1);
  args.add("--host", worker.places.host);
  args.add("--base-port", kEnginePort);
  args.add("--events-base-port", kEventsPort);
  args.add("--replay-base-port", kReplayPort);
  args.add("--model-path", worker.places.model);
  args.add("--served-model-name", agreement.model_name);
  args.add("--block-size", agreement.block_size);
  if (worker.spec.model.max_model_len) {
    args.add("--max-model-len", *worker.spec.model.max_model_len);
  }
  if (worker.own.parallelism.data > 1) {
    args.add("--data-parallel-size", worker.own.parallelism.data);
  }
  return {.command = {"sightline"}, .args = args.take(worker.own.args), .env = {}};
}

}  // namespace

ContainerCommand worker_command(const Agreement& agreement, const crd::Spec& spec,
                                const crd::Pool& pool, const Places& places) {
  const Worker worker{agreement, spec, pool, places, pool.worker_template.value()};
  switch (pool.backend) {
    case Backend::Vllm:
      return vllm(worker);
    case Backend::Sglang:
      return sglang(worker);
    case Backend::Trtllm:
      return trtllm(worker);
    case Backend::Simulator:
      return simulator(worker);
  }
  return {};
}

Result<Done> check_own_arguments(const crd::Pool& pool) {
  if (!pool.worker_template) return Done{};
  const auto refuse = [](const std::string& given, std::string_view instead, std::string field) {
    if (instead.empty()) {
      return client_error(ErrorCode::InvalidArgument,
                          given +
                              " is refused, because prefill and decode on different workers are "
                              "not supported yet. Routers send whole requests to one worker and do "
                              "not see blocks from other workers. Remove it",
                          std::move(field));
    }
    return client_error(ErrorCode::InvalidArgument,
                        given + " is refused: remove it, " + std::string(instead),
                        std::move(field));
  };
  const auto& args = pool.worker_template->args;
  for (std::size_t i = 0; i < args.size(); ++i) {
    // A word without a dash is the value of a flag.
    if (!args[i].starts_with("-")) continue;
    const std::string flag = flag_of(args[i]);
    for (const Reserved& reserved : reserved_of(pool.backend)) {
      if (!sets(flag, flag_of(reserved.flag))) continue;
      return refuse(flag, reserved.instead, "args[" + std::to_string(i) + "]");
    }
  }
  const auto& env = pool.worker_template->env;
  for (std::size_t i = 0; i < env.size(); ++i) {
    for (const Reserved& reserved : kReservedEnvironment) {
      if (env[i].name != reserved.flag) continue;
      return refuse(env[i].name, reserved.instead, "env[" + std::to_string(i) + "].name");
    }
  }
  return Done{};
}

}  // namespace sightline::commands
