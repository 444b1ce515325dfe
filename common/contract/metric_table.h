// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

// Every metric, once: code resolves its handles by these constants, docs/metrics.md is made from
// them. Names follow the Prometheus rules: unit last, counters end in _total.
namespace sightline::contract {

enum class MetricType { Counter, Gauge, Histogram };

struct MetricSpec {
  std::string_view name;
  MetricType type = MetricType::Counter;
  std::string_view help;                     // one line
  std::array<std::string_view, 3> labels{};  // empty ones unused
  std::span<const double> buckets{};         // upper bounds, ascending; histograms only

  [[nodiscard]] constexpr std::size_t label_count() const {
    std::size_t count = 0;
    while (count < labels.size() && !labels[count].empty()) ++count;
    return count;
  }
};

// Label that names a worker: series with it go away with the worker.
inline constexpr std::string_view kWorkerLabel = "worker";

// Seconds, from a whole answer of a small model to a prefill of several 100,000 tokens.
inline constexpr std::array kDurationBuckets = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05,
                                                0.1,   0.25,   0.5,   1.0,  2.5,   5.0,
                                                10.0,  30.0,   60.0,  300.0};
// Tokens by which a prediction is off.
inline constexpr std::array kTokenErrorBuckets = {0.0,   16.0,   32.0,   64.0,    128.0,  256.0,
                                                  512.0, 1024.0, 4096.0, 16384.0, 65536.0};

inline constexpr MetricSpec kRequestsTotal{
    "sightline_requests_total",
    MetricType::Counter,
    "Requests answered on the client port, by route and HTTP status.",
    {"route", "code"}};
inline constexpr MetricSpec kRequestErrorsTotal{
    "sightline_request_errors_total",
    MetricType::Counter,
    "Requests that ended in an error, by error code and whose fault it was.",
    {"code", "blame"}};
inline constexpr MetricSpec kRequestDurationSeconds{
    "sightline_request_duration_seconds",
    MetricType::Histogram,
    "Time of a request in each phase: prepare, queue, prefill, total.",
    {"phase"},
    kDurationBuckets};
inline constexpr MetricSpec kRequestsActive{"sightline_requests_active", MetricType::Gauge,
                                            "Requests being worked on."};
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
    "Predictions compared with the engine's cached_tokens: equal, over, under, untold.",
    {kWorkerLabel, "result"}};
inline constexpr MetricSpec kPredictionMissesTotal{
    "sightline_prediction_misses_total",
    MetricType::Counter,
    "Predictions over or under the engine's cached_tokens, by cause.",
    {kWorkerLabel, "result", "cause"}};
inline constexpr MetricSpec kRelearnsTotal{
    "sightline_relearns_total",
    MetricType::Counter,
    "Times the audit had the worker's blocks forgotten and learned anew.",
    {kWorkerLabel}};
inline constexpr MetricSpec kRelearnsPostponedTotal{
    "sightline_relearns_postponed_total",
    MetricType::Counter,
    "Times it did not have them learned anew, as they had been too lately.",
    {kWorkerLabel}};
inline constexpr MetricSpec kOverfullTotal{
    "sightline_overfull_total",
    MetricType::Counter,
    "Times more blocks of an engine of the worker were claimed than it has.",
    {kWorkerLabel}};
inline constexpr MetricSpec kPromptTokenMismatchTotal{
    "sightline_prompt_token_mismatch_total",
    MetricType::Counter,
    "Answers whose prompt_tokens differ from the router's own count of an exactly known prompt.",
    {kWorkerLabel}};
inline constexpr MetricSpec kUnroutedOverlapTotal{
    "sightline_unrouted_overlap_total",
    MetricType::Counter,
    "Requests routed without overlap because their blocks could not be known, by reason.",
    {"reason"}};
inline constexpr MetricSpec kTokenCacheTextBytesTotal{
    "sightline_token_cache_text_bytes_total",
    MetricType::Counter,
    "Bytes of prompt text whose tokens were known (hit) or had to be computed (miss).",
    {"result"}};
inline constexpr MetricSpec kTokenCacheEvictionsTotal{
    "sightline_token_cache_evictions_total", MetricType::Counter,
    "Pieces of text that the token cache gave up for others."};
