// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <array>

#include "common/contract/metric_spec.h"

// The metrics of a Kubernetes controller, with the names and buckets of controller-runtime and
// client-go. Dashboards and alerts for controllers in general therefore show this one too.
namespace sightline::contract {

// The buckets of controller-runtime and client-go.
inline constexpr std::array kReconcileBuckets = {
    0.005, 0.01, 0.025, 0.05, 0.1,  0.15, 0.2,  0.25, 0.3,  0.35, 0.4,  0.45, 0.5, 0.6,
    0.7,   0.8,  0.9,   1.0,  1.25, 1.5,  1.75, 2.0,  2.5,  3.0,  3.5,  4.0,  4.5, 5.0,
    6.0,   7.0,  8.0,   9.0,  10.0, 15.0, 20.0, 25.0, 30.0, 40.0, 50.0, 60.0};
inline constexpr std::array kWorkqueueBuckets = {1e-8, 1e-7, 1e-6, 1e-5, 1e-4,  1e-3,
                                                 1e-2, 1e-1, 1.0,  10.0, 100.0, 1000.0};
inline constexpr std::array kRestBuckets = {0.005, 0.025, 0.1, 0.25, 0.5,  1.0,
                                            2.0,   4.0,   8.0, 15.0, 30.0, 60.0};
inline constexpr std::array kRestSizeBuckets = {64.0,      256.0,     512.0,     1024.0,
                                                4096.0,    16384.0,   65536.0,   262144.0,
                                                1048576.0, 4194304.0, 16777216.0};

// Reconciliations.
inline constexpr MetricSpec kReconcileTotal{
    "controller_runtime_reconcile_total",
    MetricType::Counter,
    "Reconciliations by result: success, error, requeue, requeue_after.",
    {"controller", "result"}};
inline constexpr MetricSpec kReconcileErrorsTotal{"controller_runtime_reconcile_errors_total",
                                                  MetricType::Counter,
                                                  "Reconciliations that failed.",
                                                  {"controller"}};
inline constexpr MetricSpec kReconcilePanicsTotal{"controller_runtime_reconcile_panics_total",
                                                  MetricType::Counter,
                                                  "Reconciliations that ended in an exception.",
                                                  {"controller"}};
inline constexpr MetricSpec kReconcileSeconds{"controller_runtime_reconcile_time_seconds",
                                              MetricType::Histogram,
                                              "Time of a reconciliation.",
                                              {"controller"},
                                              kReconcileBuckets};
inline constexpr MetricSpec kReconcileConcurrentMax{
    "controller_runtime_max_concurrent_reconciles",
    MetricType::Gauge,
    "Reconciliations that may run at the same time.",
    {"controller"}};
inline constexpr MetricSpec kReconcileActiveWorkers{"controller_runtime_active_workers",
                                                    MetricType::Gauge,
                                                    "Reconciliations that run.",
                                                    {"controller"}};

// The work queue.
inline constexpr MetricSpec kWorkqueueDepth{"workqueue_depth",
                                            MetricType::Gauge,
                                            "Items that wait in the queue.",
                                            {"name", "controller", "priority"}};
inline constexpr MetricSpec kWorkqueueAddsTotal{"workqueue_adds_total",
                                                MetricType::Counter,
                                                "Items added to the queue.",
                                                {"name", "controller"}};
inline constexpr MetricSpec kWorkqueueQueueSeconds{"workqueue_queue_duration_seconds",
                                                   MetricType::Histogram,
                                                   "Time that an item waits in the queue.",
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
    "Time since the running work began, sum of all items.",
    {"name", "controller"}};
inline constexpr MetricSpec kWorkqueueLongestSeconds{"workqueue_longest_running_processor_seconds",
                                                     MetricType::Gauge,
                                                     "Time since the oldest running work began.",
                                                     {"name", "controller"}};
inline constexpr MetricSpec kWorkqueueRetriesTotal{"workqueue_retries_total",
                                                   MetricType::Counter,
                                                   "Items put back after a failure.",
                                                   {"name", "controller"}};

// Requests to the API server.
inline constexpr MetricSpec kRestRequestsTotal{
    "rest_client_requests_total",
    MetricType::Counter,
    "Requests to the API server, by status (or <error>) and method.",
    {"code", "method", "host"}};
inline constexpr MetricSpec kRestRequestSeconds{"rest_client_request_duration_seconds",
                                                MetricType::Histogram,
                                                "Time of a request to the API server.",
                                                {"verb", "host"},
                                                kRestBuckets};
inline constexpr MetricSpec kRestRetriesTotal{
    "rest_client_request_retries_total",
    MetricType::Counter,
    "Retried requests, by the status that caused the retry.",
    {"code", "verb", "host"}};
inline constexpr MetricSpec kRestLimiterSeconds{"rest_client_rate_limiter_duration_seconds",
                                                MetricType::Histogram,
                                                "Time that a request waited for the rate limiter.",
                                                {"verb", "host"},
                                                kRestBuckets};
inline constexpr MetricSpec kRestRequestBytes{"rest_client_request_size_bytes",
                                              MetricType::Histogram,
                                              "Size of a request body.",
                                              {"verb", "host"},
                                              kRestSizeBuckets};
inline constexpr MetricSpec kRestResponseBytes{"rest_client_response_size_bytes",
                                               MetricType::Histogram,
                                               "Size of a response body.",
                                               {"verb", "host"},
                                               kRestSizeBuckets};

// Reflectors, for which client-go has no counters.
inline constexpr MetricSpec kReflectorListsTotal{"sightline_operator_lists_total",
                                                 MetricType::Counter,
                                                 "List requests of a cache, by result.",
                                                 {"resource", "result"}};
inline constexpr MetricSpec kReflectorWatchesTotal{
    "sightline_operator_watches_total",
    MetricType::Counter,
    "Watches of a cache, by the reason of their end.",
    {"resource", "end"}};
inline constexpr MetricSpec kReflectorObjects{"sightline_operator_cached_objects",
                                              MetricType::Gauge,
                                              "Objects in a cache.",
                                              {"resource"},
                                              {},
                                              Combine::Max};

// Objects. Only the operator that leads exports these. The object's namespace has a label of its
// own, because `namespace` is the namespace of the scraped pod.
inline constexpr MetricSpec kObjects{"sightline_operator_objects",
                                     MetricType::Gauge,
                                     "MultimodalRouters by the phase of their rollout.",
                                     {"phase"},
                                     {},
                                     Combine::Max};
inline constexpr MetricSpec kObjectsByCondition{"sightline_operator_objects_by_condition",
                                                MetricType::Gauge,
                                                "MultimodalRouters by a condition and its status.",
                                                {"condition", "status"},
                                                {},
                                                Combine::Max};
inline constexpr MetricSpec kObjectReady{
    "sightline_operator_object_ready",
    MetricType::Gauge,
    "1 while the MultimodalRouter is Ready, else 0. A suspended one has no series.",
    {"router_namespace", "router"},
    {},
    Combine::Max};
inline constexpr MetricSpec kObjectRolloutStuck{
    "sightline_operator_object_rollout_stuck",
    MetricType::Gauge,
    "1 while the rollout of the MultimodalRouter made no progress within its deadline, else 0.",
    {"router_namespace", "router"},
    {},
    Combine::Max};
inline constexpr MetricSpec kObjectWorkers{
    "sightline_operator_object_workers",
    MetricType::Gauge,
    "Workers of the MultimodalRouter by state: desired, ready, routable.",
    {"router_namespace", "router", "state"},
    {},
    Combine::Max};

// Leader election.
inline constexpr MetricSpec kLeaderStatus{
    "leader_election_master_status", MetricType::Gauge, "1: this process is the leader.", {"name"}};
inline constexpr MetricSpec kLeaderSlowpathTotal{
    "leader_election_slowpath_total",
    MetricType::Counter,
    "Times the lease could not be renewed without reading it.",
    {"name"}};

// Events.
inline constexpr MetricSpec kEventsTotal{"sightline_operator_events_total",
                                         MetricType::Counter,
                                         "Events by outcome: written, failed, dropped.",
                                         {"outcome"}};

}  // namespace sightline::contract
