// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/crd/read.h"

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "operator/crd/write.h"

namespace sightline::crd {
namespace {

Result<Spec> spec_of(const std::string& spec) {
  const auto document = json::Document::parse(R"({"spec":)" + spec + "}");
  EXPECT_TRUE(document.ok());
  return read_spec(document->root());
}

constexpr const char* kFull = R"({
 "model":{"name":"m","source":{"pvc":{"claimName":"c","path":"p"}},"revision":"r1",
  "tokenSecret":{"name":"s","key":"token"},"maxModelLen":4096,
  "chatTemplate":{"configMap":"t","key":"k"}},
 "kv":{"blockSize":32,"hashSeed":"0","events":"Approximate"},
 "multimodal":{"modalities":["image"],"processor":{"min_pixels":3136},"imagesMax":3,
  "imageBytesMax":"1Mi","fetch":{"allowPrivateAddresses":true,"connectTimeout":"1s",
  "timeout":"2s","redirectsMax":1,"downloadsMax":2},"forward":"URL"},
 "transfer":{"mode":"shm","shm":{"size":"1Gi","onMiss":"Fail"}},
 "frontend":{"autoscaling":{"minReplicas":1,"maxReplicas":4,"targetCPUPercent":50},
  "service":{"type":"LoadBalancer","port":80,"annotations":{"a":"b"}},
  "concurrentRequestsMax":9,"resources":{"requests":{"cpu":"1","memory":"2Gi"}},
  "podTemplate":{"spec":{"nodeSelector":{"x":"y"}}}},
 "router":{"replicas":3,"policy":"random","weights":{"overlapCredit":"2","hostCredit":"0.5",
  "diskCredit":"0.1","prefillLoadScale":"1","decodeLoadScale":"3"},"staleAfter":"6s",
  "requestTimeout":"1m"},
 "pools":[
  {"name":"a","backend":"vllm","role":"aggregated","replicas":2,"blockSize":32,
   "template":{"image":"i","imagePullPolicy":"Never","args":["--x"],
    "env":[{"name":"E","value":"v"},{"name":"F","valueFrom":{"fieldRef":{"fieldPath":"p"}}}],
    "gpus":1,"gpuResource":"g","parallelism":{"tensor":2,"pipeline":1,"data":1},
    "sharedMemory":"1Gi","startupTimeout":"5m","resources":{"limits":{"g":"1"}}}},
  {"name":"b","backend":"sglang","role":"aggregated","selector":{"matchLabels":{"app":"x"},
   "port":8001,"eventsPort":5557,"replayPort":5558}},
  {"name":"c","backend":"vllm","role":"aggregated",
   "endpoints":[{"name":"e","url":"http://h:1","events":"tcp://h:2","replay":"tcp://h:3"}]}],
 "nats":{"external":{"urls":["nats://n:4222"],"credentialsSecret":{"name":"c","key":"k"},
  "caSecret":{"name":"d","key":"k"}}},
 "rollout":{"strategy":"BlueGreen","maxSurge":1,"maxUnavailable":0,"drainTimeout":"1m",
  "progressDeadline":"5m","paused":true},
 "disruption":{"maxUnavailable":2},"networkPolicy":{"enabled":false},
 "monitoring":{"podMonitor":"Enabled","interval":"15s","labels":{"release":"x"}},
 "logLevel":"debug","image":"router","imagePullPolicy":"Always",
 "imagePullSecrets":[{"name":"s"}],"version":"2","restart":"1","suspend":true})";

TEST(Crd, ASpecIsReadWholeAndWrittenAsItWas) {
  const auto spec = spec_of(kFull);
  ASSERT_TRUE(spec.ok()) << spec.error().message;
  EXPECT_EQ(spec->model.source->pvc->claim_name, "c");
  EXPECT_EQ(spec->kv.block_size, 32);
  EXPECT_EQ(spec->kv.events, EventsMode::Approximate);
  EXPECT_EQ(spec->multimodal.processor.at("min_pixels"), 3136);
  EXPECT_EQ(spec->multimodal.forward, Forward::Url);
  EXPECT_EQ(spec->transfer.mode, TransferMode::Shm);
  EXPECT_EQ(spec->frontend.autoscaling->target_cpu_percent, 50);
  EXPECT_EQ(spec->frontend.pod_template.json, R"({"spec":{"nodeSelector":{"x":"y"}}})");
  EXPECT_EQ(spec->router.policy, Policy::Random);
  ASSERT_EQ(spec->pools.size(), 3U);
  EXPECT_EQ(spec->pools[0].worker_template->env[1].name, "F");
  EXPECT_EQ(spec->pools[1].selector->events_port, 5557);
  EXPECT_EQ(spec->pools[2].endpoints[0].replay, "tcp://h:3");
  EXPECT_EQ(spec->nats.external->urls, std::vector<std::string>{"nats://n:4222"});
  EXPECT_EQ(spec->rollout.strategy, Strategy::BlueGreen);
  EXPECT_TRUE(spec->suspend);
  const auto again = spec_of(spec_json(*spec));
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(*again, *spec);
}

