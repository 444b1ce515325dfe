# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
from .model import Board, Panel, Query, Row

STATES = ("down", "suspect", "starting", "draining", "excluded", "unverified", "ready")
COLOURS = ("red", "orange", "blue", "purple", "dark-yellow", "yellow", "green")
STATE = " or ".join(f'{number} * (max by (worker) (@worker_state{{state="{word}"}}) == 1)'
                    for number, word in enumerate(STATES))
INFLIGHT = "sum by (worker) (@worker_inflight)"

BOARD = Board("engines", "Engines", "Whether each engine and the router agree.", (
    Row("Work", (
        Panel("States", "State of each worker. ready: routed by its cached blocks. unverified, "
              "excluded: routed by load alone. All others get no requests.", (
            Query(STATE, "{{worker}}"),), "short", "state-timeline", 12, states=STATES,
              colours=COLOURS),
        Panel("In flight", "Requests that run on each worker.", (
            Query(INFLIGHT, "{{worker}}"),), width=12),
        Panel("Imbalance", "Requests of the busiest worker, divided by the average. 1 is even.", (
            Query(f"max({INFLIGHT}) / avg({INFLIGHT})", "busiest over average"),)),
        Panel("Queue", "Requests that wait in the engine itself.", (
            Query("max by (worker) (@worker_queue_requests)", "{{worker}}"),)),
        Panel("KV cache in use", "Used part of the engine's cache.", (
            Query("max by (worker) (@worker_kv_use_ratio)", "{{worker}}"),), "percentunit",
              maximum=1),
        Panel("Answers begun", "Answers that began, a second.", (
            Query("sum by (worker) (rate(@answers_begun_total[W]))", "{{worker}}"),), "cps"),
        Panel("Age of the reading", "Age of the values of queue and cache use.", (
            Query("max by (worker) (@worker_reading_age_seconds)", "{{worker}}"),), "s"),
        Panel("A token's prefill", "Estimated time to compute one prompt token.", (
            Query("max by (worker) (@prefill_seconds_per_token)", "{{worker}}"),), "s"),
    )),
    Row("What they hold", (
        Panel("Blocks", "Blocks of each worker in the index.", (
            Query("max by (worker) (@index_blocks)", "{{worker}}"),)),
        Panel("Index against its capacity", "Distinct blocks of all workers, and the capacity of "
              "the index.", (
            Query("max(@index_keys)", "blocks"), Query("vector(16000000)", "capacity"))),
        Panel("Reused, by the engines and by us", "The engines' own hit rate (vLLM's metrics, if "
              "Prometheus scrapes them), and the share of reused tokens in their answers.", (
            Query('sum(rate(vllm:prefix_cache_hits_total{namespace=~"$namespace"}[W])) '
                  '/ sum(rate(vllm:prefix_cache_queries_total{namespace=~"$namespace"}[W]))',
                  "engines"),
            Query("sum(rate(@reused_tokens_total[W])) "
                  "/ sum(rate(@judged_prompt_tokens_total[W]))", "told us")), "percentunit",
              maximum=1),
    )),
    Row("Their events", (
        Panel("Lag", "Time from the engine's time stamp to the index, for the last message.", (
            Query("max by (worker) (@event_lag_seconds)", "{{worker}}"),), "s"),
        Panel("Applied", "Events a second.", (
            Query("max by (worker) (rate(@events_applied_total[W]))", "{{worker}}"),), "cps"),
        Panel("Gaps", "Gaps in the sequence numbers a second.", (
            Query("sum by (worker) (rate(@event_gaps_total[W]))", "{{worker}}"),), "cps"),
        Panel("Learned anew", "Resyncs of a worker's blocks a second: after lost events (events), "
              "and because of the audit (audit).", (
            Query("sum by (worker) (rate(@event_relearns_total[W]))", "events, {{worker}}"),
            Query("sum by (worker) (rate(@relearns_total[W]))", "audit, {{worker}}")), "cps"),
        Panel("Errors by kind", "Events a second that could not be used.", (
            Query("sum by (kind) (max by (worker, kind) (rate(@event_errors_total[W])))",
                  "{{kind}}"),), "cps", stacked=True),
        Panel("Mismatches", "Contradictions since the start of the process: block size, ranks, "
              "tokens of prompts.", (
            Query("max by (worker) (@block_size_mismatch_total)", "block size, {{worker}}"),
            Query("max by (worker) (@rank_mismatch_total)", "ranks, {{worker}}"),
            Query("sum by (worker) (@prompt_token_mismatch_total)", "tokens, {{worker}}"))),
    )),
))
