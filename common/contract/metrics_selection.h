// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <array>

#include "common/contract/metric_spec.h"

// The metrics of the selection API and of the frontends that call it.
namespace sightline::contract {

inline constexpr MetricSpec kSelectionRequestsTotal{
    "sightline_selection_requests_total",
    MetricType::Counter,
    "Requests answered by the selection API, by HTTP status.",
    {"code"}};
inline constexpr MetricSpec kSelectionMismatchesTotal{
    "sightline_selection_mismatches_total",
    MetricType::Counter,
    "Requests refused because frontend and router compute different block keys, by the difference.",
    {"difference"}};
inline constexpr MetricSpec kReservationsOpen{"sightline_reservations_open", MetricType::Gauge,
                                              "Reservations that other processes hold here."};
inline constexpr MetricSpec kReservationsAdoptedTotal{
    "sightline_reservations_adopted_total", MetricType::Counter,
    "Reservations that a frontend held, made at another router, and that were added here."};
inline constexpr MetricSpec kReservationsEndedTotal{
    "sightline_reservations_ended_total",
    MetricType::Counter,
    "Reservations of other processes that ended, by reason.",
    {"reason"}};
inline constexpr MetricSpec kSelectionFailoversTotal{
    "sightline_selection_failovers_total", MetricType::Counter,
    "Requests of this frontend that were sent to another router, or again to the same one."};
inline constexpr MetricSpec kRoutersKnown{"sightline_routers_known",
                                          MetricType::Gauge,
                                          "Routers that this frontend may use, by state.",
                                          {"state"},
                                          {},
                                          Combine::Max};
inline constexpr MetricSpec kRouterFailuresTotal{
    "sightline_router_failures_total", MetricType::Counter,
    "Calls of this frontend that a router did not answer, or answered with nonsense."};
inline constexpr MetricSpec kReservationsHeld{"sightline_reservations_held", MetricType::Gauge,
                                              "Reservations of this frontend at its routers."};
inline constexpr MetricSpec kReservationsMovedTotal{
    "sightline_reservations_moved_total", MetricType::Counter,
    "Reservations of this frontend that moved to another router after theirs failed."};
inline constexpr MetricSpec kSelectionNotesDroppedTotal{
    "sightline_selection_notes_dropped_total", MetricType::Counter,
    "First tokens and ends that this frontend could not report to a router. The next list corrects "
    "them."};

inline constexpr std::array kSelectionMetrics = {
    &kSelectionRequestsTotal,
    &kSelectionMismatchesTotal,
    &kReservationsOpen,
    &kReservationsAdoptedTotal,
    &kReservationsEndedTotal,
    &kSelectionFailoversTotal,
    &kRoutersKnown,
    &kRouterFailuresTotal,
    &kReservationsHeld,
    &kReservationsMovedTotal,
    &kSelectionNotesDroppedTotal,
};

}  // namespace sightline::contract
