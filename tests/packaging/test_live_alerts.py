# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Tests alerts at a real Alertmanager. No alert fires while the deployment is healthy. Each alert
fires after its fault, with its runbook, and clears after the repair. Only with --cleared, tests
wait until alerts with a window of minutes clear. The rules are the chart's, but wait for two
seconds."""

import contextlib
import json
import threading

import nats_secrets
import promql_parser as promql
import pytest
from boards import contract, linter
from deployment import Deployment
from helm import ROOT
from mixed_load import Load
from stack import Stack, post
from test_alerts import all_rules
from test_live_boards import clients_of, hold, targets_of
from watching import Watch, wait_for

BUILD = ROOT / "build/release"
SPEED = ["--prefill-tokens-per-s", 20_000, "--decode-tokens-per-s", 500, "--blocks", 2000]
AFTER_S = 2
# Longer than the time that a rule waits and some scrapes.
A_WHILE_S = 8
# Longer than the longest window of an alert that a test here clears.
LONGER_S = 16 * 60


def look(watch, name):
    """Waits until the alert fires, checks its runbook and description, and returns it."""
    alerts = watch.wait_for_alert(name)
    assert {one["annotations"]["runbook_url"] for one in alerts} == {f"docs/runbooks/{name}.md"}
    assert all(one["annotations"]["description"] for one in alerts)
    return alerts


@pytest.fixture
def until_cleared(request):
    """Returns a function that waits until an alert with a window of minutes is cleared."""
    if not request.config.getoption("--cleared"):
        return lambda watch, name: None
    return lambda watch, name: watch.wait_until_cleared(name, LONGER_S)


def fault(engines, number, **fields):
    engines.call("POST", engines.engine_port(number), "/fault", json.dumps(fields))


def certificate_in(folder, days):
    """Makes a self-signed certificate of a server on this machine."""
    return nats_secrets.make_authority(folder, "ca", days, "IP:127.0.0.1")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    return certificate_in(tmp_path_factory.mktemp("certificate"), 90)


@pytest.fixture(scope="module")
def deployment(tmp_path_factory, certificate):
    key = certificate.with_suffix(".key")
    trusts = ["--nats-ca-file", certificate]
    made = Deployment(BUILD, engines=3, routers=2, frontends=1, engine_flags=SPEED,
                      nats_config=f'tls {{ cert_file: "{certificate}", key_file: "{key}" }}',
                      nats_url=lambda _: made.nats.url.replace("nats:", "tls:"),
                      agent_flags=trusts, router_flags=trusts, frontend_flags=trusts,
                      logs=tmp_path_factory.mktemp("logs"))
    with made:
        yield made


@pytest.fixture(scope="module")
def watch(deployment, tmp_path_factory):
    with Watch(tmp_path_factory.mktemp("watch"), targets_of(deployment),
               alerts_after=AFTER_S) as made:
        yield made


@pytest.fixture
def load(deployment):
    with Load(clients_of(deployment), clients=3, pause_s=0.02) as made:
        yield made


# Alerts use these only as denominators. If such a series starts at 1, a share is a little too high
# for one request.
DENOMINATORS = {"sightline_requests_total"}


def counters_of_alerts():
    """Returns the selectors of counters in the alerts' expressions."""
    found = set()
    for rule in all_rules().values():
        for selector in contract.selectors(promql.parse(rule["expr"])):
            name = contract.name_of(selector)
            if name.startswith("sightline_") and name.endswith(linter.COUNTERS) and \
                    name not in DENOMINATORS:
                found.add(selector.prettify().partition(" offset")[0])
    return sorted(found)


def test_alert_counters_exist_before_their_first_event(watch):
    selectors = counters_of_alerts()
    assert len(selectors) >= 12
    wait_for(lambda: watch.value("count(up)"))
    for selector in selectors:
        wait_for(lambda: watch.value(f"count({selector})"), 60, selector)  # noqa: B023


def test_no_alert_fires_under_healthy_load(deployment, watch, load):
    wait_for(lambda: (watch.value("sum(sightline_requests_total)") or 0) > 200, 60)
    fired = set()
    for _ in range(A_WHILE_S):
        threading.Event().wait(1)
        fired |= watch.firing().keys()
    assert fired == set()


def test_down_fires_for_a_killed_process(deployment, watch):
    agent = deployment.agents[2]
    wait_for(lambda: watch.value("count(up == 1)") == len(deployment.nodes) + 3)
    agent.kill()
    (alert,) = look(watch, "SightlineDown")
    assert alert["labels"]["instance"] == f"127.0.0.1:{agent.admin_port}"
    agent.start()
    watch.wait_until_cleared("SightlineDown")


def test_all_processes_report_a_killed_nats(deployment, watch):
    deployment.nats.kill()
    look(watch, "SightlineNatsDisconnected")
    wait_for(lambda: len({one["labels"]["instance"]
                          for one in watch.firing()["SightlineNatsDisconnected"]})
             == len(deployment.nodes))
    deployment.nats.start()
    watch.wait_until_cleared("SightlineNatsDisconnected")


def test_certificate_alert_clears_after_renewal_in_place(watch, certificate):
    certificate_in(certificate.parent, 13)
    look(watch, "SightlineCertificateExpiring")
    certificate_in(certificate.parent, 90)
    watch.wait_until_cleared("SightlineCertificateExpiring")


def mend(engines, number):
    engines.call("DELETE", engines.engine_port(number), "/fault")


def test_block_size_mismatch_alert_fires(deployment, watch, load, until_cleared):
    fault(deployment.engines, 1, kind="wrong-block-size")
    (alert, *_) = look(watch, "SightlineBlockSizeMismatch")
    assert alert["labels"]["worker"] == "w1"
    mend(deployment.engines, 1)
    until_cleared(watch, "SightlineBlockSizeMismatch")


