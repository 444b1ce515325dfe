// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/replicas/agent/agent_metrics.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace sightline::agent {
namespace {

using operations::Tier;

StreamView stream(const std::string& worker, std::uint32_t rank) {
  StreamView view;
  view.name = {.worker = worker, .rank = rank};
  view.epoch = 1;
  view.memory_bytes = 1'000;
  view.digest.of(Tier::Gpu).count = 5;
  view.statistics.frames = 10;
  return view;
}

class AgentMetricsOf : public testing::Test {
 protected:
  [[nodiscard]] std::string scrape() const { return "\n" + metrics_.scrape(); }
  [[nodiscard]] bool has(const std::string& line) const {
    return scrape().find("\nsightline_" + line + "\n") != std::string::npos;
  }

  runtime::Metrics metrics_;
  AgentMetrics told_{metrics_};
};

TEST_F(AgentMetricsOf, WorkerMetricsSumItsRanks) {
  std::vector<StreamView> streams = {stream("w0", 0), stream("w0", 1)};
  streams[1].epoch.reset();
  streams[1].unsent = 3;
  streams[1].statistics.frames_unsent = 4;
  told_.tell(streams);
  EXPECT_TRUE(has("agent_streams_open{worker=\"w0\"} 1")) << scrape();
  EXPECT_TRUE(has("agent_blocks{worker=\"w0\",tier=\"gpu\"} 10"));
  EXPECT_TRUE(has("agent_memory_bytes{worker=\"w0\"} 2000"));
  EXPECT_TRUE(has("agent_frames_total{worker=\"w0\"} 20"));
  EXPECT_TRUE(has("agent_unsent_total{worker=\"w0\"} 7"));
}

TEST_F(AgentMetricsOf, CountersRiseOnAcrossANewStream) {
  std::vector<StreamView> streams = {stream("w0", 0)};
  told_.tell(streams);
  streams[0].statistics.frames = 12;
  streams[0].statistics.asks_refused = 2;
  told_.tell(streams);
  EXPECT_TRUE(has("agent_frames_total{worker=\"w0\"} 12")) << scrape();
  EXPECT_TRUE(has("agent_asks_refused_total{reason=\"reader-limit\"} 2"));
  streams[0].statistics.frames = 3;
  told_.tell(streams);
  EXPECT_TRUE(has("agent_frames_total{worker=\"w0\"} 15"));
}

TEST_F(AgentMetricsOf, AWorkerThatLeftGoAwayAndOthersStay) {
  std::vector<StreamView> streams = {stream("w0", 0), stream("w1", 0), stream("w1", 1)};
  told_.tell(streams);
  streams.pop_back();
  streams.erase(streams.begin());
  told_.tell(streams);
  EXPECT_EQ(scrape().find("w0"), std::string::npos) << scrape();
  EXPECT_TRUE(has("agent_frames_total{worker=\"w1\"} 20"));
  EXPECT_TRUE(has("agent_streams_open{worker=\"w1\"} 1"));
}

TEST_F(AgentMetricsOf, BlocksThatFoundNoRoomCountAsALimit) {
  std::vector<StreamView> streams = {stream("w0", 0)};
  streams[0].left_out = 7;
  told_.tell(streams);
  EXPECT_TRUE(has("limit_hits_total{limit=\"agent-blocks\"} 7")) << scrape();
}

}  // namespace
}  // namespace sightline::agent
