# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""`sightline agent` beside simulated engines, and routers that follow it. After each fault, every
router's index equals what the engines hold, block by block."""

import contextlib
import http.client
import json
import random
import signal
import subprocess

import pytest
from deployment import Deployment
from nats_server import NatsServer, free_port
from stack import SLOWDOWN, Program, Stack, post
from truth import Judge

BLOCK = 16
CACHE_BLOCKS = 256
ENDED = "it announced its end"
QUICK = ["--fleet-probe-interval", "200ms"]
TOKEN = "a-token-of-who-may-drain"


class Traffic:
    """Sends prompts with shared beginnings directly to the engines: routers see only the events."""

    def __init__(self, engines, seed=1):
        self.engines = engines
        self.rng = random.Random(seed)
        self.heads = [self.tokens(3 * BLOCK) for _ in range(5)]

    def tokens(self, count):
        return [self.rng.randrange(1000, 9000) for _ in range(count)]

    def send(self, prompts):
        for engine in range(len(self.engines.workers)):
            for _ in range(prompts):
                prompt = self.rng.choice(self.heads) + self.tokens(2 * BLOCK + 3)
                body = {"model": "demo", "max_tokens": 1, "prompt": prompt}
                answer = post(self.engines.engine_port(engine), body, path="/v1/completions")
                assert answer.status == 200, answer.body


class Scene:
    """A deployment, its traffic, and a judge of each router."""

    def __init__(self, deployment, judges):
        self.deployment = deployment
        self.judges = judges
        self.traffic = Traffic(deployment.engines)

    def wait_until(self, condition, seconds=30):
        self.judges[0].stack.wait_until(condition, seconds)

    def wait_until_all_know(self):
        for judge in self.judges:
            for engine in range(len(self.deployment.engines.workers)):
                self.wait_until(lambda judge=judge, engine=engine: judge.equal(engine))

    def order(self, engine, kind, **fields):
        body = json.dumps({"kind": kind, **fields})
        self.deployment.engines.call("POST", self.port_of(engine), "/fault", body)

    def end_faults(self, engine):
        self.deployment.engines.call("DELETE", self.port_of(engine), "/fault")

    def port_of(self, engine):
        return self.deployment.engines.engine_port(engine)

    def workers_of(self, node):
        return json.loads(get(node.admin_port, "/v1/workers")[1])

    def rank_at_agent(self, agent=0, rank=0):
        return self.workers_of(self.deployment.agents[agent])[0]["ranks"][rank]

    def state(self, router=0, worker=0):
        told = self.workers_of(self.deployment.routers[router])[worker]
        return told["state"], told["reason"] or ""

    def count(self, metric, agent=0):
        text = get(self.deployment.agents[agent].admin_port, "/metrics")[1].decode()
        return sum(float(line.rsplit(" ", 1)[1]) for line in text.splitlines()
                   if line.startswith(metric))


@contextlib.contextmanager
def running(build, logs, engines=2, routers=2, engine_flags=(), router_flags=(), agent_flags=()):
    flags = ["--blocks", CACHE_BLOCKS, "--block-size", BLOCK, *engine_flags]
    deployment = Deployment(build, engines=engines, routers=routers, logs=logs,
                            engine_flags=flags, agent_flags=[*QUICK, *agent_flags],
                            router_flags=[*QUICK, *router_flags])
    with deployment, contextlib.ExitStack() as judges:
        made = []
        for node in deployment.routers:
            made.append(Judge(deployment.view(node)))
            judges.callback(made[-1].close)
        yield Scene(deployment, made)


def get(port, path):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30 * SLOWDOWN)
    connection.request("GET", path)
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer.status, body


def test_indexes_equal_engines_after_lost_repeated_and_late_events(build, logs):
    with running(build, logs) as scene:
        scene.traffic.send(20)
        scene.wait_until_all_know()
        for kind, p in (("drop", 0.2), ("duplicate", 0.2), ("reorder", 0.2)):
            for engine in (0, 1):
                scene.order(engine, kind, p=p)
        scene.traffic.send(60)
        for engine in (0, 1):
            scene.end_faults(engine)
        scene.traffic.send(5)
        scene.wait_until_all_know()


def test_each_rank_of_a_worker_has_its_own_stream(build, logs):
    with running(build, logs, engines=1, engine_flags=["--data-parallel-size", 3]) as scene:
        scene.traffic.send(60)
        for judge in scene.judges:
            for rank in range(3):
                scene.wait_until(lambda judge=judge, rank=rank: equal_of_rank(judge, rank))
        told = scene.workers_of(scene.deployment.agents[0])[0]["ranks"]
        assert len({rank["epoch"] for rank in told}) == 3
        assert all(rank["blocks"] > 0 for rank in told), told


