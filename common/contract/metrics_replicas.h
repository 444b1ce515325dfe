// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <array>

#include "common/contract/metric_spec.h"

// The metrics of NATS and of what arrives over it: the streams of agents, peers, the load of other
// routers.
namespace sightline::contract {

inline constexpr MetricSpec kNatsConnected{
    "sightline_nats_connected",
    MetricType::Gauge,
    "1 while connected to NATS, by connection: control or events.",
    {"connection"}};
inline constexpr MetricSpec kNatsConnectsTotal{"sightline_nats_connects_total",
                                               MetricType::Counter,
                                               "Connections to NATS made, the first included.",
                                               {"connection"}};
inline constexpr MetricSpec kNatsCertificateExpiry{
    "sightline_nats_certificate_expiry_timestamp_seconds",
    MetricType::Gauge,
    "When the first certificate ends of a file of the NATS connection: certificate or authority.",
    {"file"},
    {},
    Combine::Max};
inline constexpr MetricSpec kNatsMessagesTotal{"sightline_nats_messages_total",
                                               MetricType::Counter,
                                               "Messages of NATS that came in or went out.",
                                               {"connection", "direction"}};
inline constexpr MetricSpec kNatsBytesTotal{"sightline_nats_bytes_total",
                                            MetricType::Counter,
                                            "Their payloads in bytes.",
                                            {"connection", "direction"}};
inline constexpr MetricSpec kNatsDroppedTotal{
    "sightline_nats_dropped_total",
    MetricType::Counter,
    "Messages of NATS neither sent nor read, and subjects refused, by reason.",
    {"connection", "reason"}};
inline constexpr MetricSpec kNatsRoundTripSeconds{
    "sightline_nats_round_trip_seconds",
    MetricType::Gauge,
    "What a message of this router took through NATS back to it, or has been under way.",
    {},
    {},
    Combine::Max};
inline constexpr MetricSpec kNatsStale{
    "sightline_nats_stale",
    MetricType::Gauge,
    "1 while nothing that this router sent within replica.stale_after has come back to it.",
    {},
    {},
    Combine::Max};
inline constexpr MetricSpec kReplicaFramesTotal{"sightline_replica_frames_total",
                                                MetricType::Counter,
                                                "Frames of agents applied to the index.",
                                                {"worker"},
                                                {},
                                                Combine::Max};
inline constexpr MetricSpec kReplicaOperationsTotal{
    "sightline_replica_operations_total",
    MetricType::Counter,
    "Operations of agents, of frames and dumps, applied to the index.",
    {"worker"},
    {},
    Combine::Max};
inline constexpr MetricSpec kReplicaStreamEventsTotal{
    "sightline_replica_stream_events_total",
    MetricType::Counter,
    "What befell an agent's stream: epoch, gap, loss, contest, forgotten, relearn-put-off.",
    {"worker", "event"}};
inline constexpr MetricSpec kReplicaAsksTotal{
    "sightline_replica_asks_total",
    MetricType::Counter,
    "What agents were asked for: question, range, dump, chunk, relearn.",
    {"worker", "kind"}};
inline constexpr MetricSpec kReplicaDumpsTotal{"sightline_replica_dumps_total",
                                               MetricType::Counter,
                                               "Dumps of agents, by result: whole or failed.",
                                               {"worker", "result"}};
inline constexpr std::array<LabelValues, 2> kDigestsBorn = {LabelValues{"", "equal"},
                                                            LabelValues{"", "unequal"}};
inline constexpr MetricSpec kReplicaDigestsTotal{
    "sightline_replica_digests_total",
    MetricType::Counter,
    "Comparisons of the index with an agent's digest: equal, unequal, capped.",
    {"worker", "result"},
    {},
    Combine::Sum,
    kDigestsBorn};
inline constexpr MetricSpec kReplicaDroppedTotal{
    "sightline_replica_dropped_total",
    MetricType::Counter,
    "Messages of agents that were read and not used, by reason.",
    {"worker", "reason"}};
inline constexpr MetricSpec kReplicaRefusedTotal{
    "sightline_replica_refused_total",
    MetricType::Counter,
    "Messages on agents' subjects that were not read, by reason.",
    {"worker", "reason"}};
inline constexpr MetricSpec kReplicaWaitingBytes{
    "sightline_replica_waiting_bytes",
    MetricType::Gauge,
    "Frames of agents that wait for those in front of them.",
    {"worker"}};
inline constexpr MetricSpec kReplicaBehindFrames{"sightline_replica_behind_frames",
                                                 MetricType::Gauge,
                                                 "Frames of an agent known of and not applied.",
                                                 {"worker"},
                                                 {},
                                                 Combine::Max};
inline constexpr MetricSpec kReplicaAgentsDead{
    "sightline_replica_agents_dead",
    MetricType::Gauge,
    "Ranks of the worker whose agent has ended, or answers nothing though NATS is well.",
    {"worker"},
    {},
    Combine::Max};
inline constexpr MetricSpec kReplicaLagSeconds{
    "sightline_replica_lag_seconds",
    MetricType::Gauge,
    "Age of an engine's last events at its agent, by two machines' clocks.",
    {"worker"},
    {},
    Combine::Max};
inline constexpr MetricSpec kReplicaDigestEqualTimestampSeconds{
    "sightline_replica_digest_equal_timestamp_seconds",
    MetricType::Gauge,
    "When the index last equalled the agent's digest, of the rank where that is longest ago; 0: "
    "never.",
    {"worker"},
    {},
    Combine::Max};
inline constexpr MetricSpec kReplicaHeldBytes{"sightline_replica_held_bytes", MetricType::Gauge,
                                              "Messages of agents received and not read."};
inline constexpr MetricSpec kReplicaThreadTurnSeconds{
    "sightline_replica_thread_turn_seconds",
    MetricType::Gauge,
    "How long the thread that follows agents has been busy without a pause.",
    {},
    {},
    Combine::Max};
inline constexpr MetricSpec kReplicaMembers{
    "sightline_replica_members",
    MetricType::Gauge,
    "Other processes that announce themselves over NATS and fit to this one, by role.",
    {"role"},
    {},
    Combine::Max};
inline constexpr MetricSpec kReplicaMembersUnfit{
    "sightline_replica_members_unfit",
    MetricType::Gauge,
    "Other processes that announce themselves and do not fit, by what differs.",
    {"difference"},
    {},
    Combine::Max};
inline constexpr MetricSpec kReplicaMembersRefusedTotal{
    "sightline_replica_members_refused_total",
    MetricType::Counter,
    "Announcements left aside: unproven, repeated, malformed, or beyond members-max.",
    {"reason"}};
inline constexpr std::array kReplicasMetrics = {
    &kNatsConnected,
    &kNatsConnectsTotal,
    &kNatsCertificateExpiry,
    &kNatsMessagesTotal,
    &kNatsBytesTotal,
    &kNatsDroppedTotal,
    &kNatsRoundTripSeconds,
    &kNatsStale,
    &kReplicaFramesTotal,
    &kReplicaOperationsTotal,
    &kReplicaStreamEventsTotal,
    &kReplicaAsksTotal,
    &kReplicaDumpsTotal,
    &kReplicaDigestsTotal,
    &kReplicaDroppedTotal,
    &kReplicaRefusedTotal,
    &kReplicaWaitingBytes,
    &kReplicaBehindFrames,
    &kReplicaAgentsDead,
    &kReplicaLagSeconds,
    &kReplicaDigestEqualTimestampSeconds,
    &kReplicaHeldBytes,
    &kReplicaThreadTurnSeconds,
    &kReplicaMembers,
    &kReplicaMembersUnfit,
    &kReplicaMembersRefusedTotal,
};

}  // namespace sightline::contract
