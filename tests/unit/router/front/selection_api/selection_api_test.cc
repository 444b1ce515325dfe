// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/front/selection_api/selection_api.h"

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "common/runtime/io_pool.h"

#include "router/cache/index/exact_index.h"
#include "router/front/selection/local_selector.h"
#include "router/front/selection_json/keys_text.h"
#include "tests/fakes/manual_clock.h"
#include "tests/fakes/run_task.h"

namespace sightline::selection_api {
namespace {

using std::chrono::seconds;

constexpr std::uint32_t kBlockSize = 16;

// The selector of a router to which something else happens while it selects.
class InterruptedSelector : public selection::Selector {
 public:
  explicit InterruptedSelector(selection::Selector& inner) : inner_(inner) {}

  Task<Result<selection::Selection>> select(const selection::Inquiry& inquiry) override {
    if (meanwhile) co_await std::exchange(meanwhile, nullptr)();
    auto selected = co_await inner_.select(inquiry);
    co_return selected;
  }
  void first_token(selection::ReservationId id) override { inner_.first_token(id); }
  void end(selection::ReservationId id, const selection::Ending& ending) override {
    inner_.end(id, ending);
  }
  std::shared_ptr<fleet::LifeSign> life(selection::ReservationId id) override {
    return inner_.life(id);
  }
  Result<selection::Explanation> explain(const selection::Inquiry& inquiry) const override {
    return inner_.explain(inquiry);
  }

  std::function<Task<void>()> meanwhile;

 private:
  selection::Selector& inner_;
};

// A router of two workers with what it was told by values, behind the API.
class SelectionOverHttp : public testing::Test {
 protected:
  SelectionOverHttp() {
    contract::ServeSettings wanted;
    wanted.routing.policy = contract::Policy::Kv;
    wanted.routing.seed = 1;
    settings.publish(std::make_shared<const contract::ServeSettings>(wanted));
    std::vector<contract::WorkerSpec> specs;
    for (const std::string name : {"a", "b"}) {
      specs.push_back(*contract::parse_worker("name=" + name + ",url=http://" + name + ":8000"));
      fleet.set_workers(specs);
      fleet::Probe probe;
      probe.models = std::vector<fleet::ServedModel>{{.id = "m", .parent = ""}};
      probe.sources = std::vector<fleet::EventSource>{
          {.rank = 0, .enabled = true, .endpoint = "tcp://*:5557", .replay_endpoint = ""}};
      probe.load = fleet::ServerLoad{.block_size = kBlockSize, .ranks = {{.number = 0}}};
      fleet.apply_probe(specs.back(), probe);
    }
    index.store(caches.at("b"), operations::Tier::Gpu, keys_of(tokens()));
  }

  static std::vector<TokenId> tokens() {
    std::vector<TokenId> ids;
    for (TokenId i = 0; i < 4 * kBlockSize + 3; ++i) ids.push_back(i);
    return ids;
  }
  std::vector<keys::BlockKey> keys_of(const std::vector<TokenId>& ids) {
    return keys::block_keys(scheme, scheme.root({.model = "m"}),
                            {.tokens = ids, .media = {}, .block_size = kBlockSize})
        .keys;
  }
  // The members of an ask by token ids.
  static std::string token_ids() {
    std::string out = R"("token_ids":[)";
    for (const TokenId id : tokens()) out += (out.back() == '[' ? "" : ",") + std::to_string(id);
    return out + "]";
  }
  std::string key_ask(const std::string& identity, std::uint32_t block_size,
                      const std::string& reservation) {
    return R"({"keys":")" + selection_json::write_keys(keys_of(tokens())) +
           R"(","prompt_tokens":67,"block_size":)" + std::to_string(block_size) +
           R"(,"identity":")" + identity + R"(","reservation":")" + reservation + R"("})";
  }

  http::Response ask(const std::string& method, const std::string& path,
                     const std::string& body = "", const std::string& token = "") {
    http::Request request;
    request.method = method;
    request.target = path;
    request.body = body;
    if (!token.empty()) request.headers.set("authorization", "Bearer " + token);
    http::Response response;
    fakes::run_task(pool, [&]() -> Task<void> {
      auto answered = co_await api.answer(request);
      response = std::move(answered);
    });
    return response;
  }
  fleet::Load load(const std::string& worker) {
    return fleet.snapshot()->find(worker)->ranks[0].load->read(clock.now());
  }

