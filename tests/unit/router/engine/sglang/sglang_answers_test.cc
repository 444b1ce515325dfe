// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/engine/sglang/sglang_answers.h"

#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "router/engine/family/endpoints.h"
#include "tests/support/paths.h"

namespace sightline::sglang {
namespace {

std::string recorded(const std::string& name) {
  std::ifstream file(test::in_sources("tests/data/fleet/sglang-") + name);
  EXPECT_TRUE(file.good()) << name;
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

TEST(ServerInfo, ReadsTheVersion) {
  EXPECT_EQ(parse_version(recorded("server_info.json"))->text, "0.5.23");
  for (const char* body : {"", "[]", "{}", R"({"version":null})", R"({"version":"latest"})"}) {
    EXPECT_EQ(parse_version(body).error().code, ErrorCode::Corrupt) << body;
  }
}

TEST(ServerInfo, ReadsTheEventEndpointsOfEachRank) {
  const auto sources = parse_event_sources(recorded("server_info-dp2.json"));
  ASSERT_TRUE(sources.ok());
  ASSERT_EQ(sources->size(), 2U);
  EXPECT_TRUE(sources->at(0).enabled);
  EXPECT_EQ(sources->at(0).endpoint, "tcp://*:15907");
  EXPECT_EQ(sources->at(0).replay_endpoint, "tcp://*:16007");
  EXPECT_EQ(sources->at(1).block_size, 16U);
  EXPECT_EQ(sources->at(1).rank, 1U);
  EXPECT_EQ(sources->at(1).endpoint, "tcp://*:15908");
  EXPECT_EQ(sources->at(1).replay_endpoint, "tcp://*:16008");
}

TEST(ServerInfo, AServerWithoutEventsHasNoSources) {
  EXPECT_TRUE(parse_event_sources("{}")->empty());
  EXPECT_TRUE(parse_event_sources(R"({"kv_events":null})")->empty());
}

TEST(ServerInfo, EventsThatAreNotPublishedOverZmqAreOff) {
  const auto sources = parse_event_sources(
      R"({"kv_events":{"publisher":"null","endpoint_host":"*","endpoint_port_base":1,"dp_size":1}})");
  ASSERT_TRUE(sources.ok());
  EXPECT_FALSE(sources->at(0).enabled);
}

TEST(ServerInfo, AllAddressesAreThoseOfTheServersHost) {
  const auto sources = parse_event_sources(
      R"({"kv_events":{"publisher":"zmq","endpoint_host":"0.0.0.0","endpoint_port_base":5557,)"
      R"("dp_size":1}})");
  ASSERT_TRUE(sources.ok());
  EXPECT_EQ(sources->at(0).replay_endpoint, "");
  EXPECT_EQ(sources->at(0).endpoint, "tcp://*:5557");
  const auto ours = family::resolve_events_endpoint(sources->at(0).endpoint, "w0");
  EXPECT_EQ(*ours, (family::ResolvedEndpoint{"tcp://w0:5557", false}));
}

TEST(ServerInfo, WildcardServerUsesTheAddressOfItsUrl) {
  const std::map<std::string, std::string> endpoints = {{"::", "tcp://*:5557"},
                                                        {"[::]", "tcp://*:5557"},
                                                        {"fd00::7", "tcp://[fd00::7]:5557"},
                                                        {"[fd00::7]", "tcp://[fd00::7]:5557"},
                                                        {"engine-0", "tcp://engine-0:5557"}};
  for (const auto& [host, endpoint] : endpoints) {
    const auto sources =
        parse_event_sources(R"({"kv_events":{"publisher":"zmq","endpoint_host":")" + host +
                            R"(","endpoint_port_base":5557,"dp_size":1}})");
    ASSERT_TRUE(sources.ok());
    EXPECT_EQ(sources->at(0).endpoint, endpoint);
  }
}

TEST(ServerInfo, PortsAndRanksBeyondTheirRangeAreRefused) {
  for (const char* events :
       {R"({"publisher":"zmq","endpoint_host":"*","endpoint_port_base":1,"dp_size":0})",
        R"({"publisher":"zmq","endpoint_host":"*","endpoint_port_base":1,"dp_size":65})",
        R"({"publisher":"zmq","endpoint_host":"*","endpoint_port_base":1})",
        R"({"publisher":"zmq","endpoint_host":"*","endpoint_port_base":65535,"dp_size":2})",
        R"({"publisher":"zmq","endpoint_host":"*","dp_size":1})",
        R"({"publisher":"zmq","endpoint_port_base":1,"dp_size":1})", "[]", "1"}) {
    const auto sources = parse_event_sources(std::string(R"({"kv_events":)") + events + "}");
    EXPECT_FALSE(sources.ok()) << events;
  }
}

TEST(Loads, EachRankHasItsOwn) {
  const auto load = parse_loads(recorded("loads-dp2.json"));
  ASSERT_TRUE(load.ok());
  ASSERT_EQ(load->ranks.size(), 2U);
  EXPECT_EQ(load->ranks[1].number, 1U);
  EXPECT_EQ(load->running, 0U);
  EXPECT_EQ(load->block_size, 0U);
}

TEST(Loads, CountsAreAddedAndTheFullestRankIsTheWhole) {
  const auto load = parse_loads(
      R"({"loads":[{"dp_rank":1,"num_running_reqs":3,"num_waiting_reqs":1,"token_usage":0.25},)"
      R"({"dp_rank":0,"num_running_reqs":2,"num_waiting_reqs":-1,"token_usage":7}]})");
  ASSERT_TRUE(load.ok());
  EXPECT_EQ(load->running, 5U);
  EXPECT_EQ(load->waiting, 1U);
  EXPECT_EQ(load->kv_usage, 1.0);
  EXPECT_EQ(load->ranks[0].number, 0U);
  EXPECT_EQ(load->ranks[1].running, 3U);
}

TEST(Loads, WhatIsNoListOfRanksIsRefused) {
  for (const char* body :
       {"", "[]", "{}", R"({"loads":[]})", R"({"loads":[{}]})", R"({"loads":[{"dp_rank":64}]})",
        R"({"loads":[{"dp_rank":0},{"dp_rank":0}]})", R"({"loads":{"dp_rank":0}})"}) {
    EXPECT_FALSE(parse_loads(body).ok()) << body;
  }
}

}  // namespace
}  // namespace sightline::sglang
