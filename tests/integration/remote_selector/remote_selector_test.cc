// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/front/remote_selector/remote_selector.h"

#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "tests/integration/remote_selector/a_frontend.h"

namespace sightline::remote_selector {
namespace {

TEST_F(AFrontend, GetsTheSameAnswersAsInTheRoutersProcess) {
  RouterAtPort router;
  ask_of({router.address()});
  EXPECT_EQ(selector->served()->block_size, kBlockSize);
  const auto selected = select();
  ASSERT_TRUE(selected.ok()) << selected.error().message;
  EXPECT_EQ(selected->worker, "b");
  EXPECT_EQ(selected->overlap_blocks, 10U);
  EXPECT_EQ(router.load("b").in_flight, 1U);
  EXPECT_EQ(router.load("b").prefill_tokens, 5U);
  selector->first_token(selected->reservation);
  EXPECT_TRUE(fakes::eventually([&] { return router.load("b").prefill_tokens == 0; }));
  selector->end(selected->reservation,
                {.kind = selection::Ending::Kind::Answered,
                 .status = 200,
                 .usage = openai::Usage{.prompt_tokens = 165, .cached_tokens = 160},
                 .request_id = "r"});
  EXPECT_TRUE(fakes::eventually([&] { return router.in_flight() == 0; }));
  EXPECT_TRUE(fakes::eventually([&] { return router.predicted == 160; }))
      << "the audit hears of it";
}

TEST_F(AFrontend, ExplainsAsTheRouterDoes) {
  RouterAtPort router;
  ask_of({router.address()});
  Result<selection::Explanation> result = Error{};
  fakes::run_task(pool, [&]() -> Task<void> {
    const auto asked = inquiry();
    auto explained = co_await selector->explain(asked);
    result = std::move(explained);
  });
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_EQ(result->entries[result->chosen].worker, "b");
  EXPECT_EQ(router.in_flight(), 0U);
}

TEST_F(AFrontend, MovesReservationsOfALostRouterToTheNext) {
  auto first = std::make_unique<RouterAtPort>();
  auto second = std::make_unique<RouterAtPort>();
  ask_of({first->address(), second->address()});
  ASSERT_TRUE(select().ok());
  auto& home = first->in_flight() > 0 ? first : second;
  auto& other = first->in_flight() > 0 ? second : first;
  home.reset();
  EXPECT_TRUE(fakes::eventually([&] { return other->in_flight() == 1; })) << "booked again";
  const auto selected = select();
  ASSERT_TRUE(selected.ok()) << selected.error().message;
  EXPECT_EQ(other->in_flight(), 2U);
  selector->end(selected->reservation, {});
  EXPECT_TRUE(fakes::eventually([&] { return other->in_flight() == 1; }));
}

TEST_F(AFrontend, UsesARouterAtEachAddressOfItsName) {
  auto first = std::make_unique<RouterAtPort>();
  const std::uint16_t port = first->address().port;
  auto second = std::make_unique<RouterAtPort>("k", port, "127.0.0.2");
  ask_of({{"routers", port}});
  ASSERT_TRUE(select().ok());
  auto& home = first->in_flight() > 0 ? first : second;
  auto& other = first->in_flight() > 0 ? second : first;
  home.reset();
  EXPECT_TRUE(fakes::eventually([&] { return other->in_flight() == 1; }));
}

TEST_F(AFrontend, GetsTheReasonWhenNoRouterAnswers) {
  const auto address = RouterAtPort().address();
  ask_of({address}, false);
  const auto begin = std::chrono::steady_clock::now();
  const auto selected = select();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
  ASSERT_FALSE(selected.ok());
  EXPECT_EQ(selected.error().code, ErrorCode::Unavailable);
  EXPECT_NE(selected.error().message.find("no router is available"), std::string::npos);
}

TEST_F(AFrontend, DoesNotAskARouterOfOtherKeys) {
  RouterAtPort router("other");
  ask_of({router.address()}, false);
  EXPECT_TRUE(fakes::eventually([&] {
    const auto checked = selector->check();
    return !checked.ok() && checked.error().message.find("`other`") != std::string::npos;
  }));
  EXPECT_FALSE(select().ok());
  EXPECT_EQ(router.in_flight(), 0U);
}

TEST_F(AFrontend, AsksAnotherRouterIfOneHasNoWorker) {
  RouterAtPort first;
  RouterAtPort second;
  ask_of({first.address(), second.address()});
  ASSERT_TRUE(select().ok());
  auto& home = first.in_flight() > 0 ? first : second;
  auto& other = first.in_flight() > 0 ? second : first;
  // Only the answer shows the change to the frontend.
  home.fleet.set_workers({});
  const auto selected = select();
  ASSERT_TRUE(selected.ok()) << selected.error().message;
  EXPECT_EQ(other.in_flight(), 1U);
  other.fleet.set_workers({});
  const auto refused = select();
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::Unavailable);
  EXPECT_NE(refused.error().message.find("worker"), std::string::npos) << refused.error().message;
}

TEST_F(AFrontend, TheNextListBooksAgainWhatARouterLost) {
  RouterAtPort router;
  ask_of({router.address()});
  ASSERT_TRUE(select().ok());
  router.api.supersede({"f", 1, 0});
  EXPECT_TRUE(fakes::eventually([&] { return router.in_flight() == 1; }));
}

}  // namespace
}  // namespace sightline::remote_selector
