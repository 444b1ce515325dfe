# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Series on which each alert must fire, and series on which it must not. One sample a minute."""

OF = 'namespace="team",sightline_dev_router="demo"'
ROUTER = f'{OF},job="routers",instance="r1"'
FRONT = f'{OF},job="frontends",instance="f1"'
OPERATOR = 'namespace="system",job="operator",instance="o1"'
OBJECT = f'{OPERATOR},router_namespace="team",router="demo"'
MINE = {"namespace": "team", "sightline_dev_router": "demo"}
THEIRS = {"router_namespace": "team", "router": "demo"}


def errors(rate, total=1000):
    """Returns series with this many errors a minute that are not the client's."""
    return {
        f'sightline_requests_total{{{FRONT},route="chat",code="200"}}': f"0+{total - rate}x200",
        f'sightline_requests_total{{{FRONT},route="chat",code="503"}}': f"0+{rate}x200",
        f'sightline_request_errors_total{{{FRONT},code="unavailable",blame="worker"}}':
            f"0+{rate}x200",
        f'sightline_request_errors_total{{{FRONT},code="invalid",blame="client"}}': "0+500x200",
    }


def states(one, other="ready"):
    """Returns series of the states of two workers at a router."""
    found = {}
    for worker, now in (("w1", one), ("w2", other)):
        for state in ("ready", "unverified", "excluded", "draining", "starting", "suspect", "down"):
            name = f'sightline_worker_state{{{ROUTER},worker="{worker}",state="{state}"}}'
            found[name] = f"{int(state == now)}x200"
    return found


def metric(name, values, labels=ROUTER, /, **more):
    inner = ",".join([labels, *(f'{key}="{value}"' for key, value in more.items())])
    return {f"{name}{{{inner}}}": values}


def first_tokens(slow, labels=FRONT):
    """Returns series of 100 answers a minute. `slow` of them begin after 10 to 30 seconds."""
    made = {}
    for bound, count in (("1", 100 - slow), ("10", 100 - slow), ("30", 100), ("+Inf", 100)):
        made |= metric("sightline_first_token_seconds_bucket", f"0+{count}x200", labels,
                       overlap="none", le=bound)
    return made


def judged(over, total=10000):
    return {
        **metric("sightline_prediction_misses_total", f"0+{over}x200", worker="w1", result="over",
                 cause="unexplained"),
        **metric("sightline_prediction_misses_total", "0+1000x200", worker="w1", result="over",
                 cause="removed"),
        **metric("sightline_predictions_total", f"0+{total - over}x200", worker="w1",
                 result="equal"),
        **metric("sightline_predictions_total", f"0+{over}x200", worker="w1", result="over"),
        **metric("sightline_predictions_total", "0+100000x200", worker="w1", result="untold"),
    }


def reuse(after, before=600, turn=100):
    """Returns series of 1,000 judged tokens a minute. `before` of them are reused until the minute
    `turn`, and `after` from then on."""
    of = f'{ROUTER},worker="w1",sightline_dev_revision="k2x9p0aa"'
    level = before * turn
    return {
        f"sightline_judged_prompt_tokens_total{{{of}}}": "0+1000x200",
        f"sightline_reused_tokens_total{{{of}}}":
            f"0+{before}x{turn} {level + after}+{after}x100",
    }


def inflight(one, others, workers=4):
    made = metric("sightline_worker_inflight", f"{one}x200", worker="w0")
    for i in range(1, workers):
        made |= metric("sightline_worker_inflight", f"{others}x200", worker=f"w{i}")
    return made


def stalled(begun, queue=3):
    return {
        **metric("sightline_worker_queue_requests", f"{queue}x200", worker="w1"),
        **metric("sightline_answers_begun_total", begun, FRONT, worker="w1"),
        **metric("sightline_answers_begun_total", "0+60x200", FRONT, worker="w2"),
    }


def leaders(*values):
    made = {}
    for i, value in enumerate(values):
        labels = f'namespace="system",job="operator",instance="o{i}"'
        made |= metric("leader_election_master_status", f"{value}x200", labels,
                       name="sightline-operator")
        made |= metric("sightline_operator_objects", "1x200", labels, phase="Completed")
    foreign = 'namespace="cert-manager",job="cert-manager",instance="c1"'
    return made | metric("leader_election_master_status", "0x200", foreign, name="cert-manager")