TEST(Crd, WritesEmptyListsAndEmptyWordsUnchanged) {
  const auto spec = spec_of(R"({"model":{"name":"m"},"multimodal":{"modalities":[]},
    "pools":[{"name":"a","template":{"args":["--chat-template",""]}}]})");
  ASSERT_TRUE(spec.ok());
  const auto again = spec_of(spec_json(*spec));
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(*again, *spec);
}

TEST(Crd, WhatIsNotGivenHasItsDefault) {
  const auto spec = spec_of(R"({"model":{"name":"m"},"pools":[{"name":"a"}],"kv":null})");
  ASSERT_TRUE(spec.ok());
  EXPECT_EQ(spec->kv.block_size, 16);
  EXPECT_EQ(spec->transfer.mode, TransferMode::Disabled);
  EXPECT_EQ(spec->pools[0].role, Role::Aggregated);
  EXPECT_FALSE(spec->pools[0].worker_template.has_value());
  EXPECT_EQ(spec->rollout.max_unavailable, 1);
}

TEST(Crd, AQuantityMayBeANumber) {
  const auto spec =
      spec_of(R"({"frontend":{"resources":{"limits":{"nvidia.com/gpu":2,"cpu":"500m"}}}})");
  ASSERT_TRUE(spec.ok());
  EXPECT_EQ(spec->frontend.resources.limits.at("nvidia.com/gpu"), "2");
  EXPECT_EQ(spec->frontend.resources.limits.at("cpu"), "500m");
}

TEST(Crd, AFieldOfAnotherKindIsNamedWithItsPath) {
  const std::vector<std::pair<std::string, std::string>> refused = {
      {"[]", "spec"},
      {R"({"model":1})", "spec.model"},
      {R"({"model":{"name":1}})", "spec.model.name"},
      {R"({"kv":{"blockSize":"16"}})", "spec.kv.blockSize"},
      {R"({"kv":{"blockSize":1.5}})", "spec.kv.blockSize"},
      {R"({"kv":{"events":"exact"}})", "spec.kv.events"},
      {R"({"suspend":"yes"})", "spec.suspend"},
      {R"({"pools":{}})", "spec.pools"},
      {R"({"pools":[{"name":"a"},{"role":"x"}]})", "spec.pools[1].role"},
      {R"({"multimodal":{"processor":{"a":"b"}}})", "spec.multimodal.processor.a"},
      {R"({"monitoring":{"labels":{"a":true}}})", "spec.monitoring.labels.a"},
      {R"({"monitoring":{"labels":[]}})", "spec.monitoring.labels"},
      {R"({"frontend":{"podTemplate":[]}})", "spec.frontend.podTemplate"},
  };
  for (const auto& [text, field] : refused) {
    const auto spec = spec_of(text);
    ASSERT_FALSE(spec.ok()) << text;
    EXPECT_EQ(spec.error().param, field) << text;
    EXPECT_NE(spec.error().message.find(field), std::string::npos) << spec.error().message;
  }
}

TEST(Crd, AnObjectWithoutASpecIsRefused) {
  const auto document = json::Document::parse("{}");
  EXPECT_EQ(read_spec(document->root()).error().param, "spec");
}

TEST(Crd, AFieldThatIsNotKnownIsPassedOver) {
  EXPECT_TRUE(spec_of(R"({"model":{"name":"m","later":{"x":1}}})").ok());
}

TEST(Crd, AStatusIsReadAsItWasWritten) {
  Status status;
  status.observed_generation = 7;
  status.conditions = {{.type = "Ready",
                        .status = ConditionStatus::True,
                        .observed_generation = 7,
                        .last_transition_time = "2026-01-01T00:00:00Z",
                        .reason = "AllGood",
                        .message = "a \"quoted\" message"}};
  status.workers = "2/2";
  status.images.router = "r";
  status.revisions = {{.name = "abc", .state = RevisionState::Draining, .block_size = 16}};
  status.pools = {{.name = "a", .desired = 2, .reported_block_sizes = {16, 32}}};
  status.rollout.phase = RolloutPhase::Stuck;
  const auto document = json::Document::parse(R"({"status":)" + status_json(status) + "}");
  ASSERT_TRUE(document.ok());
  const auto read = read_status(document->root());
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(*read, status);
  const auto none = json::Document::parse("{}");
  EXPECT_EQ(*read_status(none->root()), Status{});
}

TEST(Crd, LeavesOutEmptyTextsThatTheSchemaRefuses) {
  const std::string text = status_json(Status{});
  EXPECT_EQ(text.find("\"\""), std::string::npos) << text;
  EXPECT_EQ(text.find("startTime"), std::string::npos) << text;
}

}  // namespace
}  // namespace sightline::crd