def test_events_lost_fires_for_repeated_losses(deployment, watch, load, until_cleared):
    fault(deployment.engines, 0, kind="drop", p=0.3)
    look(watch, "SightlineEventsLost")
    mend(deployment.engines, 0)
    until_cleared(watch, "SightlineEventsLost")


@contextlib.contextmanager
def single(tmp_path, **options):
    """Starts one router with its own engines, and its Watch."""
    with Stack(BUILD, logs=tmp_path / "logs", **options) as stack, \
            watched(tmp_path, stack) as watch:
        yield stack, watch


def watched(tmp_path, stack):
    return Watch(tmp_path / "watch", {"router": [(stack.admin_port, {})]}, alerts_after=AFTER_S)


BODY = {"model": "demo", "max_tokens": 4,
        "messages": [{"role": "user", "content": "Say something about harbours. " * 20}]}


def test_no_routable_worker_and_errors_fire_without_engines(tmp_path):
    with single(tmp_path, engines=2) as (stack, watch):
        assert post(stack.port, BODY).status == 200
        wait_for(lambda: watch.value("sum(sightline_requests_total)") == 1)
        for number in range(2):
            fault(stack, number, kind="restart", ms=30_000)
        with Load([stack.port], clients=1, pause_s=0.5):
            look(watch, "SightlineNoRoutableWorker")
            look(watch, "SightlineErrorsHigh")
        stack.wait_until(stack.are_workers_ready, 120)
        with Load([stack.port], clients=8, judged=True):
            watch.wait_until_cleared("SightlineNoRoutableWorker")
            watch.wait_until_cleared("SightlineErrorsHigh")


def test_engine_stalled_fires_without_new_answers(tmp_path):
    """The engine is busy with one answer since before the start of Prometheus."""
    flags = ["--max-running", 1, "--decode-tokens-per-s", 1]
    with Stack(BUILD, engines=1, engine_flags=flags, logs=tmp_path / "logs") as stack:
        held = hold(stack.port, {**BODY, "stream": True, "max_tokens": 3000})
        assert b"data" in held.begun.readline()
        with watched(tmp_path, stack) as watch:
            waits = threading.Thread(target=ask_and_leave, args=(stack.port,), daemon=True)
            waits.start()
            (alert,) = look(watch, "SightlineEngineStalled")
            assert alert["labels"]["worker"] == "w0"
            held.close()
            watch.wait_until_cleared("SightlineEngineStalled")


def ask_and_leave(port):
    with contextlib.suppress(OSError):
        post(port, BODY)


def test_overclaims_fires_after_silent_cache_losses(tmp_path, until_cleared):
    with single(tmp_path, engines=1) as (stack, watch):
        for _ in range(3):
            post(stack.port, BODY)
            stack.wait_until_heard()  # the next decision must include its blocks
        wait_for(lambda: watch.value('sightline_predictions_total{result="equal"}') == 3)
        for _ in range(3):
            fault(stack, 0, kind="forget")
            post(stack.port, BODY)
            stack.wait_until_heard()
        look(watch, "SightlineOverclaims")
        until_cleared(watch, "SightlineOverclaims")


def test_limits_hit_fires_when_a_limit_refuses(tmp_path, until_cleared):
    options = {"engines": 1, "engine_flags": ["--decode-tokens-per-s", 5],
               "router_flags": ["--concurrent-requests-max", 1]}
    with single(tmp_path, **options) as (stack, watch):
        held = hold(stack.port, {**BODY, "stream": True, "max_tokens": 2000})
        with Load([stack.port], clients=1, pause_s=0.2):
            (alert,) = look(watch, "SightlineLimitsHit")
        assert alert["labels"]["limit"] == "concurrent-requests-max"
        held.close()
        until_cleared(watch, "SightlineLimitsHit")


def test_first_token_slow_fires_for_late_answers(tmp_path, until_cleared):
    flags = ["--prefill-tokens-per-s", 10]
    with single(tmp_path, engines=1, engine_flags=flags) as (stack, watch):
        for number in range(2):
            content = f"{number} " + "word " * 120
            post(stack.port, {**BODY, "stream": True,
                              "messages": [{"role": "user", "content": content}]})
        look(watch, "SightlineFirstTokenSlow")
        until_cleared(watch, "SightlineFirstTokenSlow")


def test_load_imbalance_fires_for_one_busy_worker(tmp_path, until_cleared):
    options = {"engines": 4, "engine_flags": ["--decode-tokens-per-s", 5]}
    with single(tmp_path, **options) as (stack, watch):
        for number in (1, 2, 3):
            fault(stack, number, kind="slow-probe", ms=60_000)
            fault(stack, number, kind="status500", p=1)
        held = []
        while len(held) < 12:
            with contextlib.suppress(AssertionError):
                held.append(hold(stack.port, {**BODY, "stream": True, "max_tokens": 5000}))
        look(watch, "SightlineLoadImbalance")
        for connection in held:
            connection.close()
        until_cleared(watch, "SightlineLoadImbalance")


def test_worker_unverified_fires_without_events(tmp_path):
    with Stack(BUILD, engines=1, logs=tmp_path / "engines") as engines:
        worker = {key: engines.workers[0][key] for key in ("name", "url")}
        with single(tmp_path, engines=0, workers=[{**worker, "events": "tcp://127.0.0.1:9"}],
                    ready_states=("unverified", "excluded", "ready")) as (_, watch):
            (alert, *_) = look(watch, "SightlineWorkerUnverified")
            assert alert["labels"]["worker"] == "w0"
