// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/cache/subscriber/zmq_endpoint.h"

#include <gtest/gtest.h>

namespace sightline::subscriber {
namespace {

TEST(ZmqEndpoint, TheNameOfAHostGivesWayToItsAddress) {
  const auto v4 = asio::ip::make_address("10.0.0.7");
  const auto v6 = asio::ip::make_address("fd00::7");
  const auto endpoint = ZmqEndpoint::parse("events", "tcp://engine-0.engines:5557");
  ASSERT_TRUE(endpoint.ok());
  EXPECT_EQ(endpoint->name(), "engine-0.engines");
  EXPECT_EQ(endpoint->at(v4), "tcp://10.0.0.7:5557");
  EXPECT_EQ(endpoint->at(v6), "tcp://[fd00::7]:5557");
  const auto from = ZmqEndpoint::parse("events", "tcp://eth0:0;engine-0:5557");
  ASSERT_TRUE(from.ok());
  EXPECT_EQ(from->name(), "engine-0");
  EXPECT_EQ(from->at(v4), "tcp://eth0:0;10.0.0.7:5557");
}

TEST(ZmqEndpoint, WhatHasNoNameIsLeftAsItIs) {
  for (const std::string text : {"tcp://10.0.0.7:5557", "tcp://[fd00::7]:5557", "tcp://::1:5557",
                                 "ipc:///run/x.sock", "inproc://x", "nonsense", ""}) {
    const auto endpoint = ZmqEndpoint::parse("events", text);
    ASSERT_TRUE(endpoint.ok()) << text;
    EXPECT_EQ(endpoint->name(), "") << text;
    EXPECT_EQ(endpoint->text(), text);
  }
  EXPECT_EQ(ZmqEndpoint::to_bind("tcp://eth0:5557").name(), "");
}

TEST(ZmqEndpoint, WhatLibzmqWouldLookUpOrRefuseIsRefused) {
  for (const std::string text :
       {"tcp://*:5557", "tcp://name", "tcp://name:", "tcp://name:0", "tcp://name:65536",
        "tcp://name:55x", "tcp://:5557", "tcp://[name]:5557", "tcp://na me:5557", "tcp://na%me:1",
        "tcp://eth0;:5557"}) {
    const auto endpoint = ZmqEndpoint::parse("replay", text);
    ASSERT_FALSE(endpoint.ok()) << text;
    EXPECT_EQ(endpoint.error().message,
              "replay endpoint cannot be used (Invalid argument): write it as tcp://host:port, "
              "tcp://[address]:port or ipc://path");
  }
  EXPECT_FALSE(ZmqEndpoint::parse("events", "tcp://" + std::string(254, 'a') + ":1").ok());
}

}  // namespace
}  // namespace sightline::subscriber
