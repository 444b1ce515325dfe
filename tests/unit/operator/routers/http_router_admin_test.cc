// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/routers/http_router_admin.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/fakes/manual_clock.h"

namespace sightline::routers {
namespace {

using client::Answer;
using object::Value;
using rest::HttpAnswer;
using rest::HttpRequest;

// The requests and answers of all connections of a test.
struct Network {
  std::vector<std::pair<std::string, HttpRequest>> requests;  // server, request
  std::map<std::string, HttpAnswer> answers;                  // by path
  Duration pace{};                                            // the time that an answer takes
  test::ManualClock clock;
};

class FakeTransport : public rest::Transport {
 public:
  FakeTransport(std::string server, Network& network)
      : server_(std::move(server)), network_(network) {}
  Answer<HttpAnswer> exchange(const HttpRequest& request, Duration time_max) override {
    network_.requests.emplace_back(server_, request);
    client::Failure late;
    late.reason = client::Reason::Deadline;
    late.message = "no complete answer in time";
    network_.clock.advance(std::min(network_.pace, time_max));
    if (network_.pace > time_max) return late;
    const auto found = network_.answers.find(request.target);
    if (found != network_.answers.end()) return found->second;
    client::Failure refused;
    refused.reason = client::Reason::ConnectionRefused;
    refused.message = "connection refused";
    return refused;
  }
  Answer<Opened> open(const HttpRequest&, Duration) override { return client::Failure{}; }

 private:
  const std::string server_;
  Network& network_;
};

class HttpRouterAdminTest : public testing::Test {
 protected:
  HttpRouterAdmin admin() {
    return HttpRouterAdmin({.connect =
                                [this](const std::string& server) {
                                  return std::make_unique<FakeTransport>(server, network_);
                                },
                            .may_write = [this] { return leads_; }},
                           network_.clock);
  }
  void answer(const std::string& path, int status, const std::string& body) {
    network_.answers[path] = {.status = status, .body = body, .retry_after = {}};
  }

  Network network_;
  bool leads_ = true;
};

TEST_F(HttpRouterAdminTest, AsksForAllThatIsJudged) {
  answer("/v1/workers", 200, R"([{"name":"w0"}])");
  answer("/v1/workers/list", 200, R"({"generation":3})");
  answer("/v1/settings", 200, "[]");
  answer("/v1/replicas", 200, R"({"members":[]})");
  const auto answers = admin().ask({"10.0.0.7", "secret"});
  ASSERT_TRUE(answers.ok()) << answers.error().message;
  EXPECT_EQ(answers->list["generation"].integer(), 3);
  for (const auto& [server, request] : network_.requests) {
    EXPECT_EQ(server, "http://10.0.0.7:9090");
    EXPECT_TRUE(request.headers.empty()) << "reading needs no token";
  }
}

TEST_F(HttpRouterAdminTest, SaysWhatARouterThatDoesNotAnswerWasAsked) {
  const auto gone = admin().ask({"10.0.0.7", {}});
  ASSERT_FALSE(gone.ok());
  EXPECT_EQ(gone.error().message, "GET /v1/workers: connection refused");
  answer("/v1/workers", 200, "no JSON");
  const auto odd = admin().ask({"10.0.0.7", {}});
  ASSERT_FALSE(odd.ok());
  EXPECT_TRUE(odd.error().message.starts_with("GET /v1/workers: its answer is not JSON: "));
}

TEST_F(HttpRouterAdminTest, AllThatIsAskedOfARouterHasOneTime) {
  for (const char* path : {"/v1/workers", "/v1/workers/list", "/v1/settings", "/v1/replicas"}) {
    answer(path, 200, "[]");
  }
  network_.pace = std::chrono::milliseconds(900);
  const Instant start = network_.clock.now();
  EXPECT_FALSE(admin().ask({"10.0.0.7", {}}).ok());
  EXPECT_LE(network_.clock.now() - start, kCallMax);
}

TEST_F(HttpRouterAdminTest, AnAnswerOfEndlesslyManyValuesIsNone) {
  std::string many = "[0";
  for (std::size_t i = 0; i < kAnswerValuesMax; ++i) many += ",0";
  answer("/v1/workers", 200, many + "]");
  const auto odd = admin().ask({"10.0.0.7", {}});
  ASSERT_FALSE(odd.ok());
  EXPECT_TRUE(odd.error().message.starts_with("GET /v1/workers: its answer is not JSON: "));
  answer("/v1/workers", 200, std::string(200, '[') + std::string(200, ']'));
  EXPECT_FALSE(admin().ask({"10.0.0.7", {}}).ok());
}

TEST_F(HttpRouterAdminTest, PutsWithTheTokenAndReportsARefusal) {
  answer("/v1/workers", 409, R"({"error":{"message":"a later list is held: 7","code":409}})");
  Value body = Value::object();
  body.member("generation") = 6;
  const auto put = admin().put({"fd00::1", "secret"}, "/v1/workers", body);
  ASSERT_FALSE(put.ok());
  EXPECT_EQ(put.error().message, "PUT /v1/workers: status 409, a later list is held: 7");
  const auto& [server, request] = network_.requests.at(0);
  EXPECT_EQ(server, "http://[fd00::1]:9090");
  EXPECT_EQ(request.body, R"({"generation":6})");
  ASSERT_EQ(request.headers.size(), 1U);
  EXPECT_EQ(request.headers[0].second, "Bearer secret");
}

TEST_F(HttpRouterAdminTest, SendsNothingWhenThisProcessDoesNotLead) {
  leads_ = false;
  answer("/v1/settings", 200, "{}");
  EXPECT_FALSE(admin().put({"10.0.0.7", "secret"}, "/v1/settings", Value::object()).ok());
  EXPECT_TRUE(network_.requests.empty());
}

}  // namespace
}  // namespace sightline::routers