inline constexpr MetricSpec kTokenCacheBytes{"sightline_token_cache_bytes", MetricType::Gauge,
                                             "Memory that the token cache takes."};
inline constexpr MetricSpec kMediaItemsTotal{"sightline_media_items_total",
                                             MetricType::Counter,
                                             "Media items of requests, by what became of them.",
                                             {"outcome"}};
inline constexpr MetricSpec kLimitHitsTotal{
    "sightline_limit_hits_total",
    MetricType::Counter,
    "Requests or peers refused by a limit, by the name of the setting or of the fixed limit.",
    {"limit"}};
inline constexpr MetricSpec kWorkerState{"sightline_worker_state",
                                         MetricType::Gauge,
                                         "1 for the state the worker is in, 0 for the others.",
                                         {kWorkerLabel, "state"}};
inline constexpr MetricSpec kWorkersKeptRouted{
    "sightline_workers_kept_routed", MetricType::Gauge,
    "Workers that do not answer in time and stay routed because most are so; 0 otherwise."};
inline constexpr MetricSpec kWorkerInflight{"sightline_worker_inflight",
                                            MetricType::Gauge,
                                            "Requests that this router has running on the worker.",
                                            {kWorkerLabel}};
inline constexpr MetricSpec kIndexBlocks{"sightline_index_blocks",
                                         MetricType::Gauge,
                                         "Blocks that the worker is known to hold on the GPU.",
                                         {kWorkerLabel}};
inline constexpr MetricSpec kIndexKeys{
    "sightline_index_keys", MetricType::Gauge,
    "Distinct blocks that the index holds, of all workers and tiers together."};
inline constexpr MetricSpec kIndexRefusedBlocksTotal{
    "sightline_index_refused_blocks_total", MetricType::Counter,
    "Announced blocks that found no room in the index."};
inline constexpr MetricSpec kEventsAppliedTotal{"sightline_events_applied_total",
                                                MetricType::Counter,
                                                "KV events of the worker applied to the index.",
                                                {kWorkerLabel}};
inline constexpr MetricSpec kEventGapsTotal{"sightline_event_gaps_total",
                                            MetricType::Counter,
                                            "Gaps in the sequence numbers of the worker's events.",
                                            {kWorkerLabel}};
inline constexpr MetricSpec kEventConnectionsLostTotal{
    "sightline_event_connections_lost_total",
    MetricType::Counter,
    "Times the connection to the worker's events was lost, by its end or its silence.",
    {kWorkerLabel}};
inline constexpr MetricSpec kEventRestartsTotal{"sightline_event_restarts_total",
                                                MetricType::Counter,
                                                "Times the worker's events began a new count.",
                                                {kWorkerLabel}};
inline constexpr MetricSpec kEventRelearnsTotal{"sightline_event_relearns_total",
                                                MetricType::Counter,
                                                "Times the worker's blocks were learned anew.",
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
                                              {kWorkerLabel, "kind"}};
inline constexpr MetricSpec kEventsIgnoredTotal{"sightline_events_ignored_total",
                                                MetricType::Counter,
                                                "KV events that rightly change nothing, by reason.",
                                                {kWorkerLabel, "reason"}};
inline constexpr MetricSpec kEventLagSeconds{
    "sightline_event_lag_seconds",
    MetricType::Gauge,
    "Time from the engine's batch timestamp to its application, last batch, slowest rank.",
    {kWorkerLabel}};
inline constexpr MetricSpec kEventThreadTurnSeconds{
    "sightline_event_thread_turn_seconds", MetricType::Gauge,
    "Age of the turn at which the thread is that reads all workers' events; 0 while it waits."};
inline constexpr MetricSpec kBlockSizeMismatchTotal{
    "sightline_block_size_mismatch_total",
    MetricType::Counter,
    "Times the worker's events told another block size than was known of it.",
    {kWorkerLabel}};
inline constexpr MetricSpec kRankMismatchTotal{
    "sightline_rank_mismatch_total",
    MetricType::Counter,
    "Times the worker told another number of data-parallel ranks than its configuration.",
    {kWorkerLabel}};
inline constexpr MetricSpec kRetriesTotal{
    "sightline_retries_total",
    MetricType::Counter,
    "Requests sent again before their first byte, by the worker that failed them and the reason.",
    {kWorkerLabel, "reason"}};
