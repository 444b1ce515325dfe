// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/commands/container_commands.h"

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace sightline::commands {
namespace {

using crd::Backend;

crd::Spec a_spec(Backend backend) {
  crd::Spec spec;
  spec.model.name = "m";
  spec.kv.block_size = 32;
  crd::Pool pool;
  pool.name = "a";
  pool.backend = backend;
  pool.worker_template.emplace();
  spec.pools = {pool};
  return spec;
}

std::string line(const crd::Spec& spec, const Places& places = {.model = "/models/m"}) {
  const ContainerCommand command =
      worker_command(agreement::agreement_of(spec, {}), spec, spec.pools[0], places);
  std::string out;
  for (const auto& [name, value] : command.env) out += name + "=" + value + " ";
  for (const std::string& word : command.command) out += word + " ";
  for (const std::string& word : command.args) out += word + " ";
  out.pop_back();
  return out;
}

TEST(Commands, VllmGetsAllFlagsThatRoutersNeed) {
  EXPECT_EQ(line(a_spec(Backend::Vllm)),
            "vllm serve /models/m --served-model-name m --host 0.0.0.0 --port 8000 "
            "--block-size 32 --enable-prefix-caching --enable-prompt-tokens-details "
            R"(--kv-events-config {"enable_kv_cache_events":true,"publisher":"zmq",)"
            R"("endpoint":"tcp://*:5557","replay_endpoint":"tcp://*:5657","topic":""})");
}

TEST(Commands, WhatIsGivenOfTheModelReachesVllm) {
  crd::Spec spec = a_spec(Backend::Vllm);
  spec.kv.hash_seed = "0";
  spec.kv.events = crd::EventsMode::Approximate;
  spec.model.max_model_len = 2048;
  spec.multimodal.processor = {{"max_pixels", 9}, {"min_pixels", 3}};
  spec.pools[0].worker_template->parallelism = {.tensor = 2, .pipeline = 3, .data = 4};
  spec.pools[0].worker_template->args = {"--enforce-eager"};
  EXPECT_EQ(line(spec, {.model = "hub/name", .chat_template = "/t.jinja"}),
            "PYTHONHASHSEED=0 vllm serve hub/name --served-model-name m --host 0.0.0.0 "
            "--port 8000 --block-size 32 --enable-prefix-caching --enable-prompt-tokens-details "
            "--max-model-len 2048 --chat-template /t.jinja "
            R"(--mm-processor-kwargs {"max_pixels":9,"min_pixels":3} )"
            "--tensor-parallel-size 2 --pipeline-parallel-size 3 --data-parallel-size 4 "
            "--enforce-eager");
}

TEST(Commands, SglangHasPagesForBlocks) {
  EXPECT_EQ(line(a_spec(Backend::Sglang)),
            "python3 -m sglang.launch_server --model-path /models/m --served-model-name m "
            "--host 0.0.0.0 --port 8000 --page-size 32 --enable-metrics --enable-cache-report "
            R"(--kv-events-config {"publisher":"zmq","endpoint":"tcp://*:5557",)"
            R"("replay_endpoint":"tcp://*:5657","topic":""})");
}

TEST(Commands, TrtllmServesWithoutEvents) {
  crd::Spec spec = a_spec(Backend::Trtllm);
  spec.pools[0].worker_template->parallelism.tensor = 2;
  EXPECT_EQ(line(spec),
            "trtllm-serve /models/m --host 0.0.0.0 --port 8000 --backend pytorch --tp_size 2");
}

TEST(Commands, TheSimulatorIsOneEngineOnThePortsOfAll) {
  crd::Spec spec = a_spec(Backend::Simulator);
  spec.pools[0].worker_template->parallelism.data = 2;
  EXPECT_EQ(line(spec),
            "sightline simulate --engines 1 --host 0.0.0.0 --base-port 8000 "
            "--events-base-port 5557 --replay-base-port 5657 --model-path /models/m "
            "--served-model-name m --block-size 32 --data-parallel-size 2");
}

TEST(Commands, RefusesConflictingArgumentsWithTheRemedy) {
  const std::vector<std::pair<Backend, std::string>> refused = {
      {Backend::Vllm, "--block-size=16"},
      {Backend::Vllm, "--block_size"},
      {Backend::Vllm, "--block"},
      {Backend::Vllm, "--kv-events-config.endpoint=tcp://*:1"},
      {Backend::Vllm, "--no-enable-prefix-caching"},
      {Backend::Vllm, "-tp=2"},
      {Backend::Vllm, "--port"},
      {Backend::Sglang, "--page-size"},
      {Backend::Sglang, "--disable-radix-cache"},
      {Backend::Trtllm, "--tp_size"},
      {Backend::Trtllm, "--tp-size=2"},
      {Backend::Simulator, "--base-port"},
  };
  for (const auto& [backend, argument] : refused) {
    crd::Spec spec = a_spec(backend);
    spec.pools[0].worker_template->args = {"--seed", "1", argument};
    const auto checked = check_own_arguments(spec.pools[0]);
    ASSERT_FALSE(checked.ok()) << argument;
    EXPECT_EQ(checked.error().param, "args[2]");
    EXPECT_NE(checked.error().message.find("remove it"), std::string::npos);
  }
}

TEST(Commands, TheHashSeedIsNotSetTwice) {
  crd::Spec spec = a_spec(Backend::Vllm);
  spec.pools[0].worker_template->env = {{.name = "A", .value = "1"},
                                        {.name = "PYTHONHASHSEED", .value = "1"}};
  const auto checked = check_own_arguments(spec.pools[0]);
  ASSERT_FALSE(checked.ok());
  EXPECT_EQ(checked.error().param, "env[1].name");
  EXPECT_NE(checked.error().message.find("spec.kv.hashSeed"), std::string::npos);
}

TEST(Commands, ArgumentsOfOnesOwnPass) {
  crd::Spec spec = a_spec(Backend::Vllm);
  spec.pools[0].worker_template->args = {"--max-num-seqs", "8", "--dtype=bfloat16", "-O3",
                                         "block-size"};
  EXPECT_TRUE(check_own_arguments(spec.pools[0]).ok());
  spec.pools[0].worker_template.reset();
  EXPECT_TRUE(check_own_arguments(spec.pools[0]).ok());
}

}  // namespace
}  // namespace sightline::commands
