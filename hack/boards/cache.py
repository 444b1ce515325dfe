# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
from .model import Board, Panel, Query, Row

JUDGED = "sum(rate(@judged_prompt_tokens_total[W]))"

BOARD = Board("cache", "Cache", "What engines' caches save: the tokens that caches held, that the "
              "router expected, and that engines reused.", (
    Row("Had, chose, got", (
        Panel("Reused", "Share of the prompts' tokens that engines took from their caches. It is a "
              "quotient of sums, not a mean of ratios.", (
            Query(f"sum(rate(@reused_tokens_total[W])) / {JUDGED}"),), "percentunit", "stat", 6),
        Panel("Had, chose, got", "Shares of the prompts' tokens. best: the worker with the most of "
              "them held these. predicted: the chosen worker was expected to reuse these. reused: "
              "the engine reused these. The router gives up best less predicted to balance load. "
              "Predicted less reused is an error of the index.", (
            Query(f"sum(rate(@best_tokens_total[W])) / {JUDGED}", "best"),
            Query(f"sum(rate(@predicted_tokens_total[W])) / {JUDGED}", "predicted"),
            Query(f"sum(rate(@reused_tokens_total[W])) / {JUDGED}", "reused")), "percentunit",
              width=10, maximum=1),
        Panel("Text and pictures", "Share of the prompts' tokens that engines were expected to "
              "reuse, by their content.", (
            Query("sum by (content) (rate(@predicted_tokens_total[W])) / on () group_left () "
                  f"{JUDGED}", "{{content}}"),), "percentunit", stacked=True, maximum=1),
    )),
    Row("Whether predictions hold", (
        Panel("Predictions", "Answers a second by result. equal: reuse was as predicted. over: "
              "less. under: more. untold: the engine did not report it.", (
            Query("sum by (result) (rate(@predictions_total[W]))", "{{result}}"),), "cps",
              stacked=True),
        Panel("Misses by cause", "Why reuse was not as predicted. Only over, unexplained is a "
              "wrong claim. The others have known causes.", (
            Query("sum by (result, cause) (rate(@prediction_misses_total[W]))",
                  "{{result}}, {{cause}}"),), "cps", stacked=True),
        Panel("Error of predictions, p99", "In tokens. 99 of 100 predictions are nearer to the "
              "engine's report.", (
            Query("histogram_quantile(0.99, sum by (le) "
                  "(rate(@prediction_error_tokens_bucket[W])))", "p99"),), "short"),
    )),
    Row("Decisions", (
        Panel("Decisions by reason", "Choices of a worker a second, by the reason.", (
            Query("sum by (reason) (rate(@decisions_total[W]))", "{{reason}}"),), "cps",
              stacked=True),
        Panel("Not counted", "Requests a second that were routed without overlap, because their "
              "blocks could not be computed exactly.", (
            Query("sum by (reason) (rate(@unrouted_overlap_total[W]))", "{{reason}}"),), "cps",
              stacked=True),
        Panel("Media", "Media items of requests a second, by outcome.", (
            Query("sum by (outcome) (rate(@media_items_total[W]))", "{{outcome}}"),), "cps",
              stacked=True),
        Panel("Prompt tokens", "Prompt tokens a second that were sent to workers (all), and those "
              "that can be audited (judged).", (
            Query("sum(rate(@prompt_tokens_total[W]))", "all"), Query(JUDGED, "judged")), "cps"),
        Panel("Known text", "Share of the prompts' bytes whose tokens were in the token cache.", (
            Query('sum(rate(@token_cache_text_bytes_total{result="hit"}[W])) '
                  "/ sum(rate(@token_cache_text_bytes_total[W]))", "hit"),), "percentunit",
              maximum=1),
        Panel("Token cache", "Memory of the token cache.", (
            Query("sum(@token_cache_bytes)", "bytes"),), "bytes"),
    )),
))