def equal_of_rank(judge, rank):
    stack = judge.stack
    held = json.loads(stack.get(stack.engine_port(0), f"/sim/blocks?rank={rank}")[1])["blocks"]
    told = json.loads(stack.get(stack.admin_port, "/v1/index?worker=w0")[1])["ranks"][rank]
    return told["counts"] and set(told["blocks"]) == judge.names.of(held)


def test_restarted_engine_gets_a_new_epoch(build, logs):
    with running(build, logs, engines=1) as scene:
        scene.traffic.send(20)
        scene.wait_until_all_know()
        before = scene.rank_at_agent()["epoch"]
        scene.order(0, "restart")
        scene.wait_until(lambda: scene.rank_at_agent()["epoch"] not in (None, before))
        scene.traffic.send(20)
        scene.wait_until_all_know()


def test_restarted_agent_rebuilds_blocks_from_the_engines_replay(build, logs):
    with running(build, logs, engines=1) as scene:
        scene.traffic.send(30)
        scene.wait_until_all_know()
        agent = scene.deployment.agents[0]
        agent.kill()
        scene.traffic.send(10)
        scene.wait_until(lambda: scene.state()[0] != "ready")
        agent.start()
        scene.wait_until_all_know()
        scene.wait_until(lambda: scene.state()[0] == "ready")


def test_restarted_agent_without_replay_starts_empty_and_reports_it(build, logs):
    with running(build, logs, engines=1, engine_flags=["--no-replay"]) as scene:
        scene.traffic.send(10)
        scene.wait_until_all_know()
        agent = scene.deployment.agents[0]
        agent.kill()
        agent.start()
        scene.wait_until(lambda: scene.rank_at_agent()["epoch"] is not None)
        assert scene.rank_at_agent()["blocks"] == 0
        told = "no replay endpoint: blocks from before"

        # Connected is not yet subscribed. Events published in between are missed too.
        def heard():
            scene.traffic.send(1)
            return told in (scene.workers_of(agent)[0]["reason"] or "")

        scene.wait_until(heard)
        for router in (0, 1):
            scene.wait_until(lambda router=router: told in scene.state(router)[1])
        for judge in scene.judges:
            scene.wait_until(lambda judge=judge: judge.claim(0).counts)
            claimed_too_much, _ = judge.differences(0)
            assert not claimed_too_much


def test_agent_reads_events_without_nats_and_routers_catch_up(build, logs):
    with running(build, logs) as scene:
        scene.traffic.send(20)
        scene.wait_until_all_know()
        epoch = scene.rank_at_agent()["epoch"]
        scene.deployment.nats.kill()
        scene.traffic.send(30)
        scene.wait_until(lambda: scene.count("sightline_agent_unsent_total") > 0)
        # The agent is ready without NATS too. Under load it may lag behind the engine's events.
        admin_port = scene.deployment.agents[0].admin_port
        scene.wait_until(lambda: get(admin_port, "/readyz")[0] == 200)
        scene.deployment.nats.start()
        scene.wait_until_all_know()
        assert scene.rank_at_agent()["epoch"] == epoch


def test_router_names_both_agents_of_one_worker(build, logs):
    with running(build, logs, engines=1, routers=1) as scene:
        agent = scene.deployment.agents[0]
        command = agent.command({"admin": 0})
        at = command.index("--replica-name") + 1
        command[at] = "second"
        second = Program(command, logs / "second.log")
        try:
            second.wait_for("^ready")
            scene.wait_until(lambda: "second" in scene.state()[1])
            state, reason = scene.state()
            assert state == "unverified" and "agent0" in reason, reason
        finally:
            second.stop(signal.SIGKILL)
        scene.wait_until(lambda: scene.state()[0] == "ready")
        scene.wait_until_all_know()


def test_stopped_agent_makes_its_worker_unverified_immediately(build, logs):
    flags = ["--replica-stale-after", "1h"]
    with running(build, logs, engines=1, routers=1, router_flags=flags) as scene:
        scene.traffic.send(5)
        scene.wait_until_all_know()
        scene.deployment.agents[0].stop()
        scene.wait_until(lambda: scene.state()[0] == "unverified")


