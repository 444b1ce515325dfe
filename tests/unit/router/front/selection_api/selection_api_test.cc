// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/front/selection_api/selection_api.h"

#include <chrono>
#include <fstream>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "common/runtime/io_pool.h"

#include "router/cache/index/exact_index.h"
#include "router/front/selection/local_selector.h"
#include "router/front/selection_json/keys_text.h"
#include "router/front/selection_json/renewal.h"
#include "router/front/selection_json/workers_report.h"
#include "tests/fakes/manual_clock.h"
#include "tests/fakes/run_task.h"
#include "tests/support/told_fleet.h"

namespace sightline::selection_api {
namespace {

using std::chrono::seconds;

constexpr std::uint32_t kBlockSize = test::ToldFleet::kBlockSize;

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
  Task<Result<selection::Explanation>> explain(const selection::Inquiry& inquiry) override {
    return inner_.explain(inquiry);
  }

  std::function<Task<void>()> meanwhile;

 private:
  selection::Selector& inner_;
};

// Holds a router behind the API, with two workers. Plain values fill the fleet and the index.
class SelectionOverHttp : public testing::Test {
 protected:
  SelectionOverHttp() {
    contract::ServeSettings wanted;
    wanted.routing.policy = contract::Policy::Kv;
    wanted.routing.seed = 1;
    settings.publish(std::make_shared<const contract::ServeSettings>(wanted));
    workers.add("a");
    workers.add("b");
    index.store(workers.caches.at("b"), operations::Tier::Gpu, keys_of(tokens()));
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
  // The members of a request for token ids.
  static std::string token_ids() {
    std::string out = R"("token_ids":[)";
    for (const TokenId id : tokens()) out += (out.back() == '[' ? "" : ",") + std::to_string(id);
    return out + "]";
  }
  std::string key_ask(const std::string& identity, std::uint32_t block_size,
                      const std::string& reservation) {
    return R"({"keys":")" + selection_json::write_keys(keys_of(tokens())) +
           R"(","prompt_tokens":)" + std::to_string(4 * block_size + 3) + R"(,"block_size":)" +
           std::to_string(block_size) + R"(,"identity":")" + identity + R"(","reservation":")" +
           reservation + R"("})";
  }

  http::Response ask(const std::string& method, const std::string& path,
                     const std::string& body = "") {
    http::Request request;
    request.method = method;
    request.target = path;
    request.body = body;
    return answer_of(api, request);
  }
  http::Response answer_of(SelectionApi& asked, const http::Request& request) {
    http::Response response;
    fakes::run_task(pool, [&]() -> Task<void> {
      auto answered = co_await asked.answer(request);
      response = std::move(answered);
    });
    return response;
  }
  fleet::Load load(const std::string& worker) { return workers.load(worker); }

  IoPool pool{{.io_threads = 1, .compute_threads = 1}};
  test::ManualClock clock;
  runtime::Metrics metrics;
  test::ToldFleet workers{metrics, clock};
  fleet::Fleet& fleet = workers.fleet;
  index::ExactIndex index;
  index::RemovalJournal removals;
  Published<contract::ServeSettings> settings{std::make_shared<const contract::ServeSettings>()};
  // The predicted tokens of each answer that was compared.
  std::vector<std::uint64_t> predicted;
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
  // Why the router is not ready. Empty if it is ready.
  std::string not_ready;
  // Why the router's knowledge is stale. Empty if it is fresh.
  std::string stale;
  [[nodiscard]] SelectionApi::Deps sources() {
    return {.pool = pool,
            .selector = interrupted,
            .fleet = fleet,
            .scheme = scheme,
            .metrics = metrics,
            .clock = clock,
            .served = [this] { return served.read(); },
            .adopt = [this](const selection::Adoption& work) { return selector.adopt(work); },
            .tokens = nullptr,
            .ready = [this]() -> Result<Done> {
              if (not_ready.empty()) return Done{};
              return Error{ErrorCode::Unavailable, Blame::Internal, true, not_ready, "", ""};
            },
            .stale = [this] { return stale; }};
  }
  [[nodiscard]] SelectionApi::Options options() {
    return {.identity = "key=1",
            .scope_model = "m",
            .leases = {},
            .on_taken = [this](const std::vector<leases::Name>& names) {
              for (const auto& name : names) taken.push_back(leases::text_of(name));
            }};
  }
  fleet::ServedView served{fleet};
  // The names that on_taken got.
  std::vector<std::string> taken;
  SelectionApi api{sources(), options()};
};