inline constexpr MetricSpec kRetriesRefusedTotal{
    "sightline_retries_refused_total", MetricType::Counter,
    "Requests not sent again because a fifth of the live ones, and three, were already."};
inline constexpr MetricSpec kLostRequestsTotal{
    "sightline_lost_requests_total",
    MetricType::Counter,
    "Requests that engines gave no answer to twice: stopped after that, or refused when repeated.",
    {"outcome"}};
inline constexpr MetricSpec kClientDisconnectsTotal{
    "sightline_client_disconnects_total", MetricType::Counter,
    "Clients that left before their answer was complete."};
inline constexpr MetricSpec kConfigReloadsTotal{
    "sightline_config_reloads_total",
    MetricType::Counter,
    "Changes of the configuration file, by result: applied, refused, outranked by a pushed list.",
    {"result"}};
inline constexpr MetricSpec kPushesTotal{
    "sightline_pushes_total",
    MetricType::Counter,
    "Lists of workers and settings pushed here, or told by peers, by what became of them.",
    {"what", "result"}};
inline constexpr MetricSpec kWorkerListGeneration{
    "sightline_worker_list_generation", MetricType::Gauge,
    "Generation of the pushed list of workers in force; 0: none was pushed."};
inline constexpr MetricSpec kWorkerListSource{
    "sightline_worker_list_source",
    MetricType::Gauge,
    "Where the list of workers in force comes from (1): none, file, peers, push.",
    {"source"}};
inline constexpr MetricSpec kSettingsPushed{"sightline_settings_pushed", MetricType::Gauge,
                                            "Settings whose value was pushed."};
inline constexpr MetricSpec kLearnt{
    "sightline_learnt", MetricType::Gauge,
    "1: what could be learnt of the workers at the start is learnt, or its time is over."};
inline constexpr MetricSpec kLogDroppedLinesTotal{
    "sightline_log_dropped_lines_total", MetricType::Counter,
    "Lines of the log dropped because whoever reads it was too slow or had gone."};
inline constexpr MetricSpec kNameLookupsTotal{
    "sightline_name_lookups_total",
    MetricType::Counter,
    "Look-ups of engines' host names, by outcome: found, unknown, unanswered.",
    {"outcome"}};
inline constexpr MetricSpec kNatsConnected{
    "sightline_nats_connected",
    MetricType::Gauge,
    "1 while connected to NATS, by connection: control or events.",
    {"connection"}};
inline constexpr MetricSpec kNatsConnectsTotal{"sightline_nats_connects_total",
                                               MetricType::Counter,
                                               "Connections to NATS made, the first included.",
                                               {"connection"}};
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
inline constexpr MetricSpec kMetricOverflowTotal{
    "sightline_metric_overflow_total",
    MetricType::Counter,
    "Label sets beyond a metric's limit, counted in its series with the labels \"other\".",
    {"metric"}};
inline constexpr MetricSpec kReplicaFramesTotal{"sightline_replica_frames_total",
                                                MetricType::Counter,
                                                "Frames of agents applied to the index.",
                                                {"worker"}};
inline constexpr MetricSpec kReplicaOperationsTotal{
    "sightline_replica_operations_total",
    MetricType::Counter,
    "Operations of agents, of frames and dumps, applied to the index.",
    {"worker"}};
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
inline constexpr MetricSpec kReplicaDigestsTotal{
    "sightline_replica_digests_total",
    MetricType::Counter,
    "Comparisons of the index with an agent's digest: equal, unequal, capped.",
    {"worker", "result"}};
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
                                                 {"worker"}};
inline constexpr MetricSpec kReplicaLagSeconds{
    "sightline_replica_lag_seconds",
    MetricType::Gauge,
    "Age of an engine's last events at its agent, by two machines' clocks.",
    {"worker"}};
inline constexpr MetricSpec kReplicaDigestEqualTimestampSeconds{
    "sightline_replica_digest_equal_timestamp_seconds",
    MetricType::Gauge,
    "When the index last equalled the agent's digest, of the rank where that is longest ago; 0: "
    "never.",
    {"worker"}};
inline constexpr MetricSpec kReplicaHeldBytes{"sightline_replica_held_bytes", MetricType::Gauge,
                                              "Messages of agents received and not read."};
