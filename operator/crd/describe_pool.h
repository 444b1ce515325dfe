// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <concepts>
#include <type_traits>

#include "operator/crd/describe_model.h"
#include "operator/crd/pool_spec.h"

// The fields of pools of workers, see describe.h.
namespace sightline::crd {

template <class Fields, class Value>
requires std::same_as<std::remove_const_t<Value>, PoolAutoscaling>
void describe(Fields& fields, Value& v) {
  fields("minReplicas", v.min_replicas);
  fields("maxReplicas", v.max_replicas);
}

template <class Fields, class Value>
requires std::same_as<std::remove_const_t<Value>, EnvVar>
void describe(Fields& fields, Value& v) {
  fields("name", v.name);
  fields("value", v.value);
  fields("valueFrom", v.value_from);
}

template <class Fields, class Value>
requires std::same_as<std::remove_const_t<Value>, Parallelism>
void describe(Fields& fields, Value& v) {
  fields("tensor", v.tensor);
  fields("pipeline", v.pipeline);
  fields("data", v.data);
}

template <class Fields, class Value>
requires std::same_as<std::remove_const_t<Value>, WorkerTemplate>
void describe(Fields& fields, Value& v) {
  fields("image", v.image);
  fields("imagePullPolicy", v.image_pull_policy);
  fields("args", v.args);
  fields("env", v.env);
  fields("gpus", v.gpus);
  fields("gpuResource", v.gpu_resource);
  fields("parallelism", v.parallelism);
  fields("sharedMemory", v.shared_memory);
  fields("startupTimeout", v.startup_timeout);
  fields("resources", v.resources);
  fields("podTemplate", v.pod_template);
}

template <class Fields, class Value>
requires std::same_as<std::remove_const_t<Value>, PodSelector>
void describe(Fields& fields, Value& v) {
  fields("matchLabels", v.match_labels);
  fields("port", v.port);
  fields("eventsPort", v.events_port);
  fields("replayPort", v.replay_port);
}

template <class Fields, class Value>
requires std::same_as<std::remove_const_t<Value>, Endpoint>
void describe(Fields& fields, Value& v) {
  fields("name", v.name);
  fields("url", v.url);
  fields("events", v.events);
  fields("replay", v.replay);
}

template <class Fields, class Value>
requires std::same_as<std::remove_const_t<Value>, Pool>
void describe(Fields& fields, Value& v) {
  fields("name", v.name);
  fields("backend", v.backend);
  fields("role", v.role);
  fields("replicas", v.replicas);
  fields("autoscaling", v.autoscaling);
  fields("blockSize", v.block_size);
  fields("template", v.worker_template);
  fields("selector", v.selector);
  fields("endpoints", v.endpoints);
}

}  // namespace sightline::crd