def test_drain_marks_the_worker_and_answers_when_idle(build, logs):
    flags = ["--decode-tokens-per-s", 50]
    logs.mkdir(parents=True, exist_ok=True)
    tokens = logs / "tokens"
    tokens.write_text(TOKEN + "\n")
    with running(build, logs, engines=1, engine_flags=flags,
                 agent_flags=["--admin-token-file", tokens]) as scene:
        port = scene.deployment.agents[0].admin_port
        body = json.dumps({"model": "demo", "max_tokens": 200, "prompt": "hello"})
        running_request = subprocess.Popen(
            ["curl", "-sS", "-o", "/dev/null", "-H", "content-type: application/json", "-d", body,
             f"http://127.0.0.1:{scene.port_of(0)}/v1/completions"])
        scene.wait_until(lambda: scene.workers_of(scene.deployment.agents[0])[0]["running"] == 1)
        drain = f"http://127.0.0.1:{port}/drain"
        for refused, asked in ((405, ["-X", "GET"]), (401, ["-X", "POST"]),
                               (401, ["-X", "POST", "-H", "authorization: Bearer another-token"])):
            assert curl(drain, *asked)[0] == refused, asked
        assert not scene.rank_at_agent()["draining"]
        with_token = ["-X", "POST", "-H", f"authorization: Bearer {TOKEN}"]
        hasty = curl(f"{drain}?timeout=1", *with_token)
        assert hasty[0] == 504 and not hasty[1]["drained"], hasty
        for router in range(2):
            scene.wait_until(lambda router=router: scene.state(router)[0] == "draining", seconds=2)
        status, told = curl(f"{drain}?timeout=60", *with_token)
        assert status == 200 and told["drained"], told
        assert told["workers"] == [{"name": "w0", "state": told["workers"][0]["state"],
                                    "running": 0, "waiting": 0}]
        assert running_request.wait(timeout=1) == 0
        assert scene.rank_at_agent()["draining"]


def drain(build, scene, *flags):
    port = scene.deployment.agents[0].admin_port
    return subprocess.run(
        [build / "bin/sightline", "drain", "--admin", f"http://127.0.0.1:{port}", *flags],
        capture_output=True, text=True, timeout=90 * SLOWDOWN, check=False)


def test_the_drain_command_waits_until_nothing_runs(build, logs):
    logs.mkdir(parents=True, exist_ok=True)
    tokens, others = logs / "tokens", logs / "others"
    tokens.write_text(f"a-token-of-yesterday\n{TOKEN}\n")
    others.write_text("a-token-of-nobody\n")
    with running(build, logs, engines=1, routers=1,
                 agent_flags=["--admin-token-file", tokens]) as scene:
        refused = drain(build, scene, "--token-file", others)
        assert refused.returncode == 1 and "--admin-token-file" in refused.stdout, refused
        assert not scene.rank_at_agent()["draining"]
        done = drain(build, scene, "--token-file", tokens, "--timeout", "60s")
        assert done.returncode == 0 and json.loads(done.stdout)["drained"], done
        assert scene.rank_at_agent()["draining"]
        scene.deployment.agents[0].stop()
        gone = drain(build, scene, "--token-file", tokens)
        assert gone.returncode == 1 and "connection refused" in gone.stderr, gone


@pytest.mark.parametrize("flags,missing", [
    ([], "--token-file"), (["--token-file", "/nowhere"], "/nowhere"),
    (["--token-file", "/nowhere", "--admin", "http://a:1,http://b:1"], "must name one admin port")])
def test_drain_command_names_a_missing_or_wrong_flag(build, flags, missing):
    done = subprocess.run([build / "bin/sightline", "drain", *flags], capture_output=True,
                          text=True, timeout=30 * SLOWDOWN, check=False)
    assert done.returncode == 2 and missing in done.stderr, done


def test_flag_enables_drain_by_get(build, logs):
    with running(build, logs, engines=1, routers=1,
                 agent_flags=["--agent-drain-by-get"]) as scene:
        drain = f"http://127.0.0.1:{scene.deployment.agents[0].admin_port}/drain?timeout=60"
        status, refused = curl(drain, "-X", "POST")
        assert status == 403 and "--admin-token-file" in refused["error"]["message"]
        assert curl(drain)[0] == 200
        assert scene.rank_at_agent()["draining"]


def curl(url, *flags):
    done = subprocess.run(["curl", "-sS", "-w", "\n%{http_code}", *flags, url], capture_output=True,
                          text=True, check=True, timeout=90 * SLOWDOWN)
    body, status = done.stdout.rsplit("\n", 1)
    return int(status), json.loads(body)


