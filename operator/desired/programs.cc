// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/desired/programs.h"

#include <utility>

#include "operator/agreement/agreement.h"
#include "operator/crd/words.h"
#include "operator/desired/model_files.h"
#include "operator/desired/pod_merge.h"
#include "operator/desired/program_settings.h"
#include "operator/desired/secrets.h"

namespace sightline::desired {

using object::Value;

namespace {

// The first process of a container ignores SIGTERM until it has installed a handler
// (pid_namespaces(7)). A pod deleted during its start would live for its whole grace
// period. So the signal comes at least this long after the start.
constexpr std::int64_t kHearsSeconds = 1;

Value pod_field(std::string_view field) {
  Value source = Value::object();
  source.set({"fieldRef", "fieldPath"}, field);
  return source;
}

}  // namespace

Value program(const RenderInput& input, std::string_view name,
              const std::vector<std::string>& args) {
  Value container = Value::object();
  container.member("name") = name;
  container.member("image") = router_image(input);
  container.member("imagePullPolicy") = crd::word_of(input.spec.image_pull_policy);
  container.member("command") = texts_of({"sightline"});
  container.member("args") = texts_of(args);
  container.member("securityContext") = restricted_container();
  Value from = Value::object();
  from.set({"configMapRef", "name"}, revision_config_name(input));
  container.member("envFrom") = Value::array({from});
  for (const auto& [variable, value] : nats_environment(input)) set_env(container, variable, value);
  set_env_from(container, "SIGHTLINE_REPLICA_NAME", pod_field("metadata.name"));
  container.member("ports") = Value::array({port_of("admin", kAdminPort)});
  container.member("livenessProbe") =
      probe_of({.path = "/healthz", .port = "admin", .period_seconds = 10, .failures = 6});
  return container;
}

Value agent_program(const RenderInput& input, const std::vector<std::string>& args) {
  std::vector<std::string> all = {"agent", "--admin-host", "::", "--admin-port",
                                  std::to_string(kAdminPort)};
  all.insert(all.end(), args.begin(), args.end());
  Value agent = program(input, kAgent, all);
  Value level = Value::object();
  level.set({"configMapKeyRef", "name"}, live_config_name(input));
  level.set({"configMapKeyRef", "key"}, kLogLevelKey);
  set_env_from(agent, "SIGHTLINE_LOG_LEVEL", std::move(level));
  agent.set({"lifecycle", "preStop", "sleep", "seconds"}, kHearsSeconds);
  set_resources(agent, {.requests = {{"cpu", "100m"}, {"memory", "128Mi"}}, .limits = {}});
  return agent;
}

void mount_belonging(PodSpec& pod, const RenderInput& input, std::string_view nats_user) {
  pod.mount_secret("identity", {identity_file(input)}, kIdentityPath);
  const std::vector<SecretFile> files = nats_files(input, nats_user);
  if (!files.empty()) pod.mount_secret("nats", files, kNatsPath);
  mount_model(pod, input);
}

Value deployment(const RenderInput& input, Workload workload) {
  const auto with_all = labels(input.owner, workload.component, input.revision, workload.pool);
  Value object = object_of(input, {.api_version = "apps/v1",
                                   .kind = "Deployment",
                                   .name = std::move(workload.name),
                                   .labels = with_all});
  if (workload.replicas) object.set({"spec", "replicas"}, *workload.replicas);
  object.set({"spec", "revisionHistoryLimit"}, 1);
  object.set({"spec", "selector", "matchLabels"},
             selector_labels(input.owner, workload.component, input.revision, workload.pool));
  object.set({"spec", "template", "metadata", "labels"}, with_all);
  if (!input.spec.restart.empty()) {
    object.set({"spec", "template", "metadata", "annotations", kRestartAnnotation},
               input.spec.restart);
  }
  object.set({"spec", "template", "spec"}, std::move(workload.pod));
  return object;
}

void set_rolling(Value& deployment, std::int64_t surge, std::int64_t unavailable) {
  deployment.set({"spec", "strategy", "type"}, "RollingUpdate");
  deployment.set({"spec", "strategy", "rollingUpdate", "maxSurge"}, surge);
  deployment.set({"spec", "strategy", "rollingUpdate", "maxUnavailable"}, unavailable);
}

void set_config_digest(Value& workload, std::string_view config) {
  workload.set({"spec", "template", "metadata", "annotations", kConfigAnnotation},
               agreement::digest_of(config));
}

void merge_users(Value& workload, const crd::Opaque& users) {
  if (users.json.empty()) return;
  const auto parsed = Value::parse(users.json);
  // Text that does not parse never comes here: judge/accept.cc refuses it.
  if (parsed.ok()) merge_pod_template(workload.member("spec").member("template"), *parsed);
}

}  // namespace sightline::desired
