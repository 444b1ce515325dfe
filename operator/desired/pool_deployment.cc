// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/desired/pool_deployment.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "operator/commands/container_commands.h"
#include "operator/crd/words.h"
#include "operator/desired/model_files.h"
#include "operator/desired/pods.h"
#include "operator/desired/program_settings.h"
#include "operator/desired/programs.h"
#include "operator/desired/secrets.h"

namespace sightline::desired {

using object::Value;

namespace {

// Besides the time for running requests.
constexpr std::int64_t kGraceSeconds = 15;
constexpr std::int64_t kStartupPeriodSeconds = 10;

// Sends a POST with the token, as `sightline drain` does. For images that have Python but no
// sightline: those of vLLM, SGLang and TensorRT-LLM. It ignores a proxy of the environment.
constexpr char kDrainScript[] =
    "import sys, urllib.request as r; url, file = sys.argv[1:]; "
    "r.build_opener(r.ProxyHandler({})).open(r.Request(url, method='POST', headers="
    "{'Authorization': 'Bearer ' + open(file).read().split()[0]})).read()";

std::string drain_token() { return std::string(kDrainPath) + "/" + std::string(kDrainToken); }

std::vector<std::string> drain_command(const RenderInput& input, crd::Backend backend) {
  const std::string seconds = std::to_string(drain_seconds(input.spec));
  if (backend == crd::Backend::Simulator) {
    return {"sightline", "drain", "--token-file", drain_token(), "--timeout", seconds + "s"};
  }
  const std::string agent = "http://127.0.0.1:" + std::to_string(kAdminPort);
  return {"python3", "-c", kDrainScript, agent + "/drain?timeout=" + seconds, drain_token()};
}

// An agent's worker has the name of the pod, as in the routers' lists.
//
// On :: vLLM also answers IPv4. SGLang does not: asyncio and uvloop set IPV6_V6ONLY on a socket
// that they bind themselves. Both bind "tcp://*" for their events without ZMQ_IPV6, so only on
// IPv4.
Value agent_container(const RenderInput& input, const crd::Pool& pool) {
  const bool is_sglang = pool.backend == crd::Backend::Sglang;
  const bool is_ipv6_only = is_sglang && input.is_ipv6;
  std::string worker = "name=$(SIGHTLINE_REPLICA_NAME),url=http://" +
                       std::string(is_ipv6_only ? "[::1]:" : "127.0.0.1:") +
                       std::to_string(commands::kEnginePort);
  if (is_sglang) worker += ",family=sglang";
  if (is_ipv6_only && input.agreement.events == crd::EventsMode::Exact) {
    worker += ",events=tcp://127.0.0.1:" + std::to_string(commands::kEventsPort) +
              ",replay=tcp://127.0.0.1:" + std::to_string(commands::kReplayPort);
  }
  Value agent = agent_program(input, {"--worker", worker});
  // A variable, because agents of an older image ignore unknown variables but refuse unknown flags.
  set_env(agent, "SIGHTLINE_ADMIN_TOKEN_FILE", drain_token());
  // The engine starts when the agent is there to drain it. Otherwise its preStop hook could be
  // refused immediately, and SIGTERM would come before the engine handles it.
  agent.member("startupProbe") =
      probe_of({.path = "/healthz", .port = "admin", .period_seconds = 1, .failures = 60});
  return agent;
}

void set_own_env(Value& container, const crd::EnvVar& variable) {
  if (variable.value_from.json.empty()) return set_env(container, variable.name, variable.value);
  auto source = Value::parse(variable.value_from.json);
  if (source.ok()) set_env_from(container, variable.name, std::move(*source));
}

void set_environment(Value& container, const RenderInput& input,
                     const commands::ContainerCommand& command, const crd::WorkerTemplate& own) {
  for (const auto& [name, value] : command.env) set_env(container, name, value);
  // Engines keep caches below HOME. They also look up the user's name, which a numeric user does
  // not have.
  set_env(container, "HOME", "/tmp");
  set_env(container, "USER", "worker");
  // With a source the engine downloads nothing.
  if (!input.spec.model.source) set_hub_token(container, input.spec.model);
  // Last, so users can replace our variables.
  for (const crd::EnvVar& variable : own.env) set_own_env(container, variable);
}

void set_probes(Value& container, const crd::WorkerTemplate& own) {
  Probe startup{.path = "/health", .port = "http", .period_seconds = kStartupPeriodSeconds};
  startup.failures =
      std::max<std::int64_t>(seconds_of(own.startup_timeout) / kStartupPeriodSeconds, 1);
  startup.timeout_seconds = 5;
  container.member("startupProbe") = probe_of(startup);
  container.member("readinessProbe") = probe_of({.path = "/health", .port = "http"});
  container.member("livenessProbe") = probe_of({.path = "/health",
                                                .port = "http",
                                                .period_seconds = 10,
                                                .failures = 10,
                                                .timeout_seconds = 5});
}

std::int64_t gpus_of(const crd::Pool& pool) {
  const crd::WorkerTemplate& own = *pool.worker_template;
  const crd::Parallelism& ranks = own.parallelism;
  const bool needs_none = pool.backend == crd::Backend::Simulator;
  return own.gpus.value_or(needs_none ? 0 : ranks.tensor * ranks.pipeline * ranks.data);
}

Value worker_container(const RenderInput& input, const crd::Pool& pool) {
  const crd::WorkerTemplate& own = *pool.worker_template;
  commands::Places places{.model = engine_model(input, pool), .chat_template = {}};
  if (input.is_ipv6) places.host = "::";
  if (input.spec.model.chat_template) {
    places.chat_template = std::string(kTemplatePath) + "/" + std::string(kTemplateFile);
  }
  const auto command = commands::worker_command(input.agreement, input.spec, pool, places);
  Value container = Value::object();
  container.member("name") = kWorker;
  container.member("image") = own.image.empty() ? router_image(input) : own.image;
  container.member("imagePullPolicy") = crd::word_of(own.image_pull_policy);
  container.member("command") = texts_of(command.command);
  container.member("args") = texts_of(command.args);
  set_environment(container, input, command, own);
  container.member("ports") = Value::array({port_of("http", commands::kEnginePort)});
  set_probes(container, own);
  // Engines write beside their code, so their root file system stays as in the image.
  Value security = restricted_container();
  security.erase({"readOnlyRootFilesystem"});
  container.member("securityContext") = std::move(security);
  set_resources(container, own.resources);
  const std::int64_t gpus = gpus_of(pool);
  if (gpus > 0) container.set({"resources", "limits", own.gpu_resource}, std::to_string(gpus));
  container.set({"lifecycle", "preStop", "exec", "command"},
                texts_of(drain_command(input, pool.backend)));
  return container;
}

Value worker_pod(const RenderInput& input, const crd::Pool& pool) {
  PodSpec pod(input, kWorker);
  pod.set_user(input.spec);
  add_download(pod, input, files_of_engine(input, pool));
  mount_belonging(pod, input, kAgent);
  pod.mount_secret("drain", {drain_file(input.owner)}, kDrainPath);
  pod.add_sidecar(agent_container(input, pool));
  pod.begin_mounts();
  pod.mount_secret("drain", {drain_file(input.owner)}, kDrainPath);
  mount_model(pod, input);
  if (input.spec.model.chat_template) {
    pod.mount_config_map("template", template_config_name(input), kTemplatePath);
  }
  pod.mount_scratch("scratch", "/tmp");
  pod.mount_shared_memory(pool.worker_template->shared_memory);
  pod.add_container(worker_container(input, pool));
  pod.set("readinessGates", Value::array({Value::object({{"conditionType", kRoutableGate}})}));
  pod.set("terminationGracePeriodSeconds", drain_seconds(input.spec) + kGraceSeconds);
  return pod.take();
}

}  // namespace

Value pool_deployment(const RenderInput& input, const crd::Pool& pool, std::int64_t replicas) {
  const crd::Rollout& rollout = input.spec.rollout;
  Value object = deployment(input, {.name = revision_name(input.owner, input.revision, pool.name),
                                    .component = kWorker,
                                    .pool = pool.name,
                                    .pod = worker_pod(input, pool),
                                    .replicas = replicas});
  if (rollout.strategy == crd::Strategy::Recreate) {
    object.set({"spec", "strategy", "type"}, "Recreate");
  } else {
    set_rolling(object, rollout.max_surge, rollout.max_unavailable);
  }
  object.set({"spec", "progressDeadlineSeconds"},
             std::max<std::int64_t>(seconds_of(rollout.progress_deadline), 1));
  merge_users(object, pool.worker_template->pod_template);
  return object;
}

}  // namespace sightline::desired
