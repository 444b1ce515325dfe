// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/judge/observe.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "operator/desired/object_names.h"
#include "operator/kube/object/metadata.h"

namespace sightline::judge {

using object::Value;

namespace {

const Value* condition_of(const Value& object, std::string_view type) {
  for (const Value& condition : object.at({"status", "conditions"}).items()) {
    if (condition["type"].text() == type) return &condition;
  }
  return nullptr;
}

std::optional<bool> verdict_of(const Value& object, std::string_view type) {
  const Value* condition = condition_of(object, type);
  if (condition == nullptr) return std::nullopt;
  return (*condition)["status"].text() == "True";
}

// The most bytes of a program's last output.
constexpr std::size_t kLastWordsBytesMax = 512;

// The end of a program's last output, in one line.
std::string last_words_of(const Value& terminated) {
  std::string text(terminated["message"].text());
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  if (text.size() > kLastWordsBytesMax) {
    std::size_t begin = text.size() - kLastWordsBytesMax;
    // Not from the middle of a UTF-8 character.
    while (begin < text.size() && (static_cast<unsigned char>(text[begin]) & 0xC0) == 0x80) ++begin;
    text = "…" + text.substr(begin);
  }
  for (char& one : text) {
    if (static_cast<unsigned char>(one) < ' ') one = ' ';
  }
  return text;
}

// "Error, exit code 1: " and its last output. Empty if it still runs, or ended as expected.
std::string end_of(const Value& terminated) {
  const std::int64_t code = terminated["exitCode"].integer().value_or(0);
  const std::string_view reason = terminated["reason"].text();
  if (terminated.is_null() || (code == 0 && (reason.empty() || reason == "Completed"))) return {};
  std::string text(reason.empty() ? "Error" : reason);
  if (code != 0) text += ", exit code " + std::to_string(code);
  const std::string words = last_words_of(terminated);
  return words.empty() ? text : text + ": " + words;
}

// Why a container waits or has ended. Empty if users need not see it.
std::string container_trouble(const Value& status) {
  std::string ended = end_of(status.at({"state", "terminated"}));
  // A container that runs again has its last end in lastState.
  if (ended.empty()) ended = end_of(status.at({"lastState", "terminated"}));
  const Value& waiting = status.at({"state", "waiting"});
  const std::string_view reason = waiting["reason"].text();
  // Each container has these states for a while as it starts.
  const bool is_starting = reason == "ContainerCreating" || reason == "PodInitializing";
  if (reason.empty() || is_starting) {
    const bool is_well = status["ready"].boolean().value_or(false);
    return ended.empty() || is_well ? std::string() : "it ended: " + ended;
  }
  std::string text(reason);
  if (!ended.empty()) text += " (it ended: " + ended + ")";
  const std::string_view message = waiting["message"].text();
  return message.empty() ? text : text + ": " + std::string(message);
}

std::string pod_trouble(const Value& pod) {
  for (const std::string_view containers : {"initContainerStatuses", "containerStatuses"}) {
    for (const Value& status : pod.at({"status", containers}).items()) {
      std::string trouble = container_trouble(status);
      if (!trouble.empty()) return std::string(status["name"].text()) + ": " + trouble;
    }
  }
  const Value* scheduled = condition_of(pod, "PodScheduled");
  if (scheduled == nullptr || (*scheduled)["status"].text() != "False") return {};
  return std::string((*scheduled)["reason"].text()) + ": " +
         std::string((*scheduled)["message"].text());
}

std::int64_t count_of(const Value& value) { return value.integer().value_or(0); }

WorkerReport worker_report_of(const Value& worker) {
  return {.state = std::string(worker["state"].text()),
          .is_ready = worker["ready"].boolean().value_or(false),
          .reason = std::string(worker["reason"].text()),
          .block_size = count_of(worker["block_size"]),
          .block_size_configured = count_of(worker["block_size_configured"])};
}

// In the form of settings' values: a string as it is, other values as JSON.
std::string text_of(const Value& value) {
  return value.is_string() ? std::string(value.text()) : value.to_text();
}

}  // namespace

Pod pod_of(const Value& pod) {
  const std::string_view phase = pod.at({"status", "phase"}).text();
  Pod made;
  made.name = object::key_of(pod).name;
  made.uid = object::uid_of(pod);
  made.ip = pod.at({"status", "podIP"}).text();
  made.component = object::label_of(pod, desired::kComponentLabel);
  made.revision = object::label_of(pod, desired::kRevisionLabel);
  made.pool = object::label_of(pod, desired::kPoolLabel);
  made.is_ready = verdict_of(pod, "Ready").value_or(false);
  made.is_ending = object::is_being_deleted(pod);
  made.is_over = phase == "Succeeded" || phase == "Failed";
  made.routable = verdict_of(pod, desired::kRoutableGate);
  made.list = object::annotation_of(pod, desired::kListAnnotation);
  made.trouble = pod_trouble(pod);
  return made;
}

Deployment deployment_of(const Value& deployment) {
  Deployment made;
  made.name = object::key_of(deployment).name;
  // Selectors cannot change, but a policy of the cluster may change labels.
  const Value& selected = deployment.at({"spec", "selector", "matchLabels"});
  made.component = selected[desired::kComponentLabel].text();
  made.revision = selected[desired::kRevisionLabel].text();
  made.pool = selected[desired::kPoolLabel].text();
  // The default of Kubernetes.
  made.wanted = deployment.at({"spec", "replicas"}).integer().value_or(1);
  const Value& status = deployment["status"];
  made.pods = count_of(status["replicas"]);
  made.updated = count_of(status["updatedReplicas"]);
  made.ready = count_of(status["readyReplicas"]);
  // Until the controller has seen the newest spec, its counts belong to an older one.
  made.is_observed =
      count_of(status["observedGeneration"]) >= count_of(deployment.at({"metadata", "generation"}));
  for (const std::string_view type : {"ReplicaFailure", "Progressing"}) {
    const Value* condition = condition_of(deployment, type);
    const std::string_view bad = type == "Progressing" ? "False" : "True";
    if (condition == nullptr || (*condition)["status"].text() != bad) continue;
    made.trouble = std::string((*condition)["reason"].text()) + ": " +
                   std::string((*condition)["message"].text());
    break;
  }
  return made;
}

std::map<std::string, std::string> pushed_settings(const Value& settings) {
  std::map<std::string, std::string> pushed;
  for (const Value& setting : settings.items()) {
    if (setting["origin"].text() != "push") continue;
    pushed[std::string(setting["name"].text())] = text_of(setting["value"]);
  }
  return pushed;
}

RouterReport report_of(const Pod& router, const RouterAnswers& answers) {
  RouterReport report{.pod = router.name, .revision = router.revision, .problem = {}};
  report.is_ready = router.is_ready;
  for (const Value& worker : answers.workers.items()) {
    report.workers[std::string(worker["name"].text())] = worker_report_of(worker);
  }
  report.generation = answers.list["generation"].integer();
  report.pushed = answers.list.at({"pushed", "workers"});
  report.settings = pushed_settings(answers.settings);
  for (const Value& member : answers.replicas["members"].items()) {
    if (member["fits"].boolean().value_or(true)) continue;
    report.misfits.push_back({.name = std::string(member["name"].text()),
                              .difference = std::string(member["difference"].text()),
                              .reason = std::string(member["reason"].text())});
  }
  for (const Value& connection : answers.replicas["nats"].items()) {
    if (connection["connected"].boolean().value_or(false)) continue;
    const std::string_view trouble = connection["trouble"].text();
    report.nats_trouble = trouble.empty() ? "is not connected" : trouble;
  }
  return report;
}

RouterReport unreached(const Pod& router, std::string problem) {
  return {.pod = router.name, .revision = router.revision, .problem = std::move(problem)};
}

}  // namespace sightline::judge
