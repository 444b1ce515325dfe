// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
//
// Wrong answers of a router, and missing ones.
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "router/front/selection_json/endings.h"
#include "router/front/selection_json/workers_report.h"
#include "tests/integration/remote_selector/a_frontend.h"

namespace sightline::remote_selector {
namespace {

using std::chrono::milliseconds;

http::Response json_of(int status, std::string body) {
  http::Response response;
  response.status = status;
  response.headers.set("content-type", "application/json");
  response.body = std::move(body);
  return response;
}

std::string served_json(std::uint32_t block_size = kBlockSize) {
  selection_json::WorkersReport told;
  told.identity = "k";
  told.served.block_size = block_size;
  return selection_json::write_told(told);
}

// A router with good reports about itself. To other requests it answers as the test says.
class LyingRouter {
 public:
  using Answer = std::function<http::Response(const http::Request&)>;
  explicit LyingRouter(Answer answer, Answer served = {})
      : answer_(std::move(answer)), served_(std::move(served)) {
    auto handle = [this](http::Request& request, http::ResponseWriter& peer) -> Task<void> {
      const bool is_poll = request.path() == "/served";
      ++(is_poll ? polls : asked);
      http::Response response;
      if (!is_poll) {
        response = answer_(request);
      } else {
        response = served_ ? served_(request) : json_of(200, served_json());
      }
      const auto sent = co_await peer.send(std::move(response));
      static_cast<void>(sent);
    };
    server = std::move(*http::Server::create(pool, {.host = "127.0.0.1", .port = 0}, handle));
  }
  ~LyingRouter() {
    server.reset();
    pool.stop();
  }
  [[nodiscard]] http::ServerAddress address() const { return {"127.0.0.1", server->port()}; }

  std::atomic<int> polls = 0;
  std::atomic<int> asked = 0;

