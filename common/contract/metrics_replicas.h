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
                                               "Connections to NATS made, including the first.",
                                               {"connection"}};
inline constexpr MetricSpec kNatsCertificateExpiry{
    "sightline_nats_certificate_expiry_timestamp_seconds",
    MetricType::Gauge,
    "Time when the first certificate in a file of the NATS connection expires: certificate or "
    "authority.",
    {"file"},
    {},
    Combine::Max};
inline constexpr MetricSpec kNatsMessagesTotal{
    "sightline_nats_messages_total",
    MetricType::Counter,
    "Messages received from NATS (in) or sent to it (out).",
    {"connection", "direction"}};
inline constexpr MetricSpec kNatsBytesTotal{"sightline_nats_bytes_total",
                                            MetricType::Counter,
                                            "Payload bytes of these messages.",
                                            {"connection", "direction"}};
inline constexpr MetricSpec kNatsDroppedTotal{
    "sightline_nats_dropped_total",
    MetricType::Counter,
    "NATS messages that were neither sent nor read, and refused subjects, by reason.",
    {"connection", "reason"}};
inline constexpr MetricSpec kNatsRoundTripSeconds{
    "sightline_nats_round_trip_seconds",
    MetricType::Gauge,
    "Time that a message of this router took through NATS back to it, or has taken so far.",
    {},
    {},
    Combine::Max};
inline constexpr MetricSpec kNatsStale{
    "sightline_nats_stale",
    MetricType::Gauge,
    "1 while no message that this router sent within replica.stale_after has come back to it.",
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
    "Operations of agents, in frames and snapshots, applied to the index.",
    {"worker"},
    {},
    Combine::Max};
inline constexpr MetricSpec kReplicaStreamEventsTotal{
    "sightline_replica_stream_events_total",
    MetricType::Counter,
    "Incidents of an agent's stream: epoch, gap, loss, contest, forgotten, relearn-put-off.",
    {"worker", "event"}};
inline constexpr MetricSpec kReplicaAsksTotal{
    "sightline_replica_asks_total",
    MetricType::Counter,
    "Requests to agents: question, range, dump, chunk, relearn.",
    {"worker", "kind"}};
inline constexpr MetricSpec kReplicaDumpsTotal{"sightline_replica_dumps_total",
                                               MetricType::Counter,
                                               "Snapshots of agents, by result: whole or failed.",
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
    "Bytes of agents' frames that wait for earlier frames.",
    {"worker"}};
inline constexpr MetricSpec kReplicaBehindFrames{
    "sightline_replica_behind_frames",
    MetricType::Gauge,
    "Frames of an agent that are known and not applied.",
    {"worker"},
    {},
    Combine::Max};
inline constexpr MetricSpec kReplicaAgentsDead{
    "sightline_replica_agents_dead",
    MetricType::Gauge,
    "Ranks of the worker whose agent has ended, or does not answer although NATS works.",
    {"worker"},
    {},
    Combine::Max};
inline constexpr MetricSpec kReplicaLagSeconds{
    "sightline_replica_lag_seconds",
    MetricType::Gauge,
    "Age of an engine's last events at its agent, by the clocks of the two machines.",
    {"worker"},
    {},
    Combine::Max};
inline constexpr MetricSpec kReplicaDigestEqualTimestampSeconds{
    "sightline_replica_digest_equal_timestamp_seconds",
    MetricType::Gauge,
    "Time when the index last equalled the agent's digest, of the rank where this is longest ago. "
    "0: never.",
    {"worker"},
    {},
    Combine::Max};
inline constexpr MetricSpec kReplicaHeldBytes{
    "sightline_replica_held_bytes", MetricType::Gauge,
    "Bytes of agents' messages that are received and not read."};
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
    "Other processes that announce themselves over NATS and fit this one, by role.",
    {"role"},
    {},
    Combine::Max};
inline constexpr MetricSpec kReplicaMembersUnfit{
    "sightline_replica_members_unfit",
    MetricType::Gauge,
    "Other processes that announce themselves and do not fit, by the difference.",
    {"difference"},
    {},
    Combine::Max};
inline constexpr MetricSpec kReplicaMembersRefusedTotal{
    "sightline_replica_members_refused_total",
    MetricType::Counter,
    "Announcements that were ignored: unproven, repeated, malformed, or beyond members-max.",
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
