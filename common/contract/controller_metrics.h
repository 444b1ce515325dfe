// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <array>

#include "common/contract/metric_spec.h"

// Of a Kubernetes controller, under the names of controller-runtime and client-go: dashboards and
// alerts that are made for any controller show this one.
namespace sightline::contract {

inline constexpr std::array kWorkqueueBuckets = {1e-8, 1e-7, 1e-6, 1e-5, 1e-4,  1e-3,
                                                 1e-2, 1e-1, 1.0,  10.0, 100.0, 1000.0};

// The work queue.
inline constexpr MetricSpec kWorkqueueDepth{"workqueue_depth",
                                            MetricType::Gauge,
                                            "Items that wait in the queue.",
                                            {"name", "controller", "priority"}};
inline constexpr MetricSpec kWorkqueueAddsTotal{"workqueue_adds_total",
                                                MetricType::Counter,
                                                "Items that came into the queue.",
                                                {"name", "controller"}};
inline constexpr MetricSpec kWorkqueueQueueSeconds{"workqueue_queue_duration_seconds",
                                                   MetricType::Histogram,
                                                   "Time of an item in the queue.",
                                                   {"name", "controller"},
                                                   kWorkqueueBuckets};
inline constexpr MetricSpec kWorkqueueWorkSeconds{"workqueue_work_duration_seconds",
                                                  MetricType::Histogram,
                                                  "Time of the work on an item.",
                                                  {"name", "controller"},
                                                  kWorkqueueBuckets};
inline constexpr MetricSpec kWorkqueueUnfinishedSeconds{
    "workqueue_unfinished_work_seconds",
    MetricType::Gauge,
    "Time since the work under way was begun, all items together.",
    {"name", "controller"}};
inline constexpr MetricSpec kWorkqueueLongestSeconds{
    "workqueue_longest_running_processor_seconds",
    MetricType::Gauge,
    "Time since the oldest work under way was begun.",
    {"name", "controller"}};
inline constexpr MetricSpec kWorkqueueRetriesTotal{"workqueue_retries_total",
                                                   MetricType::Counter,
                                                   "Items put back after a failure.",
                                                   {"name", "controller"}};

}  // namespace sightline::contract
