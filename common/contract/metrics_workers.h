// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <array>

#include "common/contract/metric_spec.h"

// The metrics of workers: their state, the blocks they hold, and their KV events.
namespace sightline::contract {

inline constexpr MetricSpec kWorkerState{"sightline_worker_state",
                                         MetricType::Gauge,
                                         "1 for the worker's state, 0 for the other states.",
                                         {kWorkerLabel, "state"},
                                         {},
                                         Combine::Max};
inline constexpr MetricSpec kWorkersKeptRouted{
    "sightline_workers_kept_routed",
    MetricType::Gauge,
    "Workers that do not answer in time and stay routed because most workers do not. Otherwise 0.",
    {},
    {},
    Combine::Max};
inline constexpr MetricSpec kWorkerInflight{"sightline_worker_inflight",
                                            MetricType::Gauge,
                                            "Requests of this router that run on the worker.",
                                            {kWorkerLabel}};
inline constexpr MetricSpec kWorkerBelievedInflight{
    "sightline_worker_believed_inflight",
    MetricType::Gauge,
    "Requests that run on the worker: this router's own, and the ones that other routers reported.",
    {kWorkerLabel},
    {},
    Combine::Max};
inline constexpr MetricSpec kWorkerQueueRequests{
    "sightline_worker_queue_requests",
    MetricType::Gauge,
    "Requests that wait in the engine's own queue, as last reported, sum of all ranks.",
    {kWorkerLabel},
    {},
    Combine::Max};
inline constexpr MetricSpec kWorkerKvUseRatio{
    "sightline_worker_kv_use_ratio",
    MetricType::Gauge,
    "Used part of the engine's KV cache, as last reported, of its fullest rank.",
    {kWorkerLabel},
    {},
    Combine::Max};
inline constexpr MetricSpec kWorkerUnannouncedBlocks{
    "sightline_worker_unannounced_blocks",
    MetricType::Gauge,
    "Whole prompt blocks that the worker computed since its events last announced any block.",
    {kWorkerLabel},
    {},
    Combine::Max};
inline constexpr MetricSpec kWorkerReadingAgeSeconds{
    "sightline_worker_reading_age_seconds",
    MetricType::Gauge,
    "Time since the engine's queue and KV use were read. No series before the first reading.",
    {kWorkerLabel},
    {},
    Combine::Max};
inline constexpr MetricSpec kIndexBlocks{"sightline_index_blocks",
                                         MetricType::Gauge,
                                         "GPU blocks of the worker, according to the index.",
                                         {kWorkerLabel},
                                         {},
                                         Combine::Max};
inline constexpr MetricSpec kIndexKeys{
    "sightline_index_keys",
    MetricType::Gauge,
    "Distinct blocks in the index, of all workers and tiers together.",
    {},
    {},
    Combine::Max};
inline constexpr MetricSpec kIndexRefusedBlocksTotal{
    "sightline_index_refused_blocks_total", MetricType::Counter,
    "Announced blocks for which the index had no room."};
inline constexpr MetricSpec kIndexLackedBlocks{
    "sightline_index_lacked_blocks",
    MetricType::Gauge,
    "Announced blocks of the worker that the index has not stored since it last loaded them all.",
    {kWorkerLabel},
    {},
    Combine::Max};
inline constexpr MetricSpec kIndexGaveWayTotal{
    "sightline_index_gave_way_total",
    MetricType::Counter,
    "Times that a full index dropped the worker's blocks because they exceeded its bound.",
    {kWorkerLabel}};
inline constexpr MetricSpec kIndexAskedAgainTotal{
    "sightline_index_asked_again_total",
    MetricType::Counter,
    "Times that the worker's blocks were requested again because a full index had room again.",
    {kWorkerLabel}};
inline constexpr MetricSpec kEventsAppliedTotal{"sightline_events_applied_total",
                                                MetricType::Counter,
                                                "KV events of the worker applied to the index.",
                                                {kWorkerLabel},
                                                {},
                                                Combine::Max};
inline constexpr MetricSpec kEventGapsTotal{"sightline_event_gaps_total",
                                            MetricType::Counter,
                                            "Gaps in the sequence numbers of the worker's events.",
                                            {kWorkerLabel}};
inline constexpr MetricSpec kEventConnectionsLostTotal{
    "sightline_event_connections_lost_total",
    MetricType::Counter,
    "Times the connection to the worker's events was lost, because it ended or was silent.",
    {kWorkerLabel}};
inline constexpr MetricSpec kEventRestartsTotal{"sightline_event_restarts_total",
                                                MetricType::Counter,
                                                "Restarts of the worker's sequence numbers.",
                                                {kWorkerLabel},
                                                {},
                                                Combine::Max};
inline constexpr MetricSpec kEventRelearnsTotal{"sightline_event_relearns_total",
                                                MetricType::Counter,
                                                "Resyncs of the worker's blocks.",
                                                {kWorkerLabel}};
inline constexpr MetricSpec kEventWaitingBlocks{
    "sightline_event_waiting_blocks",
    MetricType::Gauge,
    "Announced blocks of the worker that wait for their parent.",
    {kWorkerLabel}};
inline constexpr MetricSpec kEventHeldBytes{
    "sightline_event_held_bytes", MetricType::Gauge,
    "Bytes of KV events received and not yet applied, of all workers together."};
inline constexpr MetricSpec kEventErrorsTotal{"sightline_event_errors_total",
                                              MetricType::Counter,
                                              "KV events that could not be used, by kind.",
                                              {kWorkerLabel, "kind"},
                                              {},
                                              Combine::Max};
inline constexpr MetricSpec kEventsIgnoredTotal{"sightline_events_ignored_total",
                                                MetricType::Counter,
                                                "KV events that rightly change nothing, by reason.",
                                                {kWorkerLabel, "reason"},
                                                {},
                                                Combine::Max};
inline constexpr MetricSpec kEventLagSeconds{
    "sightline_event_lag_seconds",
    MetricType::Gauge,
    "Time from the engine's timestamp of the last batch to its application, of the slowest rank.",
    {kWorkerLabel},
    {},
    Combine::Max};
inline constexpr MetricSpec kEventThreadTurnSeconds{
    "sightline_event_thread_turn_seconds",
    MetricType::Gauge,
    "Age of the current turn of the thread that reads all workers' events. 0 while it waits.",
    {},
    {},
    Combine::Max};
inline constexpr MetricSpec kBlockSizeMismatchTotal{
    "sightline_block_size_mismatch_total",
    MetricType::Counter,
    "Times the worker's events reported another block size than the known one.",
    {kWorkerLabel},
    {},
    Combine::Max};
inline constexpr MetricSpec kRankMismatchTotal{
    "sightline_rank_mismatch_total",
    MetricType::Counter,
    "Times the worker reported another number of data-parallel ranks than its configuration.",
    {kWorkerLabel},
    {},
    Combine::Max};

inline constexpr std::array kWorkersMetrics = {&kWorkerState,
                                               &kWorkersKeptRouted,
                                               &kWorkerInflight,
                                               &kWorkerBelievedInflight,
                                               &kWorkerQueueRequests,
                                               &kWorkerKvUseRatio,
                                               &kWorkerUnannouncedBlocks,
                                               &kWorkerReadingAgeSeconds,
                                               &kIndexBlocks,
                                               &kIndexKeys,
                                               &kIndexRefusedBlocksTotal,
                                               &kIndexLackedBlocks,
                                               &kIndexGaveWayTotal,
                                               &kIndexAskedAgainTotal,
                                               &kEventsAppliedTotal,
                                               &kEventGapsTotal,
                                               &kEventConnectionsLostTotal,
                                               &kEventRestartsTotal,
                                               &kEventRelearnsTotal,
                                               &kEventWaitingBlocks,
                                               &kEventHeldBytes,
                                               &kEventErrorsTotal,
                                               &kEventsIgnoredTotal,
                                               &kEventLagSeconds,
                                               &kEventThreadTurnSeconds,
                                               &kBlockSizeMismatchTotal,
                                               &kRankMismatchTotal};

}  // namespace sightline::contract