WHO = "team/demo: "
UP = {**metric("up", "1x10 0x200"), **metric("sightline_build_info", "1x10 stale", version="1")}
CASES = {
    "SightlineDown": {
        "fires": {**UP, **metric("up", "1x200", FRONT),
                  **metric("sightline_build_info", "1x200", FRONT, version="1")},
        "at": 16, "labels": {**MINE, "job": "routers", "instance": "r1"},
        "says": "r1 of job routers does not answer scrapes any more (value 0).",
        "below": [
            # Up again within the alert's time. Never up. A target of another project.
            {**metric("up", "1x10 0x3 1x200"), **metric("sightline_build_info", "1x200")},
            {**metric("up", "0x200"), **metric("sightline_build_info", "1x200", FRONT)},
            {**metric("up", "1x10 0x200", 'job="node",instance="n1"'),
             **metric("sightline_build_info", "1x200")},
        ]},
    "SightlineNoRoutableWorker": {
        "fires": {**states("down", "starting"), **errors(5)}, "at": 3, "labels": MINE,
        "says": WHO + "0 workers may get requests, and requests fail.",
        "below": [{**states("down", "unverified"), **errors(5)},
                  {**states("down", "down"), **errors(0)}, states("down", "down")]},
    "SightlineErrorsHigh": {
        "fires": errors(51), "at": 6, "labels": MINE,
        "says": WHO + "5.1% of the requests fail for another reason than the client's.",
        "below": [errors(49), errors(0), {
            # 100 minutes without errors, then four minutes with many: few over an hour.
            f'sightline_requests_total{{{FRONT},route="chat",code="200"}}': "0+1000x200",
            f'sightline_request_errors_total{{{FRONT},code="unavailable",blame="worker"}}':
                "0x100 0+400x4 1600x100"}]},
    "SightlineEngineStalled": {
        "fires": stalled("0+60x20 1200x200"), "at": 28, "labels": {**MINE, "worker": "w1"},
        "says": WHO + "3 requests wait in the engine of worker w1, which has begun no answer for "
                      "minutes.",
        "below": [stalled("0+1x200"), stalled("1200x200", queue=0)]},
    "SightlineFirstTokenSlow": {
        "fires": first_tokens(2), "at": 11, "labels": MINE,
        "says": WHO + "one in a hundred streamed answers begins after 20s or later.",
        "below": [first_tokens(1), first_tokens(0)]},
    "SightlineLimitsHit": {
        "fires": metric("sightline_limit_hits_total", "0+6x200", FRONT,
                        limit="concurrent-requests-max"),
        "at": 11, "labels": {**MINE, "limit": "concurrent-requests-max"},
        "says": WHO + "the limit concurrent-requests-max refuses 0.1 requests a second.",
        "below": [metric("sightline_limit_hits_total", "0x200", FRONT,
                         limit="concurrent-requests-max"),
                  metric("sightline_limit_hits_total", "0x20 1x200", FRONT, limit="open-files"),
                  metric("sightline_limit_hits_total", "0+600x200", FRONT,
                         limit="media-images-max")]},
    "SightlineLoadImbalance": {
        "fires": inflight(10, 4), "at": 15, "labels": MINE,
        "says": WHO + "the busiest worker runs 1.818 times as many requests as the average.",
        "below": [inflight(9, 4), inflight(4, 1), inflight(100, 0, workers=1)]},
    "SightlineBlockSizeMismatch": {
        "fires": metric("sightline_block_size_mismatch_total", "0x20 1x200", worker="w1"),
        "at": 21, "labels": {**MINE, "worker": "w1"},
        "says": WHO + "worker w1 reported another block size (1 times in 15 minutes): it gets "
                      "requests by load alone.",
        "below": [metric("sightline_block_size_mismatch_total", "0x200", worker="w1"),
                  metric("sightline_block_size_mismatch_total", "_x150 1x20", worker="w1")]},
    "SightlineOverclaims": {
        "fires": judged(101), "at": 16, "labels": {**MINE, "worker": "w1"},
        "says": WHO + "1.01% of the predictions for worker w1 were too high for no known reason.",
        "below": [judged(99), judged(0)]},
    "SightlineEventsLost": {
        "fires": metric("sightline_event_gaps_total", "0+1x200", worker="w1"),
        "at": 11, "labels": {**MINE, "worker": "w1"},
        "says": WHO + "the events of worker w1 had 5 gaps in five minutes.",
        "below": [metric("sightline_event_gaps_total", "0x20 1x200", worker="w1"),
                  metric("sightline_event_gaps_total", "0x20 9x200", worker="w1")]},
    "SightlineWorkerUnverified": {
        "fires": states("unverified"), "at": 10,
        "labels": {**MINE, "worker": "w1", "state": "unverified"},
        "says": WHO + "worker w1 is unverified (value 1): it gets requests by load alone.",
        "below": [states("ready"), states("down"), metric(
            "sightline_worker_state", "1x8 0x3 1x8 0x3 1x8 0x200", worker="w1",
            state="unverified")]},
    "SightlineIndexFull": {
        "fires": metric("sightline_index_refused_blocks_total", "0+1x200"), "at": 11,
        "labels": MINE,
        "says": WHO + "the index refused 5 blocks of engines in five minutes.",
        "below": [metric("sightline_index_refused_blocks_total", "0x200"),
                  metric("sightline_index_refused_blocks_total", "0x9 70x200")]},
    "SightlineReuseCollapsed": {
        "fires": reuse(298), "at": 140,
        "labels": {**MINE, "sightline_dev_revision": "k2x9p0aa"},
        "says": WHO + "the share of reused tokens is 49.67% of what it was in the hour before.",
        "below": [reuse(302), reuse(0, before=99)]},
    "SightlineReplicaDiverged": {
        "fires": metric("sightline_replica_digests_total", "0x20 1x200", worker="w1",
                        result="unequal"),
        "at": 23, "labels": {**MINE, "instance": "r1", "worker": "w1"},
        "says": WHO + "the index of r1 differed 1 times from the agent of worker w1.",
        "below": [metric("sightline_replica_digests_total", "0x200", worker="w1",
                         result="unequal"),
                  metric("sightline_replica_digests_total", "0+60x200", worker="w1",
                         result="equal")]},
    "SightlineIndexLagging": {
        "fires": {**states("ready"), **metric("sightline_replica_digest_equal_timestamp_seconds",
                                              "0+60x20 1200x200", worker="w1")},
        "at": 28, "labels": {**MINE, "instance": "r1", "worker": "w1"},
        "says": WHO + "the index of r1 was last verified against the agent of worker w1 8m 0s ago.",
        "below": [{**states("ready"), **metric("sightline_replica_digest_equal_timestamp_seconds",
                                               "-119+60x200", worker="w1")},
                  {**states("unverified"), **metric(
                      "sightline_replica_digest_equal_timestamp_seconds", "0x200", worker="w1")}]},
    "SightlineNatsDisconnected": {
        "fires": {**metric("sightline_nats_connected", "1x10 0x200", connection="events"),
                  **metric("sightline_nats_connected", "1x200", FRONT, connection="events")},
        "at": 13, "labels": {**MINE, "instance": "r1", "connection": "events"},
        "says": WHO + "r1 has no connection for events (value 0).",
        "below": [metric("sightline_nats_connected", "1x10 0x1 1x200", connection="events")]},
    "SightlineCertificateExpiring": {
        "fires": metric("sightline_nats_certificate_expiry_timestamp_seconds",
                        f"{14 * 86400 + 60}x200", file="certificate"),
        "at": 62, "labels": {**MINE, "file": "certificate"},
        "says": WHO + "the first certificate of certificate expires in 13.96 days.",
        "below": [metric("sightline_nats_certificate_expiry_timestamp_seconds",
                         f"{15 * 86400}x200", file="certificate")]},
    "SightlineRolloutStuck": {
        "fires": metric("sightline_operator_object_rollout_stuck", "0x10 1x200", OBJECT),
        "at": 16, "labels": THEIRS,
        "says": "The roll-out of team/demo made no progress within its deadline (value 1).",
        "below": [metric("sightline_operator_object_rollout_stuck", "0x200", OBJECT)]},
    "SightlineObjectNotReady": {
        "fires": metric("sightline_operator_object_ready", "1x10 0x200", OBJECT),
        "at": 26, "labels": THEIRS,
        "says": "team/demo has not been Ready for 15 minutes (value 0).",
        "below": [metric("sightline_operator_object_ready", "1x10 0x14 1x200", OBJECT)]},
    "SightlineReconcileErrors": {
        "fires": metric("controller_runtime_reconcile_errors_total", "0+6x200", OPERATOR,
                        controller="multimodalrouter"),
        "at": 16, "labels": {"namespace": "system", "controller": "multimodalrouter"},
        "says": "0.1 reconciliations a second of multimodalrouter fail.",
        "below": [metric("controller_runtime_reconcile_errors_total", "0x20 2x200", OPERATOR,
                         controller="multimodalrouter"),
                  metric("controller_runtime_reconcile_errors_total", "0+6x200", OPERATOR,
                         controller="certificates")]},
    "SightlineNotOneLeader": {
        "fires": leaders(0, 0), "at": 5,
        "labels": {"namespace": "system", "name": "sightline-operator"},
        "says": "0 operators hold the lease sightline-operator.",
        "below": [leaders(1, 0), leaders(1)]},
}