  IoPool pool{{.io_threads = 1, .compute_threads = 0}};
  test::ManualClock clock;
  runtime::Metrics metrics;
  std::map<std::string, CacheId> caches;
  fleet::Fleet fleet{{},
                     {[this](const fleet::Worker& worker, const fleet::Rank& rank) {
                        const CacheId cache = rank.feed->cache;
                        caches[worker.spec.name] = cache;
                        fleet.take_facts(cache, {.health = operations::FeedHealth::Verified,
                                                 .block_size = kBlockSize,
                                                 .sequence = 1});
                      },
                      [](CacheId) {}, [](CacheId) { return Instant{}; }},
                     metrics,
                     clock};
  index::ExactIndex index;
  index::RemovalJournal removals;
  Published<contract::ServeSettings> settings{std::make_shared<const contract::ServeSettings>()};
  std::vector<std::uint64_t> predicted;  // of answers that were compared
  keys::Scheme scheme{contract::development_identity_key()};
  selection::LocalSelector selector{
      {.settings = settings,
       .fleet = fleet,
       .index = index,
       .removals = removals,
       .compare = [this](const audit::Answered& a) { predicted.push_back(a.predicted); },
       .metrics = metrics,
       .clock = clock}};
  InterruptedSelector interrupted{selector};
  SelectionApi api{{interrupted, fleet, scheme, clock},
                   {.identity = "key=1", .scope_model = "m", .leases = {}}};
};

TEST_F(SelectionOverHttp, TokenIdsAreSentToWhoHoldsTheirBlocks) {
  const auto response = ask("POST", "/select", "{" + token_ids() + "}");
  ASSERT_EQ(response.status, 200) << response.body;
  const auto selection = selection_json::read_selection(response.body);
  ASSERT_TRUE(selection.ok());
  EXPECT_EQ(selection->worker, "b");
  EXPECT_EQ(selection->host, "b");
  EXPECT_EQ(selection->port, 8000);
  EXPECT_EQ(selection->overlap_blocks, 4U);
  EXPECT_EQ(load("b").in_flight, 0U);
  EXPECT_EQ(load("b").recent_prefill_blocks, 0) << "nothing is booked";
}

TEST_F(SelectionOverHttp, AReservationIsBookedUntilItIsReleasedWithWhatWasLearnt) {
  const auto response = ask("POST", "/select_and_reserve", key_ask("key=1", 16, "f.1.0"));
  ASSERT_EQ(response.status, 200) << response.body;
  EXPECT_EQ(load("b").in_flight, 1U);
  EXPECT_EQ(load("b").prefill_tokens, 3U);
  EXPECT_EQ(ask("POST", "/reservations/f.1.0/prefill_complete").status, 200);
  EXPECT_EQ(load("b").prefill_tokens, 0U);
  EXPECT_EQ(api.reservations(), 1U);
  const std::string failed =
      R"({"kind":"failed","failure":{"code":"overloaded","blame":"worker","retryable":true,)"
      R"("message":"503"}})";
  EXPECT_EQ(ask("DELETE", "/reservations/f.1.0", failed).status, 200);
  EXPECT_EQ(load("b").in_flight, 0U);
  EXPECT_EQ(fleet.snapshot()->find("b")->state, fleet::WorkerState::Suspect);
  EXPECT_EQ(ask("POST", "/reservations/f.1.0/prefill_complete").status, 404);
}

TEST_F(SelectionOverHttp, TheEnginesOwnCountReachesTheAudit) {
  const std::string exact = R"({"exact":true,"reservation":"f.1.0",)" + token_ids() + "}";
  ASSERT_EQ(ask("POST", "/select_and_reserve", exact).status, 200);
  const std::string answered =
      R"({"kind":"answered","status":200,"usage":{"prompt_tokens":67,"cached_tokens":64}})";
  EXPECT_EQ(ask("DELETE", "/reservations/f.1.0", answered).status, 200);
  EXPECT_EQ(predicted, (std::vector<std::uint64_t>{64}));
}

TEST_F(SelectionOverHttp, TheSameReservationSentTwiceIsBookedOnce) {
  const std::string body = key_ask("key=1", 16, "f.1.0");
  const auto first = ask("POST", "/select_and_reserve", body);
  const auto again = ask("POST", "/select_and_reserve", body);
  EXPECT_EQ(first.body, again.body);
  EXPECT_EQ(load("b").in_flight, 1U);
  const auto later = ask("POST", "/select_and_reserve", key_ask("key=1", 16, "f.1.1"));
  EXPECT_EQ(later.status, 200);
  EXPECT_EQ(load("a").in_flight + load("b").in_flight, 1U) << "of two attempts the later counts";
  EXPECT_EQ(selector.open_reservations(), 1U);
}

TEST_F(SelectionOverHttp, AReleaseThatComesFirstOrTwiceIsOne) {
  EXPECT_EQ(ask("DELETE", "/reservations/f.1.0").status, 200);
  EXPECT_EQ(ask("DELETE", "/reservations/f.1.0").status, 200);
  const auto late = ask("POST", "/select_and_reserve", key_ask("key=1", 16, "f.1.0"));
  EXPECT_EQ(late.status, 409);
  EXPECT_EQ(selector.open_reservations(), 0U);
}

