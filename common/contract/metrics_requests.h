// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <array>

#include "common/contract/metric_spec.h"

// The metrics of requests: outcomes, predictions and the preparation of prompts.
namespace sightline::contract {

// Errors for which peers or this process are to blame.
inline constexpr std::array kErrorsBorn = {
    LabelValues{"unavailable", "worker"},   LabelValues{"timeout", "worker"},
    LabelValues{"corrupt", "worker"},       LabelValues{"overloaded", "worker"},
    LabelValues{"unavailable", "internal"}, LabelValues{"timeout", "internal"},
    LabelValues{"overloaded", "internal"},  LabelValues{"internal", "internal"},
};
// The limits that clients' requests reach, by the names of their settings.
inline constexpr std::array kLimitsBorn = {
    LabelValues{"body-bytes-max"},       LabelValues{"total-body-bytes-max"},
    LabelValues{"header-bytes-max"},     LabelValues{"header-fields-max"},
    LabelValues{"target-bytes-max"},     LabelValues{"connections-max"},
    LabelValues{"open-files"},           LabelValues{"concurrent-requests-max"},
    LabelValues{"media-images-max"},     LabelValues{"media-image-bytes-max"},
    LabelValues{"media-url-bytes-max"},  LabelValues{"media-downloads-max"},
    LabelValues{"media-held-bytes-max"}, LabelValues{"max-model-len"},
    LabelValues{"reservations"},         LabelValues{"explains"},
    LabelValues{"list-answers"},         LabelValues{"routers"},
    LabelValues{"memory-bytes-max"},     LabelValues{"allocation"},
};
// Wrong claims of the index. All other misses have causes that are no fault of the index.
inline constexpr std::array<LabelValues, 1> kMissesBorn = {LabelValues{"", "over", "unexplained"}};
inline constexpr std::array kPredictionsBorn = {LabelValues{"", "equal"}, LabelValues{"", "over"},
                                                LabelValues{"", "under"}};

inline constexpr MetricSpec kRequestsTotal{
    "sightline_requests_total",
    MetricType::Counter,
    "Requests answered on the client port, by route and HTTP status.",
    {"route", "code"}};
inline constexpr MetricSpec kRequestErrorsTotal{
    "sightline_request_errors_total",
    MetricType::Counter,
    "Requests that ended in an error, by error code and by who is to blame.",
    {"code", "blame"},
    {},
    Combine::Sum,
    kErrorsBorn};
inline constexpr MetricSpec kRequestDurationSeconds{
    "sightline_request_duration_seconds",
    MetricType::Histogram,
    "Time of a request in each phase: prepare, queue, prefill, total.",
    {"phase"},
    kDurationBuckets};
inline constexpr MetricSpec kRequestsActive{"sightline_requests_active", MetricType::Gauge,
                                            "Requests that are being processed."};
inline constexpr MetricSpec kRequestsLimit{
    "sightline_requests_limit", MetricType::Gauge,
    "The most requests that are processed at the same time: server.concurrent_requests_max."};
inline constexpr MetricSpec kOverlapBlocksTotal{
    "sightline_overlap_blocks_total",
    MetricType::Counter,
    "Blocks that the chosen worker was expected to reuse.",
    {kWorkerLabel}};
inline constexpr MetricSpec kPromptBlocksTotal{"sightline_prompt_blocks_total",
                                               MetricType::Counter,
                                               "Whole blocks of the prompts sent to the worker.",
                                               {kWorkerLabel}};
inline constexpr MetricSpec kPredictionErrorTokens{
    "sightline_prediction_error_tokens",
    MetricType::Histogram,
    "Distance between predicted and reported cached tokens of a request.",
    {kWorkerLabel},
    kTokenErrorBuckets};
inline constexpr MetricSpec kPredictionsTotal{
    "sightline_predictions_total",
    MetricType::Counter,
    "Predictions compared with the engine's cached_tokens: equal, over, under, or untold (not "
    "reported).",
    {kWorkerLabel, "result"},
    {},
    Combine::Sum,
    kPredictionsBorn};
inline constexpr MetricSpec kPredictionMissesTotal{
    "sightline_prediction_misses_total",
    MetricType::Counter,
    "Predictions over or under the engine's cached_tokens, by cause.",
    {kWorkerLabel, "result", "cause"},
    {},
    Combine::Sum,
    kMissesBorn};
inline constexpr MetricSpec kRelearnsTotal{"sightline_relearns_total",
                                           MetricType::Counter,
                                           "Resyncs of the worker's blocks that the audit started.",
                                           {kWorkerLabel}};
inline constexpr MetricSpec kRelearnsPostponedTotal{
    "sightline_relearns_postponed_total",
    MetricType::Counter,
    "Resyncs that the audit postponed because the last one was too recent.",
    {kWorkerLabel}};
inline constexpr MetricSpec kOverfullTotal{
    "sightline_overfull_total",
    MetricType::Counter,
    "Times the index held more blocks of an engine of the worker than the engine has.",
    {kWorkerLabel}};
inline constexpr MetricSpec kPromptTokenMismatchTotal{
    "sightline_prompt_token_mismatch_total",
    MetricType::Counter,
    "Answers that report other prompt_tokens than an exactly known prompt has, or more reuse.",
    {kWorkerLabel}};
inline constexpr MetricSpec kUnroutedOverlapTotal{
    "sightline_unrouted_overlap_total",
    MetricType::Counter,
    "Requests routed without overlap because their blocks could not be determined, by reason.",
    {"reason"}};
inline constexpr MetricSpec kTokenCacheTextBytesTotal{
    "sightline_token_cache_text_bytes_total",
    MetricType::Counter,
    "Bytes of prompt text whose tokens were cached (hit) or had to be computed (miss).",
    {"result"}};
inline constexpr MetricSpec kTokenCacheEvictionsTotal{
    "sightline_token_cache_evictions_total", MetricType::Counter,
    "Pieces of text that the token cache evicted."};
inline constexpr MetricSpec kTokenCacheBytes{"sightline_token_cache_bytes", MetricType::Gauge,
                                             "Memory that the token cache uses."};
inline constexpr MetricSpec kMediaItemsTotal{"sightline_media_items_total",
                                             MetricType::Counter,
                                             "Media items of requests, by outcome.",
                                             {"outcome"}};
inline constexpr MetricSpec kLimitHitsTotal{
    "sightline_limit_hits_total",
    MetricType::Counter,
    "Requests or peers refused by a limit, by the name of the setting or of the fixed limit.",
    {"limit"},
    {},
    Combine::Sum,
    kLimitsBorn};
inline constexpr MetricSpec kRetriesTotal{
    "sightline_retries_total",
    MetricType::Counter,
    "Requests sent again before their first byte, by the worker that failed and the reason.",
    {kWorkerLabel, "reason"}};
inline constexpr MetricSpec kRetriesRefusedTotal{
    "sightline_retries_refused_total", MetricType::Counter,
    "Retries refused because a fifth of the live requests, and at least three, were already "
    "retries."};
inline constexpr MetricSpec kLostRequestsTotal{
    "sightline_lost_requests_total",
    MetricType::Counter,
    "Requests that got no answer from engines twice: stopped after the second loss, or refused "
    "when repeated.",
    {"outcome"}};
inline constexpr MetricSpec kAdapterChangesTotal{
    "sightline_adapter_changes_total",
    MetricType::Counter,
    "Adapters loaded or unloaded: on all workers (done), on no worker as one refused (undone), on "
    "some as a change could not be reverted (torn).",
    {"action", "outcome"}};
inline constexpr MetricSpec kClientDisconnectsTotal{
    "sightline_client_disconnects_total", MetricType::Counter,
    "Clients that disconnected before their answer was complete."};

inline constexpr std::array kRequestsMetrics = {
    &kRequestsTotal,
    &kRequestErrorsTotal,
    &kRequestDurationSeconds,
    &kRequestsActive,
    &kRequestsLimit,
    &kOverlapBlocksTotal,
    &kPromptBlocksTotal,
    &kPredictionErrorTokens,
    &kPredictionsTotal,
    &kPredictionMissesTotal,
    &kRelearnsTotal,
    &kRelearnsPostponedTotal,
    &kOverfullTotal,
    &kPromptTokenMismatchTotal,
    &kUnroutedOverlapTotal,
    &kTokenCacheTextBytesTotal,
    &kTokenCacheEvictionsTotal,
    &kTokenCacheBytes,
    &kMediaItemsTotal,
    &kLimitHitsTotal,
    &kRetriesTotal,
    &kRetriesRefusedTotal,
    &kLostRequestsTotal,
    &kAdapterChangesTotal,
    &kClientDisconnectsTotal,
};

}  // namespace sightline::contract
