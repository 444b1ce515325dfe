// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <array>

#include "common/contract/metric_spec.h"

// The metrics of an agent.
namespace sightline::contract {

inline constexpr MetricSpec kAgentStreamsOpen{
    "sightline_agent_streams_open",
    MetricType::Gauge,
    "Ranks of the worker whose blocks are all known and published to routers.",
    {kWorkerLabel},
    {},
    Combine::Max};
inline constexpr MetricSpec kAgentBlocks{"sightline_agent_blocks",
                                         MetricType::Gauge,
                                         "Blocks that the worker holds, as published to routers.",
                                         {kWorkerLabel, "tier"},
                                         {},
                                         Combine::Max};
inline constexpr MetricSpec kAgentMemoryBytes{
    "sightline_agent_memory_bytes",
    MetricType::Gauge,
    "Memory for published data of the worker: blocks, and frames and snapshots that can be "
    "requested again.",
    {kWorkerLabel}};
inline constexpr MetricSpec kAgentEpochsTotal{
    "sightline_agent_epochs_total",
    MetricType::Counter,
    "Epochs that began for the worker because the continuity of its data was not proved.",
    {kWorkerLabel}};
inline constexpr MetricSpec kAgentFramesTotal{"sightline_agent_frames_total",
                                              MetricType::Counter,
                                              "Frames made from the worker's events.",
                                              {kWorkerLabel}};
inline constexpr MetricSpec kAgentUnsentTotal{
    "sightline_agent_unsent_total",
    MetricType::Counter,
    "Frames and replies not sent because NATS was disconnected or accepted too little. Routers "
    "request them again.",
    {kWorkerLabel}};
inline constexpr MetricSpec kAgentRepliesTotal{
    "sightline_agent_replies_total",
    MetricType::Counter,
    "Replies to routers: answer, range, chunk, range-gone, epoch-gone, dump-gone.",
    {kWorkerLabel, "kind"}};
inline constexpr MetricSpec kAgentDumpsTotal{
    "sightline_agent_dumps_total",
    MetricType::Counter,
    "Snapshots of all blocks of the worker: made, or restarted (anew) because too much changed.",
    {kWorkerLabel, "outcome"}};
inline constexpr MetricSpec kAgentAsksRefusedTotal{
    "sightline_agent_asks_refused_total",
    MetricType::Counter,
    "Messages to the agent that got no reply, by reason.",
    {"reason"}};
inline constexpr MetricSpec kAgentRelearnsTotal{
    "sightline_agent_relearns_total",
    MetricType::Counter,
    "Resyncs of the worker's blocks that routers requested from the agent.",
    {kWorkerLabel}};

inline constexpr std::array kAgentsMetrics = {
    &kAgentStreamsOpen,      &kAgentBlocks,        &kAgentMemoryBytes,  &kAgentEpochsTotal,
    &kAgentFramesTotal,      &kAgentUnsentTotal,   &kAgentRepliesTotal, &kAgentDumpsTotal,
    &kAgentAsksRefusedTotal, &kAgentRelearnsTotal,
};

}  // namespace sightline::contract