def test_agent_without_nats_reads_events_and_is_not_ready(build, logs):
    stack = Stack(build, engines=1, logs=logs)
    with contextlib.ExitStack() as programs:
        programs.callback(stack.stop)
        stack.start_engines()
        # The URL alone is enough: the engine reports the endpoint of its events.
        agent = Program(
            [stack.build / "bin/sightline", "agent", "--nats", f"nats://127.0.0.1:{free_port()}",
             "--model-path", stack.model_path, "--served-model-name", stack.name,
             "--admin-port", 0, "--worker", f"name=w0,url={stack.workers[0]['url']}"],
            logs / "agent.log")
        programs.callback(agent.stop)
        port = int(agent.wait_for(r"^ready: admin http://127.0.0.1:(\d+)").group(1))
        body = {"model": stack.name, "max_tokens": 1, "prompt": list(range(1000, 1100))}
        assert post(stack.engine_port(0), body, path="/v1/completions").status == 200

        def blocks():
            return json.loads(get(port, "/v1/workers")[1])[0]["ranks"][0]["blocks"]

        stack.router = agent  # its log is shown on failure
        stack.wait_until(lambda: blocks() == 100 // BLOCK)
        assert get(port, "/healthz")[0] == 200
        status, told = get(port, "/readyz?verbose")
        assert status == 503
        assert b"[-] nats" in told and b"not yet connected to NATS" in told, told
        assert b"[+] workers" in told, told


def test_agent_applies_changes_of_its_file_without_a_restart(build, logs):
    logs.mkdir(parents=True, exist_ok=True)
    config = logs / "agent.yaml"
    stack = Stack(build, engines=2, logs=logs)
    with NatsServer(logs) as nats, contextlib.ExitStack() as programs:
        programs.callback(stack.stop)
        stack.start_engines()

        def write(workers):
            lines = [f"  - {{name: {w['name']}, url: \"{w['url']}\"}}\n" for w in workers]
            config.write_text("workers:\n" + "".join(lines))

        write(stack.workers[:1])
        agent = Program(
            [stack.build / "bin/sightline", "agent", "--nats", nats.url, "--config", config,
             "--model-path", stack.model_path, "--served-model-name", stack.name,
             "--admin-port", 0], logs / "agent.log")
        programs.callback(agent.stop)
        port = int(agent.wait_for(r"^ready: admin http://127.0.0.1:(\d+)").group(1))
        stack.router = agent

        def streams():
            text = get(port, "/metrics")[1].decode()
            return [w for w in ("w0", "w1")
                    if f'sightline_agent_streams_open{{worker="{w}"}} 1' in text]

        stack.wait_until(lambda: streams() == ["w0"])
        write(stack.workers)
        stack.wait_until(lambda: streams() == ["w0", "w1"])
        write(stack.workers[1:])
        stack.wait_until(lambda: streams() == ["w1"])


def test_router_follows_a_worker_that_returns_to_its_agent(build, logs):
    logs.mkdir(parents=True, exist_ok=True)
    config = logs / "agent.yaml"
    engines = Stack(build, engines=2, logs=logs)

    def write(workers):
        lines = [f"  - {{name: {w['name']}, url: \"{w['url']}\"}}\n" for w in workers]
        config.write_text("workers:\n" + "".join(lines))

    with NatsServer(logs) as nats, contextlib.ExitStack() as programs:
        programs.callback(engines.stop)
        engines.start_engines()
        write(engines.workers)
        common = ["--nats", nats.url, "--model-path", engines.model_path, "--served-model-name",
                  engines.name, "--admin-port", 0]
        agent = Program([engines.build / "bin/sightline", "agent", "--config", config, *common],
                        logs / "agent.log")
        programs.callback(agent.stop)
        agent.wait_for("^ready: ")
        workers = [{"name": w["name"], "url": w["url"]} for w in engines.workers]
        router = Stack(build, workers=workers, worker_extra=",agent=true", logs=logs,
                       served_model_name=engines.name, router_flags=["--nats", nats.url])
        with router:
            write(engines.workers[1:])
            # The agent has published on this stream that it ends.
            router.wait_until(lambda: (router.worker_states()[0]["reason"] or "").endswith(ENDED))
            write(engines.workers)
            router.wait_until(lambda: router.worker_states()[0]["state"] == "ready")


@pytest.mark.parametrize("flags,missing", [
    (["--model-path", "x", "--worker", "url=http://127.0.0.1:1"], "nats.urls is not set"),
    (["--nats", "nats://127.0.0.1", "--worker", "url=http://127.0.0.1:1"], "model.path is not set"),
    (["--nats", "nats://127.0.0.1", "--model-path", "x"], "no worker is configured"),
    (["--nats", "nats://127.0.0.1", "--port", "8000"], "--port"),
])
def test_agent_refuses_missing_and_foreign_settings(build, flags, missing):
    done = subprocess.run([build / "bin/sightline", "agent", *flags], capture_output=True,
                          text=True, timeout=30 * SLOWDOWN, check=False)
    assert done.returncode == 2
    assert "sightline agent: " in done.stderr and missing in done.stderr, done.stderr


def test_help_shows_an_example_and_every_setting(build):
    done = subprocess.run([build / "bin/sightline", "agent", "--help"], capture_output=True,
                          text=True, timeout=30 * SLOWDOWN, check=True)
    for part in ("sightline agent --nats nats://127.0.0.1:4222", "agent=true", "/drain",
                 "--identity-key-file FILE", "SIGHTLINE_NATS"):
        assert part in done.stdout
    assert "--media" not in done.stdout
