// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <array>

#include "common/contract/metric_spec.h"

// The metrics of what the cache is worth: tokens that could be reused, that the choice predicted,
// and that were reused. Build ratios from their sums: all metrics of "judged answers" count at the
// same answers.
namespace sightline::contract {

inline constexpr std::array<LabelValues, 2> kPredictedBorn = {LabelValues{"", "text"},
                                                              LabelValues{"", "image"}};
inline constexpr std::array<LabelValues, 8> kDecisionsBorn = {
    LabelValues{"only_candidate"},   LabelValues{"least_cost"},    LabelValues{"spread"},
    LabelValues{"fewest_in_flight"}, LabelValues{"lowest_kv_use"}, LabelValues{"draw"},
    LabelValues{"in_turn"},          LabelValues{"least_loaded"},
};

inline constexpr std::array kOverlapsBorn = {LabelValues{"none"}, LabelValues{"part"},
                                             LabelValues{"most"}};

inline constexpr MetricSpec kPromptTokensTotal{
    "sightline_prompt_tokens_total",
    MetricType::Counter,
    "Tokens of the prompts sent to the worker, as the frontend counts or estimates them.",
    {kWorkerLabel}};
inline constexpr MetricSpec kJudgedPromptTokensTotal{
    "sightline_judged_prompt_tokens_total",
    MetricType::Counter,
    "Prompt tokens of the worker's judged answers: answers whose reuse was both predicted and "
    "reported.",
    {kWorkerLabel}};
inline constexpr MetricSpec kBestTokensTotal{
    "sightline_best_tokens_total",
    MetricType::Counter,
    "Prompt tokens of judged answers that were held by the worker with the most of them.",
    {kWorkerLabel}};
inline constexpr MetricSpec kPredictedTokensTotal{
    "sightline_predicted_tokens_total",
    MetricType::Counter,
    "Prompt tokens of judged answers that the worker was expected to reuse: text or image.",
    {kWorkerLabel, "content"},
    {},
    Combine::Sum,
    kPredictedBorn};
inline constexpr MetricSpec kReusedTokensTotal{
    "sightline_reused_tokens_total",
    MetricType::Counter,
    "Prompt tokens of judged answers that the worker reported as reused.",
    {kWorkerLabel}};
inline constexpr MetricSpec kSavedPrefillSecondsTotal{
    "sightline_saved_prefill_seconds_total",
    MetricType::Counter,
    "Reused tokens multiplied by the seconds that the worker needs to compute a token.",
    {kWorkerLabel}};
inline constexpr MetricSpec kPrefillSecondsPerToken{
    "sightline_prefill_seconds_per_token",
    MetricType::Gauge,
    "Seconds that the worker needs to compute a token, estimated from its answers.",
    {kWorkerLabel},
    {},
    Combine::Max};
inline constexpr MetricSpec kDecisionsTotal{"sightline_decisions_total",
                                            MetricType::Counter,
                                            "Choices of a worker, by the reason for the choice.",
                                            {"reason"},
                                            {},
                                            Combine::Sum,
                                            kDecisionsBorn};
inline constexpr MetricSpec kFirstTokenSeconds{
    "sightline_first_token_seconds",
    MetricType::Histogram,
    "Time to the first token, by the expected reuse of the prompt: none, part, most.",
    {"overlap"},
    kDurationBuckets,
    Combine::Sum,
    kOverlapsBorn};

inline constexpr MetricSpec kAnswersBegunTotal{
    "sightline_answers_begun_total",
    MetricType::Counter,
    "Answers of the worker that began: with their first token, or as a whole.",
    {kWorkerLabel}};

inline constexpr std::array kReuseMetrics = {
    &kPromptTokensTotal,      &kJudgedPromptTokensTotal, &kBestTokensTotal,
    &kPredictedTokensTotal,   &kReusedTokensTotal,       &kSavedPrefillSecondsTotal,
    &kPrefillSecondsPerToken, &kDecisionsTotal,          &kFirstTokenSeconds,
    &kAnswersBegunTotal,
};

}  // namespace sightline::contract
