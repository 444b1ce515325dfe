// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <concepts>
#include <type_traits>

#include "operator/crd/describe_model.h"
#include "operator/crd/describe_pool.h"
#include "operator/crd/describe_status.h"
#include "operator/crd/spec.h"
#include "operator/crd/words.h"

// The fields of spec and status, each named once. Code that reads, writes or lists fields calls
// describe(fields, value), which calls fields(name, member) for each. So all three always have the
// same fields.
namespace sightline::crd {

template <class Fields, class Value>
requires std::same_as<std::remove_const_t<Value>, FrontendAutoscaling>
void describe(Fields& fields, Value& v) {
  fields("minReplicas", v.min_replicas);
  fields("maxReplicas", v.max_replicas);
  fields("targetCPUPercent", v.target_cpu_percent);
}

template <class Fields, class Value>
requires std::same_as<std::remove_const_t<Value>, ClientService>
void describe(Fields& fields, Value& v) {
  fields("type", v.type);
  fields("port", v.port);
  fields("annotations", v.annotations);
}

template <class Fields, class Value>
requires std::same_as<std::remove_const_t<Value>, Frontend>
void describe(Fields& fields, Value& v) {
  fields("replicas", v.replicas);
  fields("autoscaling", v.autoscaling);
  fields("service", v.service);
  fields("concurrentRequestsMax", v.concurrent_requests_max);
  fields("resources", v.resources);
  fields("podTemplate", v.pod_template);
}

template <class Fields, class Value>
requires std::same_as<std::remove_const_t<Value>, Weights>
void describe(Fields& fields, Value& v) {
  fields("overlapCredit", v.overlap_credit);
  fields("hostCredit", v.host_credit);
  fields("diskCredit", v.disk_credit);
  fields("prefillLoadScale", v.prefill_load_scale);
  fields("decodeLoadScale", v.decode_load_scale);
}

template <class Fields, class Value>
requires std::same_as<std::remove_const_t<Value>, Router>
void describe(Fields& fields, Value& v) {
  fields("replicas", v.replicas);
  fields("policy", v.policy);
  fields("weights", v.weights);
  fields("staleAfter", v.stale_after);
  fields("requestTimeout", v.request_timeout);
  fields("resources", v.resources);
  fields("podTemplate", v.pod_template);
}

template <class Fields, class Value>
requires std::same_as<std::remove_const_t<Value>, ManagedNats>
void describe(Fields& fields, Value& v) {
  fields("replicas", v.replicas);
  fields("image", v.image);
  fields("resources", v.resources);
  fields("podTemplate", v.pod_template);
}

template <class Fields, class Value>
requires std::same_as<std::remove_const_t<Value>, Agents>
void describe(Fields& fields, Value& v) { fields("podTemplate", v.pod_template); }

template <class Fields, class Value>
requires std::same_as<std::remove_const_t<Value>, ExternalNats>
void describe(Fields& fields, Value& v) {
  fields("urls", v.urls);
  fields("credentialsSecret", v.credentials_secret);
  fields("caSecret", v.ca_secret);
}

template <class Fields, class Value>
requires std::same_as<std::remove_const_t<Value>, Nats>
void describe(Fields& fields, Value& v) {
  fields("managed", v.managed);
  fields("external", v.external);
}

template <class Fields, class Value>
requires std::same_as<std::remove_const_t<Value>, Rollout>
void describe(Fields& fields, Value& v) {
  fields("strategy", v.strategy);
  fields("maxSurge", v.max_surge);
  fields("maxUnavailable", v.max_unavailable);
  fields("drainTimeout", v.drain_timeout);
  fields("progressDeadline", v.progress_deadline);
  fields("paused", v.paused);
}

template <class Fields, class Value>
requires std::same_as<std::remove_const_t<Value>, Disruption>
void describe(Fields& fields, Value& v) { fields("maxUnavailable", v.max_unavailable); }

template <class Fields, class Value>
requires std::same_as<std::remove_const_t<Value>, NetworkPolicy>
void describe(Fields& fields, Value& v) { fields("enabled", v.enabled); }

template <class Fields, class Value>
requires std::same_as<std::remove_const_t<Value>, Monitoring>
void describe(Fields& fields, Value& v) {
  fields("podMonitor", v.pod_monitor);
  fields("interval", v.interval);
  fields("labels", v.labels);
}

template <class Fields, class Value>
requires std::same_as<std::remove_const_t<Value>, PullSecret>
void describe(Fields& fields, Value& v) { fields("name", v.name); }

template <class Fields, class Value>
requires std::same_as<std::remove_const_t<Value>, Spec>
void describe(Fields& fields, Value& v) {
  fields("model", v.model);
  fields("kv", v.kv);
  fields("multimodal", v.multimodal);
  fields("transfer", v.transfer);
  fields("frontend", v.frontend);
  fields("router", v.router);
  fields("pools", v.pools);
  fields("nats", v.nats);
  fields("agents", v.agents);
  fields("rollout", v.rollout);
  fields("disruption", v.disruption);
  fields("networkPolicy", v.network_policy);
  fields("monitoring", v.monitoring);
  fields("logLevel", v.log_level);
  fields("image", v.image);
  fields("imagePullPolicy", v.image_pull_policy);
  fields("imagePullSecrets", v.image_pull_secrets);
  fields("podUser", v.pod_user);
  fields("version", v.version);
  fields("restart", v.restart);
  fields("suspend", v.suspend);
}

}  // namespace sightline::crd
