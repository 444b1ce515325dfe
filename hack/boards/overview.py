# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
from .model import Board, Panel, Query, Row

# Unique in a cluster: workers of two MultimodalRouters may have the same name.
WORKER = "namespace, sightline_dev_router, worker"
REUSED = ("sum(rate(@reused_tokens_total[W])) / sum(rate(@judged_prompt_tokens_total[W]))")

BOARD = Board("overview", "Overview", "Whether clients get their answers, how soon, and what the "
              "engines' caches spare.", (
    Row("Now", (
        Panel("Requests", "Answered requests a second.", (
            Query("sum(rate(@requests_total[W]))"),), "reqps", "stat", 4),
        Panel("Not the client's errors", "Share of the requests that failed for another reason "
              "than the client's.", (
            Query('sum(rate(@request_errors_total{blame!="client"}[W])) '
                  "/ sum(rate(@requests_total[W]))"),), "percentunit", "stat", 4),
        Panel("First token, p99", "One in a hundred streamed answers begins later than this.", (
            Query("histogram_quantile(0.99, sum by (le) (rate(@first_token_seconds_bucket[W])))"),),
              "s", "stat", 4),
        Panel("Reused", "Share of the prompts' tokens that engines took from their caches, of the "
              "answers that tell it.", (Query(REUSED),), "percentunit", "stat", 4),
        Panel("Routable workers", "Workers that may take requests, of all that are known.", (
            Query(f'sum(max by ({WORKER}, state) '
                  '(@worker_state{state=~"ready|unverified|excluded"}))', "routable"),
            Query(f"count(max by ({WORKER}) (@worker_state))", "known")), "short", "stat", 4),
        Panel("Firing alerts", "Alerts of Sightline that fire, where its rules are loaded; of all "
              "namespaces and routers.", (
            Query('count(ALERTS{alertname=~"Sightline.*", alertstate="firing"}) or vector(0)'),),
              "short", "stat", 4),
    )),
    Row("Traffic", (
        Panel("Requests by status", "Answers a second by HTTP status.", (
            Query("sum by (code) (rate(@requests_total[W]))", "{{code}}"),), "reqps",
              stacked=True),
        Panel("Errors by blame", "Failed requests a second, by whose fault it was: the client's, "
              "a worker's, or of Sightline itself.", (
            Query("sum by (blame) (rate(@request_errors_total[W]))", "{{blame}}"),), "reqps",
              stacked=True),
        Panel("Active requests against their limit", "Requests being worked on, beside what all "
              "frontends together admit; beyond it clients are told 503.", (
            Query("sum(@requests_active)", "active"), Query("sum(@requests_limit)", "limit"))),
    )),
    Row("How soon", (
        Panel("First token", "Time from a request's arrival to its first token: half of the "
              "answers, and all but one in a hundred.", (
            Query("histogram_quantile(0.5, sum by (le) (rate(@first_token_seconds_bucket[W])))",
                  "p50"),
            Query("histogram_quantile(0.99, sum by (le) (rate(@first_token_seconds_bucket[W])))",
                  "p99")), "s"),
        Panel("First token, all of them", "How many answers began after how long.", (
            Query("sum by (le) (increase(@first_token_seconds_bucket[W]))"),), "s", "heatmap"),
        Panel("With against without overlap", "Half of the answers begin within this, of prompts "
              "that were to be reused for the most part, and of those that nothing was known of. "
              "The distance is what the cache saves a client.", (
            Query("histogram_quantile(0.5, sum by (le, overlap) "
                  '(rate(@first_token_seconds_bucket{overlap=~"none|most"}[W])))',
                  "{{overlap}}"),), "s"),
        Panel("Time per phase", "Mean of each phase: prepare (pictures, tokens), queue (a worker "
              "is chosen), prefill (the engine until its first token), total.", (
            Query("sum by (phase) (rate(@request_duration_seconds_sum[W])) "
                  "/ sum by (phase) (rate(@request_duration_seconds_count[W]))", "{{phase}}"),),
              "s", width=12),
        Panel("Saved prefill, in engines", "Seconds of prefill spared in each second: as many "
              "engines would do nothing else. An estimate: reused tokens times what a token takes "
              "at that worker.", (
            Query("sum(rate(@saved_prefill_seconds_total[W]))", "engines"),), "short", width=12),
    )),
))