TEST_F(SelectionOverHttp, AReservationThatIsReleasedOrSentAgainWhileItIsMadeIsBookedOnceAtMost) {
  const auto send = [this](const char* method, const char* path, const std::string& body) {
    return [this, method, path, body]() -> Task<void> {
      http::Request request;
      request.method = method;
      request.target = path;
      request.body = body;
      co_await api.answer(request);
    };
  };
  interrupted.meanwhile = send("DELETE", "/reservations/f.1.0", "");
  EXPECT_EQ(ask("POST", "/select_and_reserve", key_ask("key=1", 16, "f.1.0")).status, 409);
  EXPECT_EQ(selector.open_reservations(), 0U);
  const std::string body = key_ask("key=1", 16, "f.2.0");
  interrupted.meanwhile = send("POST", "/select_and_reserve", body);
  EXPECT_EQ(ask("POST", "/select_and_reserve", body).status, 200);
  EXPECT_EQ(selector.open_reservations(), 1U);
  EXPECT_EQ(load("a").in_flight + load("b").in_flight, 1U);
}

TEST_F(SelectionOverHttp, ALeaseEndsAfterItsTimeAndASilentCallersAfterFifteenSeconds) {
  const auto leased = ask("POST", "/select_and_reserve", R"({"lease_s":30,)" + token_ids() + "}");
  ASSERT_EQ(leased.status, 200) << leased.body;
  EXPECT_EQ(ask("POST", "/select_and_reserve", "{" + token_ids() + "}").status, 400);
  ASSERT_EQ(ask("POST", "/select_and_reserve", key_ask("key=1", 16, "f.1.0")).status, 200);
  clock.advance(seconds(14));
  api.sweep();
  EXPECT_EQ(selector.open_reservations(), 2U);
  clock.advance(seconds(1));
  api.sweep();
  EXPECT_EQ(selector.open_reservations(), 1U);
  clock.advance(seconds(15));
  api.sweep();
  EXPECT_EQ(selector.open_reservations(), 0U);
  EXPECT_EQ(load("b").in_flight, 0U);
}

TEST_F(SelectionOverHttp, KeysOfOthersAreRefusedByNamingBoth) {
  const auto other = ask("POST", "/select_and_reserve", key_ask("key=2", 16, "f.1.0"));
  EXPECT_EQ(other.status, 409);
  EXPECT_NE(other.body.find("`key=2`"), std::string::npos);
  EXPECT_NE(other.body.find("`key=1`"), std::string::npos);
  const auto size = ask("POST", "/select", key_ask("key=1", 32, "f.1.0"));
  EXPECT_EQ(size.status, 409);
  EXPECT_NE(size.body.find("blocks of 32"), std::string::npos);
  EXPECT_NE(size.body.find("blocks of 16"), std::string::npos);
  EXPECT_EQ(selector.open_reservations(), 0U);
}

TEST_F(SelectionOverHttp, OnlyAGoodTokenIsLetIn) {
  api.set_tokens({"old", "new"});
  EXPECT_EQ(ask("GET", "/loads").status, 401);
  EXPECT_EQ(ask("GET", "/loads", "", "ne").status, 401);
  EXPECT_EQ(ask("GET", "/loads", "", "neww").status, 401);
  EXPECT_EQ(ask("GET", "/loads", "", "old").status, 200);
  EXPECT_EQ(ask("GET", "/loads", "", "new").status, 200);
  EXPECT_EQ(ask("GET", "/health").status, 200);
  api.set_tokens({"new"});
  EXPECT_EQ(ask("GET", "/loads", "", "old").status, 401);
}

TEST_F(SelectionOverHttp, OverlapsAreToldInTokens) {
  const auto response = ask("POST", "/overlap_scores", "{" + token_ids() + "}");
  ASSERT_EQ(response.status, 200) << response.body;
  EXPECT_NE(response.body.find(R"({"worker":"a","rank":0,"longest_matched":0)"), std::string::npos);
  EXPECT_NE(response.body.find(R"({"worker":"b","rank":0,"longest_matched":64)"), std::string::npos)
      << response.body;
}

TEST_F(SelectionOverHttp, WhatIsNoRequestOfTheApiIsRefused) {
  EXPECT_EQ(ask("GET", "/select").status, 404);
  EXPECT_EQ(ask("POST", "/other").status, 404);
  EXPECT_EQ(ask("POST", "/select", "{").status, 400);
  EXPECT_EQ(ask("DELETE", "/reservations/f.1").status, 400);
  EXPECT_EQ(ask("DELETE", "/reservations/f.1.0", R"({"kind":"x"})").status, 400);
  EXPECT_EQ(ask("PUT", "/reservations/f.1.0").status, 404);
}

TEST_F(SelectionOverHttp, WithoutAWorkerTheCauseIsTold) {
  fleet.set_workers({});
  const auto response = ask("POST", "/select_and_reserve", key_ask("key=1", 16, "f.1.0"));
  EXPECT_EQ(response.status, 503);
  const auto error = selection_json::read_error(response.body);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code, ErrorCode::Unavailable);
}

}  // namespace
}  // namespace sightline::selection_api
