# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
from .model import Board, Panel, Query, Row

PROOF = "time() - max by (worker, instance) (@replica_digest_equal_timestamp_seconds)"
BELIEVED = "by (worker) (@worker_believed_inflight)"

BOARD = Board("replicas", "Replicas", "Whether routers, agents and NATS agree.", (
    Row("Who is there", (
        Panel("Members", "Other processes that announce themselves and fit, by what they are; as "
              "the process sees it that sees the most.", (
            Query("max by (role) (@replica_members)", "{{role}}"),)),
        Panel("Members that do not fit", "Those that announce themselves and differ: in revision, "
              "block size, model files or identity key.", (
            Query("max by (difference) (@replica_members_unfit)", "{{difference}}"),)),
        Panel("Announcements left aside", "Announcements a second that were malformed or too "
              "many.", (
            Query("sum by (reason) (rate(@replica_members_refused_total[W]))", "{{reason}}"),),
              "cps"),
    )),
    Row("Whether indexes are equal", (
        Panel("Comparisons", "Comparisons with agents' digests a second. Unequal must not be; "
              "capped proves nothing.", (
            Query("sum by (result) (rate(@replica_digests_total[W]))", "{{result}}"),), "cps",
              stacked=True),
        Panel("Age of the proof", "Since a router's part of the index last equalled what the "
              "agent holds, the oldest of each router.", (
            Query(f"max by (instance) ({PROOF})", "{{instance}}"),), "s"),
        Panel("Lag", "Age of the last events, by two machines' clocks: of all but one in a "
              "hundred workers, and of the worst.", (
            Query("quantile(0.99, max by (worker) (@replica_lag_seconds))", "p99"),
            Query("max(@replica_lag_seconds)", "worst")), "s"),
        Panel("Frames behind", "Frames that are known of and not applied.", (
            Query("max by (worker) (@replica_behind_frames)", "{{worker}}"),)),
        Panel("Gaps and new beginnings", "What befell streams, a second: epoch (an agent's "
              "history began), gap, loss, contest (two agents), forgotten.", (
            Query("sum by (event) (rate(@replica_stream_events_total[W]))", "{{event}}"),), "cps",
              stacked=True),
        Panel("Dumps", "Whole tellings of what a worker holds, a second: asked for by routers, "
              "made by agents.", (
            Query("sum by (result) (rate(@replica_dumps_total[W]))", "asked for, {{result}}"),
            Query("sum by (outcome) (rate(@agent_dumps_total[W]))", "{{outcome}}")), "cps"),
        Panel("Joins", "Processes that have learnt what they could at their start, of all.", (
            Query("sum(@learnt)", "learnt"), Query("count(@learnt)", "all"))),
        Panel("Streams of agents", "Workers' ranks of which all is known and told.", (
            Query("sum(max by (worker) (@agent_streams_open))", "open"),)),
    )),
    Row("Load between routers", (
        Panel("Spread of believed load", "Requests on a worker as the routers believe: the most "
              "less the least. Near 0 but for what is under way between them.", (
            Query(f"max {BELIEVED} - min {BELIEVED}", "{{worker}}"),)),
        Panel("Routers heard", "Other routers whose load counts, of the router that hears the "
              "fewest, and how long the most silent of them was so.", (
            Query("min(@load_sources)", "routers"),
            Query("max(@load_source_age_seconds)", "seconds of silence"))),
        Panel("Words missing", "Gaps a second in what routers tell of their load.", (
            Query("sum by (seen_by) (rate(@load_gaps_total[W]))", "{{seen_by}}"),), "cps"),
    )),
    Row("NATS", (
        Panel("Connected", "1 while connected.", (
            Query("min by (instance, connection) (@nats_connected)",
                  "{{instance}} {{connection}}"),), maximum=1),
        Panel("Messages", "Messages a second.", (
            Query("sum by (connection, direction) (rate(@nats_messages_total[W]))",
                  "{{connection}} {{direction}}"),), "cps"),
        Panel("Dropped", "Messages a second that were neither sent nor read.", (
            Query("sum by (reason) (rate(@nats_dropped_total[W]))", "{{reason}}"),), "cps",
              stacked=True),
    )),
))
