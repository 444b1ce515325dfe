// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <concepts>
#include <type_traits>

#include "operator/crd/status.h"

// The fields of the status, see describe.h.
namespace sightline::crd {

template <class Fields, class Value>
requires std::same_as<std::remove_const_t<Value>, Condition>
void describe(Fields& fields, Value& v) {
  fields("type", v.type);
  fields("status", v.status);
  fields("observedGeneration", v.observed_generation);
  fields("lastTransitionTime", v.last_transition_time);
  fields("reason", v.reason);
  fields("message", v.message);
}

template <class Fields, class Value>
requires std::same_as<std::remove_const_t<Value>, NotedImages>
void describe(Fields& fields, Value& v) {
  fields("router", v.router);
  fields("nats", v.nats);
  fields("download", v.download);
}

template <class Fields, class Value>
requires std::same_as<std::remove_const_t<Value>, RevisionStatus>
void describe(Fields& fields, Value& v) {
  fields("name", v.name);
  fields("state", v.state);
  fields("blockSize", v.block_size);
  fields("modelRevision", v.model_revision);
  fields("transferMode", v.transfer_mode);
  fields("desired", v.desired);
  fields("ready", v.ready);
  fields("routable", v.routable);
  fields("trafficPercent", v.traffic_percent);
}

template <class Fields, class Value>
requires std::same_as<std::remove_const_t<Value>, PoolStatus>
void describe(Fields& fields, Value& v) {
  fields("name", v.name);
  fields("desired", v.desired);
  fields("ready", v.ready);
  fields("routable", v.routable);
  fields("updated", v.updated);
  fields("reportedBlockSizes", v.reported_block_sizes);
}

template <class Fields, class Value>
requires std::same_as<std::remove_const_t<Value>, ReadyCount>
void describe(Fields& fields, Value& v) {
  fields("desired", v.desired);
  fields("ready", v.ready);
}

template <class Fields, class Value>
requires std::same_as<std::remove_const_t<Value>, RolloutStatus>
void describe(Fields& fields, Value& v) {
  fields("phase", v.phase);
  fields("message", v.message);
  fields("startTime", v.start_time);
  fields("lastProgressTime", v.last_progress_time);
}

template <class Fields, class Value>
requires std::same_as<std::remove_const_t<Value>, Status>
void describe(Fields& fields, Value& v) {
  fields("observedGeneration", v.observed_generation);
  fields("conditions", v.conditions);
  fields("url", v.url);
  fields("currentRevision", v.current_revision);
  fields("targetRevision", v.target_revision);
  fields("workers", v.workers);
  fields("backends", v.backends);
  fields("operatorVersion", v.operator_version);
  fields("images", v.images);
  fields("revisions", v.revisions);
  fields("pools", v.pools);
  fields("frontend", v.frontend);
  fields("router", v.router);
  fields("rollout", v.rollout);
}

}  // namespace sightline::crd