# All series that alerts read, of a healthy deployment under load.
HEALTHY = {
    **metric("up", "1x200"), **metric("up", "1x200", FRONT), **metric("up", "1x200", OPERATOR),
    **metric("sightline_build_info", "1x200"), **metric("sightline_build_info", "1x200", FRONT),
    **states("ready"), **errors(1), **first_tokens(0), **inflight(5, 4), **stalled("0+60x200"),
    **judged(1), **reuse(600), **leaders(1, 0),
    **metric("sightline_limit_hits_total", "0x200", FRONT, limit="open-files"),
    **metric("sightline_block_size_mismatch_total", "0x200", worker="w1"),
    **metric("sightline_event_gaps_total", "0x200", worker="w1"),
    **metric("sightline_index_refused_blocks_total", "0x200"),
    **metric("sightline_replica_digests_total", "0+60x200", worker="w1", result="equal"),
    **metric("sightline_replica_digests_total", "0x200", worker="w1", result="unequal"),
    **metric("sightline_replica_digest_equal_timestamp_seconds", "0+60x200", worker="w1"),
    **metric("sightline_nats_connected", "1x200", connection="control"),
    **metric("sightline_nats_certificate_expiry_timestamp_seconds", f"{90 * 86400}x200",
             file="authority"),
    **metric("sightline_operator_object_ready", "1x200", OBJECT),
    **metric("sightline_operator_object_rollout_stuck", "0x200", OBJECT),
    **metric("controller_runtime_reconcile_errors_total", "0x200", OPERATOR,
             controller="multimodalrouter"),
}


