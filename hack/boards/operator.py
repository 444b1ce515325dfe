# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
from .model import OPERATOR, Board, Panel, Query, Row

OURS = 'controller="multimodalrouter"'
QUEUE = 'name="multimodalrouter"'
ROUTER = 'router=~"$router"'
OBJECT = "router_namespace, router"

BOARD = Board("operator", "Operator", "Whether MultimodalRouters are in their desired state, and "
              "what the operator does.", (
    Row("Objects", (
        Panel("By phase", "Objects by the phase of their roll-out.", (
            Query("max by (phase) (@operator_objects)", "{{phase}}"),), stacked=True),
        Panel("By condition", "Objects with a problem, by condition: Degraded is true, or another "
              "condition is not true.", (
            Query("max by (condition, status) (@operator_objects_by_condition{"
                  'condition!="Degraded", status!="True"})', "{{condition}}: {{status}}"),
            Query('max by (condition, status) (@operator_objects_by_condition{'
                  'condition="Degraded", status="True"})', "{{condition}}: {{status}}"))),
        Panel("Routable against desired", "Workers of each object.", (
            Query(f'max by ({OBJECT}) (@operator_object_workers{{{ROUTER}, state="routable"}})',
                  "{{router_namespace}}/{{router}} routable"),
            Query(f'max by ({OBJECT}) (@operator_object_workers{{{ROUTER}, state="desired"}})',
                  "{{router_namespace}}/{{router}} desired"))),
        Panel("Ready", "1 while an object is Ready.", (
            Query(f"max by ({OBJECT}) (@operator_object_ready{{{ROUTER}}})",
                  "{{router_namespace}}/{{router}}"),), maximum=1),
        Panel("Roll-outs that are stuck", "1 while a roll-out makes no progress within its "
              "deadline.", (
            Query(f"max by ({OBJECT}) (@operator_object_rollout_stuck{{{ROUTER}}})",
                  "{{router_namespace}}/{{router}}"),), maximum=1),
        Panel("Certificates of NATS", "Time until the first certificate of a file expires, of "
              "frontends, routers and agents.", (
            Query("min by (file) (sightline_nats_certificate_expiry_timestamp_seconds{"
                  'job=~".+", instance=~".+", namespace=~"$namespace"}) - time()',
                  "{{file}}"),), "s"),
    )),
    Row("Work", (
        Panel("Reconciliations", "Reconciliations a second by result.", (
            Query(f"sum by (result) (rate(@@controller_runtime_reconcile_total{{{OURS}}}[W]))",
                  "{{result}}"),), "cps", stacked=True),
        Panel("Time of a reconciliation, p99", "99 of 100 reconciliations take less.", (
            Query("histogram_quantile(0.99, sum by (le) (rate("
                  f"@@controller_runtime_reconcile_time_seconds_bucket{{{OURS}}}[W])))",
                  "p99"),), "s"),
        Panel("Queue", "Objects that wait, and the age of the oldest running reconciliation.", (
            Query(f"sum(@@workqueue_depth{{{QUEUE}}})", "waiting"),
            Query(f"max(@@workqueue_longest_running_processor_seconds{{{QUEUE}}})",
                  "seconds of the oldest"))),
        Panel("Requests to the API server", "Requests a second by status and method. At rest there "
              "are only watches and the lease's PUT: no POST, PATCH, DELETE or other PUT.", (
            Query("sum by (code, method) (rate(@@rest_client_requests_total[W]))",
                  "{{method}} {{code}}"),), "reqps", stacked=True),
        Panel("Leader", "1 for the operator that acts.", (
            Query("max by (instance) (@@leader_election_master_status)", "{{instance}}"),),
              maximum=1),
        Panel("Events written", "Kubernetes events a second by outcome.", (
            Query("sum by (outcome) (rate(@operator_events_total[W]))", "{{outcome}}"),), "cps"),
    )),
), OPERATOR, ("sightline_operator_object_ready", "router"))