inline constexpr MetricSpec kReplicaThreadTurnSeconds{
    "sightline_replica_thread_turn_seconds", MetricType::Gauge,
    "How long the thread that follows agents has been busy without a pause."};
inline constexpr MetricSpec kSelectionRequestsTotal{
    "sightline_selection_requests_total",
    MetricType::Counter,
    "Requests answered by the selection API, by HTTP status.",
    {"code"}};
inline constexpr MetricSpec kSelectionMismatchesTotal{
    "sightline_selection_mismatches_total",
    MetricType::Counter,
    "Questions refused because the keys were made for others, by what differs.",
    {"difference"}};
inline constexpr MetricSpec kReservationsOpen{"sightline_reservations_open", MetricType::Gauge,
                                              "Reservations that other processes hold here."};
inline constexpr MetricSpec kReservationsAdoptedTotal{
    "sightline_reservations_adopted_total", MetricType::Counter,
    "Reservations that a frontend held, made elsewhere, and that were booked here anew."};
inline constexpr MetricSpec kReservationsEndedTotal{
    "sightline_reservations_ended_total",
    MetricType::Counter,
    "Reservations of other processes that ended, by why.",
    {"reason"}};
inline constexpr MetricSpec kSelectionFailoversTotal{
    "sightline_selection_failovers_total", MetricType::Counter,
    "Questions of this frontend that went to another router, or again to one."};
inline constexpr MetricSpec kRoutersKnown{"sightline_routers_known",
                                          MetricType::Gauge,
                                          "Routers that this frontend may ask, by state.",
                                          {"state"}};
inline constexpr MetricSpec kRouterFailuresTotal{
    "sightline_router_failures_total", MetricType::Counter,
    "Calls of this frontend that a router did not answer, or not with sense."};
inline constexpr MetricSpec kReservationsHeld{"sightline_reservations_held", MetricType::Gauge,
                                              "Reservations of this frontend at its routers."};
inline constexpr MetricSpec kReservationsMovedTotal{
    "sightline_reservations_moved_total", MetricType::Counter,
    "Reservations of this frontend held at another router after theirs failed."};
inline constexpr MetricSpec kSelectionNotesDroppedTotal{
    "sightline_selection_notes_dropped_total", MetricType::Counter,
    "First tokens and ends that no router was told of; the next list makes them good."};
inline constexpr MetricSpec kReplicaMembers{
    "sightline_replica_members",
    MetricType::Gauge,
    "Other processes that announce themselves over NATS and fit to this one, by role.",
    {"role"}};
inline constexpr MetricSpec kReplicaMembersUnfit{
    "sightline_replica_members_unfit",
    MetricType::Gauge,
    "Other processes that announce themselves and do not fit, by what differs.",
    {"difference"}};
inline constexpr MetricSpec kReplicaMembersRefusedTotal{
    "sightline_replica_members_refused_total",
    MetricType::Counter,
    "Announcements left aside: malformed, or beyond members-max.",
    {"reason"}};
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
    "sightline_load_sources", MetricType::Gauge,
    "Other routers whose booked load counts here like one's own."};
inline constexpr MetricSpec kLoadSourcesGoneTotal{
    "sightline_load_sources_gone_total",
    MetricType::Counter,
    "Routers whose load counts no more: they said that they end, or were silent for 3 s.",
    {"reason"}};
inline constexpr MetricSpec kLoadSourceAgeSeconds{
    "sightline_load_source_age_seconds", MetricType::Gauge,
    "Since the router that was silent for longest was heard, of those that count."};
inline constexpr MetricSpec kLoadTakenTotal{
    "sightline_load_taken_total",
    MetricType::Counter,
    "Reservations taken over from another router, by where: here, elsewhere; or untold.",
    {"where"}};
inline constexpr MetricSpec kAgentStreamsOpen{
    "sightline_agent_streams_open",
    MetricType::Gauge,
    "Ranks of the worker of which all is known and told to routers.",
    {kWorkerLabel}};
inline constexpr MetricSpec kAgentBlocks{"sightline_agent_blocks",
                                         MetricType::Gauge,
                                         "Blocks that the worker holds, as routers are told.",
                                         {kWorkerLabel, "tier"}};
