// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <array>

#include "common/contract/metric_spec.h"

// The metrics of the load that routers share.
namespace sightline::contract {

inline constexpr MetricSpec kLoadMessagesTotal{
    "sightline_load_messages_total",
    MetricType::Counter,
    "Messages about reserved load, sent to other routers (out) or received from them (in).",
    {"direction"}};
inline constexpr MetricSpec kLoadSnapshotsTotal{
    "sightline_load_snapshots_total",
    MetricType::Counter,
    "Of these, complete reports of all load that a router has reserved.",
    {"direction"}};
inline constexpr MetricSpec kLoadGapsTotal{
    "sightline_load_gaps_total",
    MetricType::Counter,
    "Times that load messages of another router were missing, detected by sequence or nats.",
    {"seen_by"}};
inline constexpr MetricSpec kLoadLeftAsideTotal{
    "sightline_load_left_aside_total",
    MetricType::Counter,
    "Load messages, or ranks in them, that were not counted, by reason.",
    {"reason"}};
inline constexpr MetricSpec kLoadSources{
    "sightline_load_sources",
    MetricType::Gauge,
    "Other routers whose reserved load counts here like this router's own.",
    {},
    {},
    Combine::Max};
inline constexpr MetricSpec kLoadSourcesGoneTotal{
    "sightline_load_sources_gone_total",
    MetricType::Counter,
    "Routers whose load was removed because they announced their end or were silent for 3 s, by "
    "reason.",
    {"reason"}};
inline constexpr MetricSpec kLoadSourceAgeSeconds{
    "sightline_load_source_age_seconds",
    MetricType::Gauge,
    "Time since the last message of the router that has been silent longest, of all load sources.",
    {},
    {},
    Combine::Max};
inline constexpr MetricSpec kLoadTakenTotal{
    "sightline_load_taken_total",
    MetricType::Counter,
    "Reservations taken over by this router (here) or by another (elsewhere), and takeovers "
    "dropped unsent (untold).",
    {"where"}};

inline constexpr std::array kLoadMetrics = {
    &kLoadMessagesTotal, &kLoadSnapshotsTotal,   &kLoadGapsTotal,        &kLoadLeftAsideTotal,
    &kLoadSources,       &kLoadSourcesGoneTotal, &kLoadSourceAgeSeconds, &kLoadTakenTotal,
};

}  // namespace sightline::contract