def over_a_restart(values):
    """Returns the series with a gap of two minutes after the hundredth. Then it starts again."""
    head, _, tail = values.partition("x200")
    assert tail == "" and head, values
    begin, plus, step = head.partition("+")
    again = f"{begin}+{step}x97" if plus else f"{head}x97"
    return f"{head}x100 _x2 {again}"


def restarted(series):
    made = {}
    for name, values in series.items():
        if name.startswith("up{"):
            made[name] = "1x100 0x2 1x97"
        elif "timestamp_seconds" in name and "+" in values:
            made[name] = "0+60x100 _x2 0x0 6240+60x96"
        else:
            made[name] = over_a_restart(values) if values.endswith("x200") else values
    return made


RESTARTED = restarted(HEALTHY)


def replaced(series):
    """Returns the series of a roll-out. From the hundredth minute, processes of a new revision run
    beside the old ones for 10 minutes."""
    made = {}
    for name, values in series.items():
        is_ours = 'sightline_dev_router="demo"' in name
        if not is_ours or not values.endswith("x200"):
            made[name] = values
            continue
        head = values.removesuffix("x200")
        made[name] = f"{head}x110 stale"
        new = name.replace('instance="', 'instance="new-').replace(
            'worker="', 'worker="new-').replace("k2x9p0aa", "newnewne")
        begin, plus, step = head.partition("+")
        if "timestamp_seconds" in name:
            later = "6000+60x99" if plus else f"{head}x99"
        else:
            later = f"{begin}+{step}x99" if plus else f"{head}x99"
        made[new] = f"_x100 {later}"
    return made


# The engines of the new revision have cold caches.
ROLL_OUT = {name: values.replace("+600", "+10") if "newnewne" in name and "reused" in name
            else values for name, values in replaced(HEALTHY).items()}
