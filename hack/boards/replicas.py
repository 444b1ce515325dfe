# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
from .model import Board, Panel, Query, Row

PROOF = "time() - max by (worker, instance) (@replica_digest_equal_timestamp_seconds)"
BELIEVED = "by (worker) (@worker_believed_inflight)"

BOARD = Board("replicas", "Replicas", "Whether routers, agents and NATS agree.", (
    Row("Who is there", (
        Panel("Members", "Other compatible processes of the scope, by role, in the view of the "
              "process that sees the most.", (
            Query("max by (role) (@replica_members)", "{{role}}"),)),
        Panel("Members that do not fit", "Other processes of the scope that differ in revision, "
              "block size, model files or identity key.", (
            Query("max by (difference) (@replica_members_unfit)", "{{difference}}"),)),
        Panel("Announcements left aside", "Announcements a second that were malformed or above the "
              "limit.", (
            Query("sum by (reason) (rate(@replica_members_refused_total[W]))", "{{reason}}"),),
              "cps"),
    )),
    Row("Whether indexes are equal", (
        Panel("Comparisons", "Comparisons with agents' digests a second. unequal must not occur. "
              "capped proves nothing.", (
            Query("sum by (result) (rate(@replica_digests_total[W]))", "{{result}}"),), "cps",
              stacked=True),
        Panel("Age of the proof", "Time since a router's index of a worker last equalled the "
              "agent's, for the oldest of each router.", (
            Query(f"max by (instance) ({PROOF})", "{{instance}}"),), "s"),
        Panel("Lag", "Age of the last events, by the clocks of two machines: for 99 of 100 "
              "workers, and for the worst.", (
            Query("quantile(0.99, max by (worker) (@replica_lag_seconds))", "p99"),
            Query("max(@replica_lag_seconds)", "worst")), "s"),
        Panel("Frames behind", "Known frames that are not applied yet.", (
            Query("max by (worker) (@replica_behind_frames)", "{{worker}}"),)),
        Panel("Gaps and new beginnings", "Events of streams a second: epoch (an agent's history "
              "began), gap, loss, contest (two agents), forgotten.", (
            Query("sum by (event) (rate(@replica_stream_events_total[W]))", "{{event}}"),), "cps",
              stacked=True),
        Panel("Dumps", "Snapshots of a worker's blocks a second: requested by routers, made by "
              "agents.", (
            Query("sum by (result) (rate(@replica_dumps_total[W]))", "asked for, {{result}}"),
            Query("sum by (outcome) (rate(@agent_dumps_total[W]))", "{{outcome}}")), "cps"),
        Panel("Joins", "Processes that have completed their synchronisation at the start, and all "
              "processes.", (
            Query("sum(@learnt)", "learnt"), Query("count(@learnt)", "all"))),
        Panel("Streams of agents", "Ranks whose blocks the agents know completely and publish.", (
            Query("sum(max by (worker) (@agent_streams_open))", "open"),)),
    )),
    Row("Load between routers", (
        Panel("Spread of believed load", "Difference between the highest and the lowest count of "
              "requests on a worker that routers have. It is near 0, except for messages under "
              "way.", (
            Query(f"max {BELIEVED} - min {BELIEVED}", "{{worker}}"),)),
        Panel("Routers heard", "Other routers whose load counts, for the router that receives the "
              "fewest, and the age of the oldest load message.", (
            Query("min(@load_sources)", "routers"),
            Query("max(@load_source_age_seconds)", "seconds of silence"))),
        Panel("Words missing", "Gaps a second in the load messages of routers.", (
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