 private:
  const Answer answer_;
  const Answer served_;
  IoPool pool{{.io_threads = 1, .compute_threads = 0}};
  std::unique_ptr<http::Server> server;
};

std::string selection_json_of(const std::string& reservation, const std::string& host = "b") {
  selection::Selection selection{.worker = "b", .host = host, .port = 8000, .reason = "cost"};
  std::string body = selection_json::write_selection(selection, std::nullopt);
  const std::string none = R"("reservation":null)";
  body.replace(body.find(none), none.size(), R"("reservation":)" + reservation);
  return body;
}

std::string reservation_in(const http::Request& request) {
  const std::string key = R"("reservation":)";
  const std::size_t at = request.body.find(key) + key.size();
  return std::string(request.body.substr(at, request.body.find('"', at + 1) + 1 - at));
}

class ARouterThatLies : public AFrontend {
 protected:
  // A good router runs beside it. Repeats until the lying one was asked. The client always gets the
  // good one's answer.
  void expect_passed_over(const LyingRouter& liar, const std::string& trouble,
                          ErrorCode code = ErrorCode::Unavailable) {
    RouterAtPort good;
    ask_of({liar.address(), good.address()});
    for (int i = 0; i < 40 && liar.asked == 0; ++i) {
      const auto selected = select();
      ASSERT_TRUE(selected.ok()) << selected.error().message;
      EXPECT_EQ(selected->worker, "b");
      EXPECT_EQ(selected->overlap_blocks, 10U);
      // Another frontend may ask the other router first.
      if (liar.asked == 0) restart({liar.address(), good.address()});
    }
    EXPECT_GT(liar.asked, 0);
    stop();
    ask_of({liar.address()}, false);
    EXPECT_TRUE(fakes::eventually([&] { return selector->served()->block_size == kBlockSize; }));
    const auto selected = select();
    ASSERT_FALSE(selected.ok());
    EXPECT_EQ(selected.error().code, code);
    EXPECT_NE(selected.error().message.find(trouble), std::string::npos)
        << selected.error().message;
    EXPECT_EQ(selector->holdings().open(), 0U);
  }
  void restart(const std::vector<http::ServerAddress>& routers) {
    stop();
    instance += "f";
    ask_of(routers);
  }
};

TEST_F(ARouterThatLies, GarbageIsSkipped) {
  const LyingRouter liar([](const auto&) { return json_of(200, "{\"worker\":["); });
  expect_passed_over(liar, "sent an invalid selection");
}

TEST_F(ARouterThatLies, ASelectionUnderAnotherNameIsSkipped) {
  const LyingRouter liar([](const auto&) { return json_of(200, selection_json_of("\"x.1.0\"")); });
  expect_passed_over(liar, "`reservation` must be f");
}

TEST_F(ARouterThatLies, AnInvalidHostIsSkipped) {
  const LyingRouter liar([](const http::Request& request) {
    return json_of(200, selection_json_of(reservation_in(request), "b\\r\\nx: y"));
  });
  expect_passed_over(liar, "`host`");
}

// A counter that it raised would keep any number for good.
TEST_F(AFrontend, LimitsARoutersBlocksToThePrompt) {
  const LyingRouter router([](const http::Request& request) {
    if (request.path() == "/reservations") return json_of(200, "{}");
    std::string body = selection_json_of(reservation_in(request));
    const std::string none = R"("overlap_blocks":0,"prompt_blocks":0)";
    body.replace(body.find(none), none.size(),
                 R"("overlap_blocks":9000000000000000000,"prompt_blocks":9223372036854775807)");
    return json_of(200, body);
  });
  ask_of({router.address()});
  const auto selected = select();
  ASSERT_TRUE(selected.ok()) << selected.error().message;
  EXPECT_EQ(selected->overlap_blocks, some_keys().size());
  EXPECT_EQ(selected->prompt_blocks, some_keys().size());
  EXPECT_EQ(selected->block_size, kBlockSize);
}

TEST_F(ARouterThatLies, AnEndlessAnswerIsSkipped) {
  const LyingRouter liar([](const auto&) {
    return json_of(200, "{\"worker\":\"" + std::string(Caller::kShortAnswerBytesMax, 'x'));
  });
  expect_passed_over(liar, "");
}

TEST_F(ARouterThatLies, AnotherKindOfServerIsSkipped) {
  const LyingRouter liar([](const auto&) { return json_of(404, "no such page"); });
  expect_passed_over(liar, "status 404");
}

TEST_F(ARouterThatLies, OtherKeysAreNamedAndNothingIsBooked) {
  const LyingRouter liar([](const auto&) {
    return json_of(409, R"({"error":{"message":"the keys are for blocks of 16 tokens, but the )"
                        R"(workers have blocks of 32"}})");
  });
  expect_passed_over(liar, "the workers have blocks of 32. Try again shortly",
                     ErrorCode::OutOfDate);
  EXPECT_NE(metrics.scrape().find(R"(sightline_selection_mismatches_total{difference="told"})"),
            std::string::npos)
      << metrics.scrape();
}

// A client whose keys are computed again with the new block size then gets its answer.
TEST_F(AFrontend, ReportsOutdatedKeysWhenTheNewBlockSizeIsKnown) {
  std::atomic<int> choices = 0;
  const LyingRouter router(
      [&](const http::Request& request) {
        if (request.path() == "/reservations") return json_of(200, "{}");
        ++choices;
        return json_of(409, R"({"error":{"message":"the workers have blocks of 32"}})");
      },
      [&](const auto&) { return json_of(200, served_json(choices > 0 ? 32 : kBlockSize)); });
  call_time = ask_time = std::chrono::duration_cast<Duration>(fakes::kPatience);
  ask_of({router.address()});
  const auto selected = select();
  ASSERT_FALSE(selected.ok());
  EXPECT_EQ(selected.error().code, ErrorCode::OutOfDate);
  EXPECT_EQ(selector->served()->block_size, 32U);
  EXPECT_EQ(choices, 1) << "the same keys are not sent again";
}

