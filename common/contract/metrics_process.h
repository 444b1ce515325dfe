// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <array>

#include "common/contract/metric_spec.h"

// The metrics of a process: its settings, worker lists, log and build.
namespace sightline::contract {

inline constexpr MetricSpec kConfigReloadsTotal{
    "sightline_config_reloads_total",
    MetricType::Counter,
    "Changes of the configuration file, by result: applied, refused, outranked by a pushed list.",
    {"result"}};
inline constexpr MetricSpec kPushesTotal{
    "sightline_pushes_total",
    MetricType::Counter,
    "Worker lists and settings that were pushed here or received from peers, by result.",
    {"what", "result"}};
inline constexpr MetricSpec kWorkerListGeneration{
    "sightline_worker_list_generation",
    MetricType::Gauge,
    "Generation of the pushed list of workers in force. 0: no list was pushed.",
    {},
    {},
    Combine::Max};
inline constexpr MetricSpec kWorkerListSource{
    "sightline_worker_list_source",
    MetricType::Gauge,
    "1 for the source of the list of workers in force: none, file, peers, push.",
    {"source"},
    {},
    Combine::Max};
inline constexpr MetricSpec kSettingsPushed{"sightline_settings_pushed",
                                            MetricType::Gauge,
                                            "Number of settings whose value was pushed.",
                                            {},
                                            {},
                                            Combine::Max};
inline constexpr MetricSpec kLearnt{
    "sightline_learnt", MetricType::Gauge,
    "1: the workers' blocks were loaded after the start, or fleet.ready_timeout has passed."};
inline constexpr MetricSpec kLogDroppedLinesTotal{
    "sightline_log_dropped_lines_total", MetricType::Counter,
    "Log lines dropped because the reader of the log was too slow or had ended."};
inline constexpr MetricSpec kMemoryBytes{
    "sightline_memory_bytes",
    MetricType::Gauge,
    "Bytes charged to server.memory_bytes_max, by share. all: all shares together.",
    {"share"}};
inline constexpr MetricSpec kMemoryLimitBytes{
    "sightline_memory_limit_bytes",
    MetricType::Gauge,
    "The most bytes that the share may use. all: server.memory_bytes_max.",
    {"share"}};
inline constexpr MetricSpec kMemoryRefusedTotal{
    "sightline_memory_refused_total",
    MetricType::Counter,
    "Claims refused because the share had no room. all: the share had room, but the whole budget "
    "had not.",
    {"share"}};
inline constexpr MetricSpec kAllocationFailuresTotal{
    "sightline_allocation_failures_total", MetricType::Counter,
    "Times the system provided no memory. Each one ended a request or a connection."};
inline constexpr MetricSpec kThreadAllocationFailuresTotal{
    "sightline_thread_allocation_failures_total",
    MetricType::Counter,
    "Steps that a thread skipped because the system provided no memory.",
    {"thread"}};
inline constexpr MetricSpec kNameLookupsTotal{
    "sightline_name_lookups_total",
    MetricType::Counter,
    "Look-ups of engines' host names, by outcome: found, unknown, unanswered.",
    {"outcome"}};
inline constexpr MetricSpec kMetricOverflowTotal{
    "sightline_metric_overflow_total",
    MetricType::Counter,
    "Label sets beyond a metric's limit, counted in its series with the labels \"other\".",
    {"metric"}};
inline constexpr MetricSpec kBuildInfo{"sightline_build_info",
                                       MetricType::Gauge,
                                       "1. The label is the version.",
                                       {"version"},
                                       {},
                                       Combine::Max};

inline constexpr std::array kProcessMetrics = {
    &kConfigReloadsTotal,
    &kPushesTotal,
    &kWorkerListGeneration,
    &kWorkerListSource,
    &kSettingsPushed,
    &kLearnt,
    &kLogDroppedLinesTotal,
    &kMemoryBytes,
    &kMemoryLimitBytes,
    &kMemoryRefusedTotal,
    &kNameLookupsTotal,
    &kMetricOverflowTotal,
    &kAllocationFailuresTotal,
    &kThreadAllocationFailuresTotal,
    &kBuildInfo,
};

}  // namespace sightline::contract
