# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
from .model import Board, Panel, Query, Row

JUDGED = "sum(rate(@judged_prompt_tokens_total[W]))"

BOARD = Board("cache", "Cache", "What the engines' caches are worth: what they had, what was "
              "chosen, what was got.", (
    Row("Had, chose, got", (
        Panel("Reused", "Share of the prompts' tokens that was not computed: sums divided, never "
              "a mean of ratios.", (
            Query(f"sum(rate(@reused_tokens_total[W])) / {JUDGED}"),), "percentunit", "stat", 6),
        Panel("Had, chose, got", "Of the prompts' tokens: best is what the worker with the most of "
              "them held, predicted what the chosen one was to reuse, reused what it did. Best "
              "less predicted is given up for load; predicted less reused is an error of the "
              "index.", (
            Query(f"sum(rate(@best_tokens_total[W])) / {JUDGED}", "best"),
            Query(f"sum(rate(@predicted_tokens_total[W])) / {JUDGED}", "predicted"),
            Query(f"sum(rate(@reused_tokens_total[W])) / {JUDGED}", "reused")), "percentunit",
              width=10, maximum=1),
        Panel("Text and pictures", "Of the prompts' tokens, those that were to be reused, by what "
              "they stand for.", (
            Query("sum by (content) (rate(@predicted_tokens_total[W])) / on () group_left () "
                  f"{JUDGED}", "{{content}}"),), "percentunit", stacked=True, maximum=1),
    )),
    Row("Whether predictions hold", (
        Panel("Predictions", "Answers a second whose reuse was as predicted, less (over), more "
              "(under), or not told by the engine.", (
            Query("sum by (result) (rate(@predictions_total[W]))", "{{result}}"),), "cps",
              stacked=True),
        Panel("Misses by cause", "Why it was not as predicted. Only over, unexplained is a wrong "
              "claim; the others have causes that are known.", (
            Query("sum by (result, cause) (rate(@prediction_misses_total[W]))",
                  "{{result}}, {{cause}}"),), "cps", stacked=True),
        Panel("Error of predictions, p99", "In tokens: all but one in a hundred predictions are "
              "nearer to what the engine says.", (
            Query("histogram_quantile(0.99, sum by (le) "
                  "(rate(@prediction_error_tokens_bucket[W])))", "p99"),), "short"),
    )),
    Row("Decisions", (
        Panel("Decisions by reason", "Why a worker was chosen, choices a second.", (
            Query("sum by (reason) (rate(@decisions_total[W]))", "{{reason}}"),), "cps",
              stacked=True),
        Panel("Not counted", "Requests a second that were routed without overlap, as their blocks "
              "could not be known exactly.", (
            Query("sum by (reason) (rate(@unrouted_overlap_total[W]))", "{{reason}}"),), "cps",
              stacked=True),
        Panel("Media", "Items of requests a second, by what became of them.", (
            Query("sum by (outcome) (rate(@media_items_total[W]))", "{{outcome}}"),), "cps",
              stacked=True),
        Panel("Prompt tokens", "Tokens of prompts sent to workers in a second, and how many of "
              "them can be judged.", (
            Query("sum(rate(@prompt_tokens_total[W]))", "all"), Query(JUDGED, "judged")), "cps"),
        Panel("Known text", "Of the prompts' bytes, those whose tokens were still known.", (
            Query('sum(rate(@token_cache_text_bytes_total{result="hit"}[W])) '
                  "/ sum(rate(@token_cache_text_bytes_total[W]))", "hit"),), "percentunit",
              maximum=1),
        Panel("Token cache", "Memory of the known text.", (
            Query("sum(@token_cache_bytes)", "bytes"),), "bytes"),
    )),
))