TEST_F(ARouterThatLies, AnInvalidExplanationIsNotTheClientsFault) {
  const LyingRouter liar([](const auto&) { return json_of(200, "{}"); });
  ask_of({liar.address()});
  Result<selection::Explanation> result = Error{};
  fakes::run_task(pool, [&]() -> Task<void> {
    const auto asked = inquiry();
    auto explained = co_await selector->explain(asked);
    result = std::move(explained);
  });
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::Unavailable);
  EXPECT_EQ(result.error().blame, Blame::Internal);
}

TEST_F(ARouterThatLies, AnUnexpectedNotModifiedCausesNoFastPolling) {
  const LyingRouter liar([](const auto&) { return json_of(200, "{}"); },
                         [](const auto&) { return http::Response{.status = 304}; });
  ask_of({liar.address()}, false);
  EXPECT_TRUE(fakes::eventually([&] {
    const auto checked = selector->check();
    return !checked.ok() && checked.error().message.find("status 304") != std::string::npos;
  }));
  EXPECT_TRUE(fakes::eventually([&] { return liar.polls >= 3; }));
  EXPECT_LT(liar.polls, 1000) << "once an interval";
}

TEST_F(ARouterThatLies, LimitsOverlapToThePrompt) {
  const LyingRouter liar([](const http::Request& request) {
    std::string body = selection_json_of(reservation_in(request));
    for (const std::string name : {R"("overlap_blocks":)", R"("prompt_blocks":)"}) {
      body.insert(body.find(name) + name.size(), "99999");
    }
    return request.path() == "/reservations" ? json_of(200, "{}") : json_of(200, std::move(body));
  });
  ask_of({liar.address()});
  ASSERT_TRUE(select().ok());
  const auto list = selector->holdings().list_for(1);
  ASSERT_EQ(list.front().open.size(), 1U);
  EXPECT_EQ(list.front().open[0].work.booking.blocks, 1U);
  EXPECT_EQ(list.front().open[0].work.booking.prefill_tokens, 5U);
}

TEST_F(ARouterThatLies, ARefusedNoteIsDroppedAndTheRouterStaysWell) {
  const LyingRouter liar([](const http::Request& request) {
    if (request.path() != "/reservations") {
      return json_of(200, selection_json_of(reservation_in(request)));
    }
    return json_of(request.method == "POST" ? 400 : 200, "{}");
  });
  ask_of({liar.address()});
  const auto selected = select();
  ASSERT_TRUE(selected.ok()) << selected.error().message;
  selector->end(selected->reservation, {});
  EXPECT_TRUE(fakes::eventually([&] { return selector->holdings().dropped() == 1; }));
  EXPECT_TRUE(selector->check().ok());
  EXPECT_FALSE(selector->holdings().has_notes(1));
}

TEST_F(AFrontend, ReleasesDespiteBrokenUtf8OfAClient) {
  RouterAtPort router;
  ask_of({router.address()});
  const auto selected = select();
  ASSERT_TRUE(selected.ok());
  selector->end(selected->reservation,
                {.kind = selection::Ending::Kind::Failed,
                 .failure = Error{ErrorCode::Unavailable, Blame::Worker, true,
                                  std::string(20'000, 'x') + "\xff", "", ""},
                 .request_id = "\xff\xfe"});
  EXPECT_TRUE(fakes::eventually([&] { return router.in_flight() == 0; }));
  EXPECT_EQ(selector->holdings().dropped(), 0U);
  EXPECT_EQ(router.metrics.scrape().find(R"(selection_requests_total{code="400"})"),
            std::string::npos);
}

TEST_F(AFrontend, AnUnknownNameDelaysNoOther) {
  RouterAtPort router;
  ask_of({{"nobody", 8092}, router.address()});
  EXPECT_TRUE(select().ok());
}

}  // namespace
}  // namespace sightline::remote_selector