TEST_F(SelectionOverHttp, SelectsWorkerThatHoldsTheTokens) {
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

TEST_F(SelectionOverHttp, LongRequestDoesNotBlockItsThread) {
  std::promise<void> release;
  auto held = release.get_future();
  auto hold = [&]() -> Task<void> {
    auto wait = [&held] { held.wait(); };
    const Effort effort;
    co_await run_on_compute(pool, effort, std::move(wait));
  };
  spawn(pool.context(0).get_executor(), hold());
  http::Request request;
  request.method = "POST";
  request.target = "/select";
  request.body = "{" + token_ids() + "," + std::string(kInlineWeightMax, ' ') + R"("media":[]})";
  std::promise<http::Response> answered;
  auto ask_long = [&]() -> Task<void> {
    auto response = co_await api.answer(request);
    answered.set_value(std::move(response));
  };
  spawn(pool.context(0).get_executor(), ask_long());
  EXPECT_EQ(ask("POST", "/select", "{" + token_ids() + "}").status, 200);
  auto answer = answered.get_future();
  EXPECT_EQ(answer.wait_for(seconds(0)), std::future_status::timeout);
  release.set_value();
  const auto response = answer.get();
  EXPECT_EQ(response.status, 200) << response.body;
}

TEST_F(SelectionOverHttp, BooksReservationUntilItsRelease) {
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

TEST_F(SelectionOverHttp, CachedTokensOfTheEngineReachTheAudit) {
  const std::string exact = R"({"exact":true,"reservation":"f.1.0",)" + token_ids() + "}";
  ASSERT_EQ(ask("POST", "/select_and_reserve", exact).status, 200);
  const std::string answered =
      R"({"kind":"answered","status":200,"usage":{"prompt_tokens":67,"cached_tokens":64}})";
  EXPECT_EQ(ask("DELETE", "/reservations/f.1.0", answered).status, 200);
  EXPECT_EQ(predicted, (std::vector<std::uint64_t>{64}));
}

TEST_F(SelectionOverHttp, BooksRepeatedReservationOnce) {
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

TEST_F(SelectionOverHttp, ReleaseMayComeFirstOrTwice) {
  EXPECT_EQ(ask("DELETE", "/reservations/f.1.0").status, 200);
  EXPECT_EQ(ask("DELETE", "/reservations/f.1.0").status, 200);
  const auto late = ask("POST", "/select_and_reserve", key_ask("key=1", 16, "f.1.0"));
  EXPECT_EQ(late.status, 409);
  EXPECT_EQ(selector.open_reservations(), 0U);
}

TEST_F(SelectionOverHttp, ReleasesOfUnknownNamesTakeNoPlace) {
  SelectionApi::Options small = options();
  small.leases.instances_max = 1;
  SelectionApi full(sources(), small);
  const auto send = [&](const std::string& method, const std::string& target,
                        const std::string& body = "") {
    http::Request request;
    request.method = method;
    request.target = target;
    request.body = body;
    return answer_of(full, request).status;
  };
  for (const char* name : {"f.1.0", "g.1.0", "h.1.0"}) {
    EXPECT_EQ(send("DELETE", "/reservations/" + std::string(name)), 200);
  }
  EXPECT_EQ(send("POST", "/select_and_reserve", key_ask("key=1", 16, "i.1.0")), 200);
  EXPECT_EQ(send("POST", "/select_and_reserve", key_ask("key=1", 16, "g.1.0")), 409)
      << "it is over";
}

TEST_F(SelectionOverHttp, LimitsTheNumbersOfAReservation) {
  const auto keyless = [](const std::string& tokens, const std::string& name) {
    return R"({"keys":"","prompt_tokens":)" + tokens + R"(,"reservation":")" + name + R"("})";
  };
  EXPECT_EQ(ask("POST", "/select_and_reserve", keyless("9223372036854775807", "f.1.0")).status,
            400);
  for (const char* name : {"f.2.0", "f.3.0", "f.4.0"}) {
    EXPECT_EQ(ask("POST", "/select_and_reserve", keyless("1073741824", name)).status, 200);
  }
  EXPECT_EQ(load("a").prefill_tokens + load("b").prefill_tokens, 3 * fleet::kBookedMax);
  for (const char* name : {"f.2.0", "f.3.0", "f.4.0"}) {
    ask("POST", "/reservations/" + std::string(name) + "/prefill_complete");
    EXPECT_EQ(ask("DELETE", "/reservations/" + std::string(name)).status, 200);
  }
  EXPECT_EQ(load("a").in_flight + load("b").in_flight, 0U);
  EXPECT_EQ(load("a").blocks + load("b").blocks, 0U);
  EXPECT_EQ(ask("POST", "/select", "{}").status, 400);
}

TEST_F(SelectionOverHttp, BooksAtMostOnceDuringConcurrentCalls) {
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

TEST_F(SelectionOverHttp, EndsLeasesByTimeAndBySilence) {
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

TEST_F(SelectionOverHttp, RefusesOtherIdentityOrBlockSizeByName) {
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

TEST_F(SelectionOverHttp, AllowsOnlyTokensOfTheFile) {
  const std::string path = testing::TempDir() + "selection_api_tokens";
  std::ofstream(path) << "an-older-token-1\na-newer-token-02\n";
  const auto tokens = runtime::TokenFile::open(path, clock);
  ASSERT_TRUE(tokens.ok());
  auto guarded_sources = sources();
  guarded_sources.tokens = tokens->get();
  SelectionApi guarded(guarded_sources, options());
  const auto status = [&](const std::string& target, const std::string& token) {
    http::Request request;
    request.method = "GET";
    request.target = target;
    if (!token.empty()) request.headers.set("authorization", "Bearer " + token);
    return answer_of(guarded, request).status;
  };
  EXPECT_EQ(status("/loads", ""), 401);
  EXPECT_EQ(status("/loads", "an-older-token-"), 401);
  EXPECT_EQ(status("/loads", "an-older-token-12"), 401);
  EXPECT_EQ(status("/loads", "an-older-token-1"), 200);
  EXPECT_EQ(status("/loads", "a-newer-token-02"), 200);
  EXPECT_EQ(status("/health", ""), 200);
  std::ofstream(path) << "a-newer-token-02\n";
  clock.advance(seconds(2));
  EXPECT_EQ(status("/loads", "an-older-token-1"), 401);
  EXPECT_EQ(status("/loads", "a-newer-token-02"), 200);
}

// Lists what instance "f" holds: `numbers` of one attempt on `worker`, in a list from 0 to `up_to`.
std::string list_of(const std::vector<std::uint64_t>& numbers, std::uint64_t up_to,
                    const std::string& worker = "b", std::uint32_t attempt = 0) {
  selection_json::Renewal renewal{.instance = "f", .from = 0, .up_to = up_to, .open = {}};
  for (const std::uint64_t number : numbers) {
    renewal.open.push_back(
        {.number = number,
         .attempt = attempt,
         .work = {.worker = worker,
                  .rank = std::nullopt,
                  .booking = {.prefill_tokens = 100, .blocks = 7, .block_size = kBlockSize}}});
  }
  return selection_json::write_renewal(renewal);
}

TEST_F(SelectionOverHttp, ListEndsUnlistedAndBooksMissingReservations) {
  ASSERT_EQ(ask("POST", "/select_and_reserve", key_ask("key=1", 16, "f.1.0")).status, 200);
  ASSERT_EQ(ask("POST", "/select_and_reserve", key_ask("key=1", 16, "f.2.0")).status, 200);
  ASSERT_EQ(api.reservations(), 2U);
  const auto renewed = ask("PUT", "/reservations", list_of({2, 3}, 3));
  EXPECT_EQ(renewed.body, R"({"ended":1,"booked":1})");
  EXPECT_EQ(api.reservations(), 2U);
  EXPECT_EQ(taken, std::vector<std::string>{"f.3.0"});
  EXPECT_EQ(load("b").in_flight + load("a").in_flight, 2U);
  EXPECT_EQ(ask("PUT", "/reservations", list_of({}, 3)).body, R"({"ended":2,"booked":0})");
  EXPECT_EQ(load("b").in_flight + load("a").in_flight, 0U);
  EXPECT_EQ(load("b").prefill_tokens, 0U);
}

TEST_F(SelectionOverHttp, AdoptedWorkKeepsItsLoad) {
  ASSERT_EQ(ask("PUT", "/reservations", list_of({5}, 5)).status, 200);
  EXPECT_EQ(load("b").prefill_tokens, 100U);
  EXPECT_EQ(ask("POST", "/reservations/f.5.0/prefill_complete").status, 200);
  EXPECT_EQ(load("b").prefill_tokens, 0U);
  EXPECT_EQ(load("b").blocks, 7U);
  EXPECT_EQ(ask("DELETE", "/reservations/f.5.0").status, 200);
  EXPECT_EQ(load("b").blocks, 0U);
}

TEST_F(SelectionOverHttp, ListMayNameARemovedWorker) {
  EXPECT_EQ(ask("PUT", "/reservations", list_of({5}, 5, "nobody")).body,
            R"({"ended":0,"booked":0})");
  EXPECT_EQ(api.reservations(), 0U);
}

TEST_F(SelectionOverHttp, ListKeepsReservationsThatAreNotBookedYet) {
  ASSERT_EQ(ask("POST", "/select_and_reserve", key_ask("key=1", 16, "f.1.0")).status, 200);
  const std::string list =
      R"({"instance":"f","from":0,"up_to":2,"open":[{"number":1,"attempt":0},{"number":2,"attempt":0}]})";
  EXPECT_EQ(ask("PUT", "/reservations", list).body, R"({"ended":0,"booked":0})");
  EXPECT_EQ(api.reservations(), 1U);
}

TEST_F(SelectionOverHttp, TakesSeveralReservationEventsInOneRequest) {
  ASSERT_EQ(ask("PUT", "/reservations", list_of({1, 2}, 2)).status, 200);
  const auto life = fleet.snapshot()->find("a")->life;
  selection_json::Notes notes{.instance = "f", .notes = {}, .alive = {"a", "nobody"}};
  notes.notes.push_back({.number = 1, .attempt = 0, .ending = std::nullopt});
  notes.notes.push_back({.number = 2, .attempt = 0, .ending = selection::Ending{}});
  notes.notes.push_back({.number = 9, .attempt = 0, .ending = std::nullopt});
  EXPECT_EQ(ask("POST", "/reservations", selection_json::write_notes(notes)).status, 200);
  EXPECT_EQ(load("b").in_flight, 1U);
  EXPECT_EQ(load("b").blocks, 7U);
  EXPECT_EQ(load("b").prefill_tokens, 0U);
  EXPECT_TRUE(life->raised());
}

TEST_F(SelectionOverHttp, LaterAttemptEndsEarlierOneOnOtherRouters) {
  ASSERT_EQ(ask("POST", "/select_and_reserve", key_ask("key=1", 16, "f.1.0")).status, 200);
  EXPECT_TRUE(taken.empty());
  EXPECT_TRUE(api.stands({"f", 1, 0}));
  api.supersede({"f", 1, 1});
  EXPECT_FALSE(api.stands({"f", 1, 0})) << "it is not to be told as a taking any more";
  EXPECT_EQ(api.reservations(), 0U);
  EXPECT_EQ(load("b").in_flight, 0U);
  ASSERT_EQ(ask("POST", "/select_and_reserve", key_ask("key=1", 16, "f.1.2")).status, 200);
  EXPECT_EQ(taken, std::vector<std::string>{"f.1.2"});
  api.supersede({"f", 1, 1});
  EXPECT_EQ(api.reservations(), 1U) << "an earlier attempt's word does not end a later one";
  api.supersede({"f", 1, 2});
  EXPECT_EQ(ask("PUT", "/reservations", list_of({1}, 1, "b", 2)).body, R"({"ended":0,"booked":1})")
      << "what was superseded may come back";
}

TEST_F(SelectionOverHttp, ServedModelsSayWhyRouterIsNotReady) {
  not_ready = "there is no worker list yet";
  const auto told = selection_json::read_told(ask("GET", "/served").body);
  ASSERT_TRUE(told.ok());
  EXPECT_EQ(told->not_ready, "there is no worker list yet");
  EXPECT_EQ(ask("POST", "/select", key_ask("key=1", 16, "f.1.0")).status, 200)
      << "whoever has nobody else to ask is answered";
  not_ready = std::string(100'000, 'x');
  EXPECT_EQ(selection_json::read_told(ask("GET", "/served").body)->not_ready,
            "see its /readyz?verbose");
}

TEST_F(SelectionOverHttp, ServedModelsSayWhyRouterIsStale) {
  EXPECT_EQ(selection_json::read_told(ask("GET", "/served").body)->stale, "");
  stale = "NATS \"late\"";
  EXPECT_EQ(selection_json::read_told(ask("GET", "/served").body)->stale, stale);
}

TEST_F(SelectionOverHttp, ServedModelsAnswer304UntilTheyChange) {
  const auto first = ask("GET", "/served");
  ASSERT_EQ(first.status, 200);
  const auto told = selection_json::read_told(first.body);
  ASSERT_TRUE(told.ok());
  EXPECT_EQ(told->identity, "key=1");
  EXPECT_EQ(told->served, *served.read());
  EXPECT_EQ(told->served.block_size, kBlockSize);
  http::Request again;
  again.method = "GET";
  again.target = "/served";
  again.headers.set("if-none-match", *first.headers.find("etag"));
  EXPECT_EQ(answer_of(api, again).status, 304);
  fleet.set_workers({});
  EXPECT_EQ(answer_of(api, again).status, 200);
}

TEST_F(SelectionOverHttp, OverlapScoresAreInTokens) {
  const auto response = ask("POST", "/overlap_scores", "{" + token_ids() + "}");
  ASSERT_EQ(response.status, 200) << response.body;
  EXPECT_NE(response.body.find(R"({"worker":"a","rank":0,"longest_matched":0)"), std::string::npos);
  EXPECT_NE(response.body.find(R"({"worker":"b","rank":0,"longest_matched":64)"), std::string::npos)
      << response.body;
}

TEST_F(SelectionOverHttp, RefusesRequestsOutsideTheApi) {
  EXPECT_EQ(ask("GET", "/select").status, 404);
  EXPECT_EQ(ask("POST", "/other").status, 404);
  EXPECT_EQ(ask("POST", "/select", "{").status, 400);
  EXPECT_EQ(ask("DELETE", "/reservations/f.1").status, 400);
  EXPECT_EQ(ask("DELETE", "/reservations/f.1.0", R"({"kind":"x"})").status, 400);
  EXPECT_EQ(ask("PUT", "/reservations/f.1.0").status, 404);
  EXPECT_EQ(ask("HEAD", "/select").status, 404);
}

TEST_F(SelectionOverHttp, HeadAnswersWhereGetDoes) {
  for (const std::string path : {"/health", "/served", "/workers", "/loads"}) {
    EXPECT_EQ(ask("HEAD", path).body, ask("GET", path).body) << path;
    EXPECT_EQ(ask("HEAD", path).status, 200) << path;
  }
}

TEST_F(SelectionOverHttp, ErrorNamesTheCauseWithoutAWorker) {
  fleet.set_workers({});
  const auto response = ask("POST", "/select_and_reserve", key_ask("key=1", 16, "f.1.0"));
  EXPECT_EQ(response.status, 503);
  const auto error = selection_json::read_error(response.body);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code, ErrorCode::Unavailable);
}

}  // namespace
}  // namespace sightline::selection_api
