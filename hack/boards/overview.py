# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
from .model import Board, Panel, Query, Row

# Unique in a cluster: workers of two MultimodalRouters may have the same name.
WORKER = "namespace, sightline_dev_router, worker"
REUSED = ("sum(rate(@reused_tokens_total[W])) / sum(rate(@judged_prompt_tokens_total[W]))")

BOARD = Board("overview", "Overview", "Whether clients get answers, how fast, and what the "
              "engines' caches save.", (
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
        Panel("Reused", "Share of the prompts' tokens that engines took from their caches. Only "
              "answers that report it count.", (Query(REUSED),), "percentunit", "stat", 4),
        Panel("Routable workers", "Workers that may get requests, and all known workers.", (
            Query(f'sum(max by ({WORKER}, state) '
                  '(@worker_state{state=~"ready|unverified|excluded"}))', "routable"),
            Query(f"count(max by ({WORKER}) (@worker_state))", "known")), "short", "stat", 4),
        Panel("Firing alerts", "Firing alerts of Sightline in all namespaces and of all routers. "
              "Prometheus must have loaded the rules.", (
            Query('count(ALERTS{alertname=~"Sightline.*", alertstate="firing"}) or vector(0)'),),
              "short", "stat", 4),
    )),
    Row("Traffic", (
        Panel("Requests by status", "Answers a second by HTTP status.", (
            Query("sum by (code) (rate(@requests_total[W]))", "{{code}}"),), "reqps",
              stacked=True),
        Panel("Errors by blame", "Failed requests a second, by who caused the failure: the client, "
              "a worker, or Sightline itself.", (
            Query("sum by (blame) (rate(@request_errors_total[W]))", "{{blame}}"),), "reqps",
              stacked=True),
        Panel("Active requests against their limit", "Active requests, and the limit of all "
              "frontends together. Frontends answer more requests with 503.", (
            Query("sum(@requests_active)", "active"), Query("sum(@requests_limit)", "limit"))),
    )),
    Row("How soon", (
        Panel("First token", "Time from a request's arrival to its first token: for half of the "
              "answers, and for 99 of 100.", (
            Query("histogram_quantile(0.5, sum by (le) (rate(@first_token_seconds_bucket[W])))",
                  "p50"),
            Query("histogram_quantile(0.99, sum by (le) (rate(@first_token_seconds_bucket[W])))",
                  "p99")), "s"),
        Panel("First token, all of them", "Number of answers by the time until their first "
              "token.", (
            Query("sum by (le) (increase(@first_token_seconds_bucket[W]))"),), "s", "heatmap"),
        Panel("With against without overlap", "Median time to the first token: of prompts with "
              "mostly reused tokens, and of prompts without known blocks. The distance is what the "
              "cache saves a client.", (
            Query("histogram_quantile(0.5, sum by (le, overlap) "
                  '(rate(@first_token_seconds_bucket{overlap=~"none|most"}[W])))',
                  "{{overlap}}"),), "s"),
        Panel("Time per phase", "Mean time of each phase: prepare (images, tokens), queue (choice "
              "of a worker), prefill (the engine until its first token), total.", (
            Query("sum by (phase) (rate(@request_duration_seconds_sum[W])) "
                  "/ sum by (phase) (rate(@request_duration_seconds_count[W]))", "{{phase}}"),),
              "s", width=12),
        Panel("Saved prefill, in engines", "Saved seconds of prefill in each second. Without "
              "reuse, so many more engines would only prefill. It is an estimate: reused tokens "
              "times the time for one token at that worker.", (
            Query("sum(rate(@saved_prefill_seconds_total[W]))", "engines"),), "short", width=12),
    )),
))
