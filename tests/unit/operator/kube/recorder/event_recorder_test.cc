// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/kube/recorder/event_recorder.h"

#include <gtest/gtest.h>

#include "tests/fakes/fake_api_server.h"
#include "tests/fakes/run_task.h"

namespace sightline::recorder {
namespace {

using fakes::eventually;

ObjectEvent happening() {
  ObjectEvent made;
  made.regarding = *object::Value::parse(
      R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","namespace":"s","uid":"u"}})");
  made.reason = "Scaled";
  return made;
}

TEST(EventRecorder, WritesEventsAndTheirRepetition) {
  fakes::FakeApiServer server;
  runtime::Metrics metrics;
  EventRecorder recorder({"c", "i"}, server, system_clock(), metrics);
  for (int i = 0; i < 5; ++i) recorder.record(happening());
  EXPECT_TRUE(eventually([&] { return server.writes().size() == 2; }));
  ASSERT_EQ(server.objects(event_resource()).size(), 1U);
}

TEST(EventRecorder, WhatTheServerRefusesIsCountedAndForgotten) {
  fakes::FakeApiServer server;
  server.before = [](const fakes::Call&) -> std::optional<client::Failure> {
    auto refused = fakes::api_failure(client::Reason::Forbidden, "no");
    refused.status = 403;
    return refused;
  };
  runtime::Metrics metrics;
  EventRecorder recorder({"c", "i"}, server, system_clock(), metrics);
  recorder.record(happening());
  EXPECT_TRUE(eventually([&] {
    return metrics.scrape().find("sightline_operator_events_total{outcome=\"failed\"} 1") !=
           std::string::npos;
  }));
}

}  // namespace
}  // namespace sightline::recorder
