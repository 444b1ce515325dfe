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
    "Messages on booked load told to other routers, and heard of them.",
    {"direction"}};
inline constexpr MetricSpec kLoadSnapshotsTotal{
    "sightline_load_snapshots_total",
    MetricType::Counter,
    "Of these, whole tellings of all that a router has booked.",
    {"direction"}};
inline constexpr MetricSpec kLoadGapsTotal{
    "sightline_load_gaps_total",
    MetricType::Counter,
    "Times that words of another router on its load were missing, seen by sequence or nats.",
    {"seen_by"}};
inline constexpr MetricSpec kLoadLeftAsideTotal{
    "sightline_load_left_aside_total",
    MetricType::Counter,
    "Messages on load, or ranks in them, that did not count, by reason.",
    {"reason"}};
inline constexpr MetricSpec kLoadSources{
    "sightline_load_sources",
    MetricType::Gauge,
    "Other routers whose booked load counts here like one's own.",
    {},
    {},
    Combine::Max};
inline constexpr MetricSpec kLoadSourcesGoneTotal{
    "sightline_load_sources_gone_total",
    MetricType::Counter,
    "Routers whose load counts no more: they said that they end, or were silent for 3 s.",
    {"reason"}};
inline constexpr MetricSpec kLoadSourceAgeSeconds{
    "sightline_load_source_age_seconds",
    MetricType::Gauge,
    "Since the router that was silent for longest was heard, of those that count.",
    {},
    {},
    Combine::Max};
inline constexpr MetricSpec kLoadTakenTotal{
    "sightline_load_taken_total",
    MetricType::Counter,
    "Reservations taken over from another router, by where: here, elsewhere; or untold.",
    {"where"}};

inline constexpr std::array kLoadMetrics = {
    &kLoadMessagesTotal, &kLoadSnapshotsTotal,   &kLoadGapsTotal,        &kLoadLeftAsideTotal,
    &kLoadSources,       &kLoadSourcesGoneTotal, &kLoadSourceAgeSeconds, &kLoadTakenTotal,
};

}  // namespace sightline::contract
