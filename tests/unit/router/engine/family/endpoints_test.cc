// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/engine/family/endpoints.h"

#include <gtest/gtest.h>

namespace sightline::family {
namespace {

TEST(Endpoints, EngineEndpointsBecomeOurs) {
  struct Case {
    std::string engine_side;
    std::string host;
    std::string want;  // empty: refused
    bool want_bind = false;
  };
  const std::vector<Case> cases = {
      {"tcp://*:5557", "10.0.0.7", "tcp://10.0.0.7:5557"},
      {"tcp://[::]:5557", "10.0.0.7", "tcp://10.0.0.7:5557"},
      {"tcp://*:5557", "fd00::7", "tcp://[fd00::7]:5557"},
      {"tcp://[fd00::9]:5557", "fd00::7", "tcp://[fd00::9]:5557"},
      {"tcp://router:5557", "10.0.0.7", "tcp://*:5557", true},
      {"tcp://10.0.0.1:5557", "10.0.0.7", "tcp://*:5557", true},
      {"ipc:///run/kv.sock", "10.0.0.7", "ipc:///run/kv.sock"},
      {"tcp://0.0.0.0:5557", "10.0.0.7", ""},
      {"tcp://*:0", "10.0.0.7", ""},
      {"tcp://*:65536", "10.0.0.7", ""},
      {"tcp://*", "10.0.0.7", ""},
      {"tcp://:5557", "10.0.0.7", ""},
      {"inproc://kv", "10.0.0.7", ""},
      {"ipc://", "10.0.0.7", ""},
      {"", "10.0.0.7", ""},
  };
  for (const Case& c : cases) {
    const auto resolved = resolve_events_endpoint(c.engine_side, c.host);
    EXPECT_EQ(resolved.ok(), !c.want.empty()) << c.engine_side;
    if (!resolved.ok() || c.want.empty()) continue;
    EXPECT_EQ(resolved->endpoint, c.want);
    EXPECT_EQ(resolved->bind, c.want_bind) << c.engine_side;
  }
}

TEST(Endpoints, TheReplaySocketIsAlwaysOnTheEnginesSide) {
  EXPECT_EQ(*resolve_replay_endpoint("tcp://*:5657", "h"), "tcp://h:5657");
  EXPECT_EQ(*resolve_replay_endpoint("tcp://0.0.0.0:5657", "h"), "tcp://h:5657");
  EXPECT_EQ(*resolve_replay_endpoint("tcp://10.0.0.1:5657", "h"), "tcp://10.0.0.1:5657");
  EXPECT_EQ(*resolve_replay_endpoint("ipc:///r", "h"), "ipc:///r");
  EXPECT_FALSE(resolve_replay_endpoint("5657", "h").ok());
}

}  // namespace
}  // namespace sightline::family