inline constexpr MetricSpec kAgentMemoryBytes{
    "sightline_agent_memory_bytes",
    MetricType::Gauge,
    "Memory of what is told of the worker: blocks, frames and dumps that can be had again.",
    {kWorkerLabel}};
inline constexpr MetricSpec kAgentEpochsTotal{
    "sightline_agent_epochs_total",
    MetricType::Counter,
    "Times that what is told of the worker began anew: its continuity was not proved.",
    {kWorkerLabel}};
inline constexpr MetricSpec kAgentFramesTotal{"sightline_agent_frames_total",
                                              MetricType::Counter,
                                              "Frames made of the worker's events.",
                                              {kWorkerLabel}};
inline constexpr MetricSpec kAgentUnsentTotal{
    "sightline_agent_unsent_total",
    MetricType::Counter,
    "Frames and replies not sent, as NATS was away or took too little: routers ask again.",
    {kWorkerLabel}};
inline constexpr MetricSpec kAgentRepliesTotal{
    "sightline_agent_replies_total",
    MetricType::Counter,
    "Replies to routers: answer, range, chunk; range-gone, epoch-gone, dump-gone.",
    {kWorkerLabel, "kind"}};
inline constexpr MetricSpec kAgentDumpsTotal{
    "sightline_agent_dumps_total",
    MetricType::Counter,
    "Dumps of all that the worker holds: made, or begun again (anew) as too much changed.",
    {kWorkerLabel, "outcome"}};
inline constexpr MetricSpec kAgentAsksRefusedTotal{
    "sightline_agent_asks_refused_total",
    MetricType::Counter,
    "Messages to the agent that got no reply, by reason.",
    {"reason"}};
inline constexpr MetricSpec kAgentRelearnsTotal{
    "sightline_agent_relearns_total",
    MetricType::Counter,
    "Times the worker was asked anew for all that it holds, as routers wished.",
    {kWorkerLabel}};
inline constexpr MetricSpec kBuildInfo{
    "sightline_build_info", MetricType::Gauge, "1; the label is the version.", {"version"}};

// All of the above, in the order of the documentation.
inline constexpr std::array kMetricTable = {
    &kRequestsTotal,
    &kRequestErrorsTotal,
    &kRequestDurationSeconds,
    &kRequestsActive,
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
    &kWorkerState,
    &kWorkersKeptRouted,
    &kWorkerInflight,
    &kIndexBlocks,
    &kIndexKeys,
    &kIndexRefusedBlocksTotal,
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
    &kRankMismatchTotal,
    &kRetriesTotal,
    &kRetriesRefusedTotal,
    &kLostRequestsTotal,
    &kClientDisconnectsTotal,
    &kConfigReloadsTotal,
    &kPushesTotal,
    &kWorkerListGeneration,
    &kWorkerListSource,
    &kSettingsPushed,
    &kLearnt,
    &kLogDroppedLinesTotal,
    &kNameLookupsTotal,
    &kNatsConnected,
    &kNatsConnectsTotal,
    &kNatsMessagesTotal,
    &kNatsBytesTotal,
    &kNatsDroppedTotal,
    &kMetricOverflowTotal,
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
    &kReplicaLagSeconds,
    &kReplicaDigestEqualTimestampSeconds,
    &kReplicaHeldBytes,
    &kReplicaThreadTurnSeconds,
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
    &kReplicaMembers,
    &kReplicaMembersUnfit,
    &kReplicaMembersRefusedTotal,
    &kLoadMessagesTotal,
    &kLoadSnapshotsTotal,
    &kLoadGapsTotal,
    &kLoadLeftAsideTotal,
    &kLoadSources,
    &kLoadSourcesGoneTotal,
    &kLoadSourceAgeSeconds,
    &kLoadTakenTotal,
    &kAgentStreamsOpen,
    &kAgentBlocks,
    &kAgentMemoryBytes,
    &kAgentEpochsTotal,
    &kAgentFramesTotal,
    &kAgentUnsentTotal,
    &kAgentRepliesTotal,
    &kAgentDumpsTotal,
    &kAgentAsksRefusedTotal,
    &kAgentRelearnsTotal,
    &kBuildInfo,
};

constexpr std::string_view name_of(MetricType type) {
  if (type == MetricType::Counter) return "counter";
  return type == MetricType::Gauge ? "gauge" : "histogram";
}

}  // namespace sightline::contract
