// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/front/proxy/serve.h"

#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "common/base/byte_budget.h"
#include "common/contract/identity_key.h"
#include "common/contract/names.h"

#include "tests/fakes/manual_clock.h"
#include "tests/fakes/run_task.h"
#include "tests/support/paths.h"
#include "tests/support/selector_apart.h"

namespace sightline::proxy {
namespace {

using contract::EngineFamily;
using Kind = selection::Ending::Kind;

// Chooses the worker to retry if there is one, else the first worker that has not failed.
// It records each inquiry and ending.
class FakeSelector : public selection::Selector {
 public:
  [[nodiscard]] Task<Result<selection::Selection>> select(
      const selection::Inquiry& inquiry) override {
    inquiries.push_back(inquiry);
    clock_.advance(std::chrono::milliseconds(1));
    if (const auto refused = before ? before(inquiry) : std::nullopt) co_return *refused;
    co_return next(inquiry);
  }
  void first_token(selection::ReservationId reservation) override {
    EXPECT_TRUE(open.contains(reservation));
    ++first_tokens;
  }
  void end(selection::ReservationId reservation, const selection::Ending& ending) override {
    EXPECT_EQ(open.erase(reservation), 1U) << "ended once";
    endings.push_back(ending);
  }
  [[nodiscard]] std::shared_ptr<fleet::LifeSign> life(selection::ReservationId) override {
    return std::make_shared<fleet::LifeSign>();
  }
  [[nodiscard]] Task<Result<selection::Explanation>> explain(const selection::Inquiry&) override {
    co_return selection::Explanation{};
  }

  explicit FakeSelector(test::ManualClock& clock) : clock_(clock) {}

  std::vector<std::string> workers{"a"};
  // Runs at each choice. An error that it returns refuses the choice.
  std::function<std::optional<Error>(const selection::Inquiry&)> before;
  EngineFamily family = EngineFamily::Vllm;
  std::optional<std::uint32_t> rank;
  std::vector<selection::Inquiry> inquiries;
  std::set<selection::ReservationId> open;
  std::vector<selection::Ending> endings;
  int first_tokens = 0;

 private:
  Result<selection::Selection> next(const selection::Inquiry& inquiry) {
    const auto& failed = inquiry.tried.failed;
    for (const std::string& worker : workers) {
      if (std::find(failed.begin(), failed.end(), worker) != failed.end()) continue;
      if (!inquiry.tried.again.empty() && worker != inquiry.tried.again) continue;
      open.insert(++last_);
      return selection::Selection{.worker = worker,
                                  .host = worker + ".example",
                                  .port = 8000,
                                  .rank = rank,
                                  .family = family,
                                  .overlap_blocks = 1,
                                  .prompt_blocks = inquiry.keys->size(),
                                  .block_size = inquiry.is_read ? inquiry.job.block_size : 0,
                                  .reason = "least_cost",
                                  .reservation = last_};
    }
    return Error{ErrorCode::Unavailable, Blame::Internal, true, "no worker can take it", "", ""};
  }

  test::ManualClock& clock_;
  selection::ReservationId last_ = 0;
};

// Ends each attempt as the test wants, and records what was sent.
class FakeRelay : public relay::Relay {
 public:
  struct Sent {
    http::ServerAddress endpoint;
    http::Headers headers;
    http::Headers answer_headers;
    std::string body;
    bool fresh = false;
    bool strip_usage = false;
  };

  void on_leave(std::function<void()> left) override {
    if (has_left) left();
  }
  Task<relay::Forwarded> forward(const relay::Attempt& attempt) override {
    co_return carry_out(attempt);
  }
  Task<relay::Forwarded> pass_through(const relay::Attempt& attempt) override {
    co_return carry_out(attempt);
  }

  explicit FakeRelay(test::ManualClock& clock) : clock_(clock) {}

  bool has_left = false;
  // Final attempts fail after the answer has begun.
  bool breaks_off = false;
  // The endings of the attempts in turn. Later attempts get an answer with status 200.
  std::deque<relay::Forwarded> endings;
  std::vector<Sent> sent;

 private:
  relay::Forwarded carry_out(const relay::Attempt& attempt) {
    Sent now{.endpoint = attempt.call.endpoint,
             .headers = attempt.call.head.headers,
             .answer_headers = attempt.answer_headers,
             .body = "",
             .fresh = attempt.call.fresh,
             .strip_usage = attempt.strip_usage};
    for (const std::string_view piece : attempt.call.body) now.body += piece;
    sent.push_back(std::move(now));
    clock_.advance(std::chrono::milliseconds(10));
    attempt.life->raise();
    if (endings.empty()) {
      if (attempt.on_first_token) attempt.on_first_token();
      attempt.on_answer();
      return {relay::AttemptAnswer{.status = 200, .usage = openai::Usage{.prompt_tokens = 9}},
              retry::AttemptOutcome::Final,
              {}};
    }
    if (breaks_off && endings.front().ending == retry::AttemptOutcome::Final) attempt.on_answer();
    relay::Forwarded ending = std::move(endings.front());
    endings.pop_front();
    return ending;
  }

  test::ManualClock& clock_;
};

relay::Forwarded failed(retry::AttemptOutcome ending, ErrorCode code = ErrorCode::Unavailable) {
  return {worker_error(code, "it failed", true), ending, {}};
}

const std::shared_ptr<const prepare::LoadedModel>& model() {
  static const std::shared_ptr<const prepare::LoadedModel> kModel = [] {
    auto loaded = prepare::load_model(test::in_build("models/tiny-qwen2-vl"));
    EXPECT_TRUE(loaded.ok());
    return std::shared_ptr<const prepare::LoadedModel>(std::move(*loaded));
  }();
  return kModel;
}

class Serving : public testing::TestWithParam<bool> {
 protected:
  Serving() {
    contract::ServeSettings wanted;
    wanted.model.served_names = {"m"};
    settings.publish(std::make_shared<const contract::ServeSettings>(wanted));
    served.families = {EngineFamily::Vllm};
    served.block_size = 16;
    served.models.add("ad", "m");
  }

  static http::Request post(std::string body) {
    http::Request request;
    request.method = "POST";
    request.target = "/v1/chat/completions";
    request.body = std::move(body);
    return request;
  }
  static std::string chat(const std::string& more = "", const std::string& text = "hello") {
    return R"({"model":"m","messages":[{"role":"user","content":")" + text + "\"}]" + more + "}";
  }
  Result<Done> serve(const std::string& body) {
    return run([&](relay::Relay& to, RequestTrace& trace) -> Task<Result<Done>> {
      auto request = post(body);
      auto done = co_await proxy.serve(openai::Endpoint::Chat, request, to, trace);
      co_return done;
    });
  }
  Result<Done> serve_unread(const std::string& method) {
    return run([&](relay::Relay& to, RequestTrace& trace) -> Task<Result<Done>> {
      auto request = post("{}");
      request.method = method;
      auto done = co_await proxy.serve_unread(request, to, trace);
      co_return done;
    });
  }
  template <class Body>
  Result<Done> run(Body body) {
    Result<Done> result = Error{};
    fakes::run_task(pool, [&]() -> Task<void> {
      RequestTrace trace(services, "chat", "req-1");
      auto done = co_await body(relay, trace);
      result = std::move(done);
      advice = trace.advice();
    });
    EXPECT_TRUE(selector.open.empty()) << "every reservation has ended";
    return result;
  }
  [[nodiscard]] std::string header(const FakeRelay::Sent& sent, std::string_view name) const {
    return std::string(sent.headers.find(name).value_or(""));
  }
  [[nodiscard]] bool counts(const std::string& line) const {
    return metrics.scrape().find(line) != std::string::npos;
  }

  IoPool pool{{.io_threads = 1, .compute_threads = 1}};
  test::ManualClock clock;
  runtime::Metrics metrics;
  ByteBudget memory{std::size_t{64} << 20U, {.limit = "memory-bytes-max"}};
  Published<contract::ServeSettings> settings{std::make_shared<const contract::ServeSettings>()};
  fleet::Served served;
  FakeSelector selector{clock};
  const std::unique_ptr<test::SelectorApart> apart =
      GetParam() ? std::make_unique<test::SelectorApart>(selector) : nullptr;
  FakeRelay relay{clock};
  Advice advice;
  const contract::IdentityKey identity = contract::development_identity_key();
  const keys::Scheme scheme{identity};
  prepare::TokenCache token_cache{*model()->tokenizer, {}, metrics};
  media::Fetcher fetcher{{}};
  Deps services{.settings = settings,
                .identity = identity,
                .scheme = scheme,
                .clock = clock,
                .model = model(),
                .token_cache = token_cache,
                .pool = pool,
                .fetcher = fetcher,
                .served = [this] { return std::make_shared<const fleet::Served>(served); },
                .selector = apart ? static_cast<selection::Selector&>(*apart) : selector,
                .metrics = metrics,
                .memory = memory};
  Proxy proxy{services};
};

INSTANTIATE_TEST_SUITE_P(Ways, Serving, testing::Bool(), [](const auto& test) {
  return std::string(test.param ? "Apart" : "Here");
});

TEST_P(Serving, SendsRequestToTheChosenWorker) {
  ASSERT_TRUE(serve(chat()).ok());
  ASSERT_EQ(relay.sent.size(), 1U);
  EXPECT_EQ(relay.sent[0].endpoint.host, "a.example");
  EXPECT_EQ(relay.sent[0].endpoint.port, 8000);
  EXPECT_EQ(relay.sent[0].body, chat());
  EXPECT_EQ(selector.first_tokens, 1);
  EXPECT_TRUE(counts(R"(sightline_answers_begun_total{worker="a"} 1)"));
  ASSERT_EQ(selector.endings.size(), 1U);
  EXPECT_EQ(selector.endings[0].kind, Kind::Answered);
  EXPECT_EQ(selector.endings[0].status, 200);
  EXPECT_EQ(selector.endings[0].usage->prompt_tokens, 9U);
  EXPECT_EQ(selector.endings[0].request_id, "req-1");
}

TEST_P(Serving, ReleasesMemoryAfterThePromptAndAtTheEnd) {
  std::string values = "0";
  for (int i = 1; i < 100'000; ++i) values += ",0";
  std::size_t held = 0;
  selector.before = [&](const selection::Inquiry&) -> std::optional<Error> {
    held = memory.held();
    return std::nullopt;
  };
  ASSERT_TRUE(serve(chat(R"(,"chat_template_kwargs":{"x":[)" + values + "]}")).ok());
  EXPECT_GT(held, 0U);
  EXPECT_LT(held, 1'000'000U);
  EXPECT_EQ(memory.held(), 0U);
}

TEST_P(Serving, RefusesRequestWithoutMemoryAndNamesTheLimit) {
  std::size_t others = 0;
  ASSERT_TRUE(memory.add(others, memory.bytes_max()));
  const auto refused = serve(chat());
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::Overloaded);
  EXPECT_EQ(refused.error().limit, "memory-bytes-max");
  EXPECT_TRUE(relay.sent.empty());
  memory.release(others);
  EXPECT_TRUE(serve(chat()).ok());
}

Error out_of_date() {
  return {ErrorCode::OutOfDate, Blame::Internal, true, "blocks have another size", "", ""};
}

TEST_P(Serving, ComputesKeysAgainWhenTheBlockSizeChanges) {
  selector.before = [&](const selection::Inquiry& asked) -> std::optional<Error> {
    if (asked.job.block_size == 32) return std::nullopt;
    served.block_size = 32;
    return out_of_date();
  };
  ASSERT_TRUE(serve(chat("", std::string(400, 'x'))).ok());
  ASSERT_EQ(selector.inquiries.size(), 2U);
  EXPECT_EQ(selector.inquiries[0].job.block_size, 16U);
  EXPECT_EQ(selector.inquiries[1].job.block_size, 32U);
  EXPECT_EQ(selector.inquiries[1].keys->size(), selector.inquiries[0].keys->size() / 2);
  EXPECT_EQ(relay.sent.size(), 1U);
}

TEST_P(Serving, NewKeysKeepTheListOfFailedWorkers) {
  selector.workers = {"a", "b"};
  relay.endings.push_back(failed(retry::AttemptOutcome::Unsent));
  selector.before = [&](const selection::Inquiry& asked) -> std::optional<Error> {
    if (asked.tried.failed.empty() || asked.job.block_size == 32) return std::nullopt;
    served.block_size = 32;
    return out_of_date();
  };
  ASSERT_TRUE(serve(chat("", std::string(400, 'x'))).ok());
  ASSERT_EQ(selector.inquiries.size(), 3U);
  EXPECT_EQ(selector.inquiries[2].tried.failed, std::vector<std::string>{"a"});
  EXPECT_EQ(relay.sent.back().endpoint.host, "b.example");
}

TEST_P(Serving, ComputesKeysAgainAtMostTwice) {
  selector.before = [&](const selection::Inquiry&) { return out_of_date(); };
  const auto without_news = serve(chat());
  ASSERT_FALSE(without_news.ok());
  EXPECT_EQ(without_news.error().code, ErrorCode::OutOfDate);
  EXPECT_EQ(selector.inquiries.size(), 1U);
  selector.before = [&](const selection::Inquiry&) {
    served.block_size = *served.block_size * 2;
    return out_of_date();
  };
  EXPECT_FALSE(serve(chat()).ok());
  EXPECT_EQ(selector.inquiries.size(), 1U + 3U);
}

TEST_P(Serving, SelectorGetsTheKeysOfThePrompt) {
  ASSERT_TRUE(serve(chat("", std::string(400, 'x'))).ok());
  ASSERT_TRUE(serve(chat("", std::string(400, 'x'))).ok());
  ASSERT_TRUE(serve(chat(R"(,"cache_salt":"s")", std::string(400, 'x'))).ok());
  const auto& [first, again, salted] =
      std::tie(selector.inquiries[0], selector.inquiries[1], selector.inquiries[2]);
  EXPECT_GT(first.keys->size(), 1U);
  EXPECT_EQ(first.keys->size(), first.job.prompt_tokens / 16);
  EXPECT_EQ(*first.keys, *again.keys);
  EXPECT_NE(*first.keys, *salted.keys);
  EXPECT_TRUE(first.is_exact);
  EXPECT_TRUE(first.is_read);
  EXPECT_EQ(first.first_prompt_tokens, first.job.prompt_tokens);
}

TEST_P(Serving, KeysHaveTheBlockSizeOfTheWorkers) {
  served.block_size = 32;
  ASSERT_TRUE(serve(chat("", std::string(400, 'x'))).ok());
  EXPECT_EQ(selector.inquiries[0].job.block_size, 32U);
  served.block_size.reset();
  ASSERT_TRUE(serve(chat()).ok());
  EXPECT_EQ(selector.inquiries[1].job.block_size, 16U);
}

TEST_P(Serving, AnswerNamesWorkerRankAndOverlap) {
  selector.rank = 3;
  ASSERT_TRUE(serve(chat()).ok());
  const http::Headers& headers = relay.sent[0].answer_headers;
  EXPECT_EQ(headers.find(contract::kWorkerHeader), "a");
  EXPECT_EQ(headers.find(contract::kRankHeader), "3");
  EXPECT_EQ(headers.find(contract::kRequestIdHeader), "req-1");
  EXPECT_TRUE(headers.find(contract::kOverlapHeader)->starts_with("1/"));
  EXPECT_EQ(header(relay.sent[0], contract::kEngineRankHeader), "3");
}

TEST_P(Serving, DoesNotNameASingleRank) {
  ASSERT_TRUE(serve(chat()).ok());
  EXPECT_FALSE(relay.sent[0].answer_headers.find(contract::kRankHeader).has_value());
  EXPECT_EQ(header(relay.sent[0], contract::kEngineRankHeader), "");
}

TEST_P(Serving, RefusesUnknownModelBeforeTheSelection) {
  const auto done = serve(R"({"model":"x","messages":[]})");
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().code, ErrorCode::NotFound);
  EXPECT_EQ(done.error().param, "model");
  EXPECT_TRUE(selector.inquiries.empty());
}

TEST_P(Serving, InquiryNamesTheAdapter) {
  ASSERT_TRUE(serve(R"({"model":"ad","messages":[{"role":"user","content":"x"}]})").ok());
  EXPECT_EQ(selector.inquiries[0].adapter, "ad");
  ASSERT_TRUE(serve(chat()).ok());
  EXPECT_EQ(selector.inquiries[1].adapter, std::nullopt);
}

TEST_P(Serving, RequestsUsageOfStreamsAndRemovesItsChunk) {
  ASSERT_TRUE(serve(chat(R"(,"stream":true)")).ok());
  EXPECT_NE(relay.sent[0].body.find(R"("include_usage":true)"), std::string::npos);
  EXPECT_TRUE(relay.sent[0].strip_usage);
  ASSERT_TRUE(serve(chat(R"(,"stream":true,"stream_options":{"include_usage":true})")).ok());
  EXPECT_FALSE(relay.sent[1].strip_usage);
}

TEST_P(Serving, EditsTheBodyForTheFamilyOfTheWorker) {
  const std::string body = chat(R"(,"extra_key":"x","vllm_xargs":{"kv_cache_report_mode":"full"})");
  ASSERT_TRUE(serve(body).ok());
  EXPECT_NE(relay.sent[0].body.find(R"("kv_cache_report_mode":"incremental")"), std::string::npos);
  EXPECT_NE(relay.sent[0].body.find(R"("extra_key":"x")"), std::string::npos);
  // The worker joined after the request was prepared.
  selector.family = EngineFamily::Sglang;
  ASSERT_TRUE(serve(body).ok());
  EXPECT_NE(relay.sent[1].body.find(R"("extra_key":null)"), std::string::npos);
  EXPECT_TRUE(selector.inquiries[0].unpredictable[static_cast<std::size_t>(EngineFamily::Sglang)]);
  EXPECT_FALSE(selector.inquiries[0].unpredictable[static_cast<std::size_t>(EngineFamily::Vllm)]);
}

TEST_P(Serving, SeveralSamplesAreNotExact) {
  ASSERT_TRUE(serve(chat(R"(,"n":2)")).ok());
  EXPECT_FALSE(selector.inquiries[0].is_exact);
}

TEST_P(Serving, TriesTheNextWorkerWhenOneIsUnreachable) {
  selector.workers = {"a", "b"};
  relay.endings.push_back(failed(retry::AttemptOutcome::Unsent));
  ASSERT_TRUE(serve(chat()).ok());
  ASSERT_EQ(relay.sent.size(), 2U);
  EXPECT_EQ(relay.sent[1].endpoint.host, "b.example");
  EXPECT_FALSE(relay.sent[1].fresh) << "no engine has got it";
  EXPECT_EQ(selector.inquiries[1].tried.failed, std::vector<std::string>{"a"});
  EXPECT_EQ(selector.endings[0].kind, Kind::Failed);
  EXPECT_EQ(selector.endings[0].failure->message, "it failed");
  EXPECT_TRUE(counts("sightline_retries_total{worker=\"a\""));
}

TEST_P(Serving, ClosedKeptConnectionRetriesTheSameWorker) {
  selector.workers = {"a", "b"};
  relay.endings.push_back(failed(retry::AttemptOutcome::KeptClosed));
  ASSERT_TRUE(serve(chat()).ok());
  EXPECT_EQ(selector.inquiries[1].tried.again, "a");
  EXPECT_TRUE(selector.inquiries[1].tried.failed.empty());
  EXPECT_EQ(relay.sent[1].endpoint.host, "a.example");
  EXPECT_TRUE(relay.sent[1].fresh);
  EXPECT_EQ(selector.endings[0].kind, Kind::Unused) << "the worker is well";
}

TEST_P(Serving, ReturnsTheLastFailureWithoutAnotherWorker) {
  relay.endings.push_back(failed(retry::AttemptOutcome::Unsent));
  const auto done = serve(chat());
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().message, "it failed");
  EXPECT_FALSE(counts("sightline_retries_total{worker=\"a\""));
  selector.workers.clear();
  EXPECT_EQ(serve(chat()).error().message, "no worker can take it");
}

TEST_P(Serving, DoesNotSendRequestAfterTwoLosses) {
  selector.workers = {"a", "b", "c"};
  relay.endings.push_back(failed(retry::AttemptOutcome::Lost));
  relay.endings.push_back(failed(retry::AttemptOutcome::Lost));
  const auto done = serve(chat());
  ASSERT_FALSE(done.ok());
  EXPECT_NE(done.error().message.find("twice"), std::string::npos);
  EXPECT_FALSE(done.error().retryable);
  EXPECT_TRUE(advice.is_useless_again);
  EXPECT_EQ(relay.sent.size(), 2U);
  ASSERT_FALSE(serve(chat()).ok());
  EXPECT_EQ(relay.sent.size(), 2U);
  EXPECT_TRUE(serve(chat("", "another")).ok());
}

TEST_P(Serving, AnswerClearsEarlierLoss) {
  selector.workers = {"a", "b", "c"};
  for (int i = 0; i < 3; ++i) {
    relay.endings.push_back(failed(retry::AttemptOutcome::Lost));
    EXPECT_TRUE(serve(chat()).ok()) << i;
  }
}

TEST_P(Serving, AnswerThatBeginsClearsEarlierLoss) {
  selector.workers = {"a", "b"};
  relay.breaks_off = true;
  relay.endings.push_back(failed(retry::AttemptOutcome::Lost));
  relay.endings.push_back(failed(retry::AttemptOutcome::Final, ErrorCode::Cancelled));
  EXPECT_FALSE(serve(chat()).ok());
  relay.endings.push_back(failed(retry::AttemptOutcome::Lost));
  EXPECT_TRUE(serve(chat()).ok());
}

TEST_P(Serving, EngineRefusalReachesTheClient) {
  relay::Forwarded declined = failed(retry::AttemptOutcome::Declined, ErrorCode::Overloaded);
  declined.refusal.body = "{}";
  declined.refusal.retry_after_s = 7;
  relay.endings.push_back(declined);
  const auto done = serve(chat());
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().code, ErrorCode::Overloaded);
  EXPECT_EQ(advice.retry_after_s, 7U);
  EXPECT_EQ(advice.body, "{}");
}

TEST_P(Serving, PrefersRefusalToUnreachableWorker) {
  selector.workers = {"a", "b"};
  relay::Forwarded declined = failed(retry::AttemptOutcome::Declined, ErrorCode::Overloaded);
  declined.refusal.retry_after_s = 7;
  relay.endings.push_back(declined);
  relay.endings.push_back(failed(retry::AttemptOutcome::Unsent));
  const auto done = serve(chat());
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().code, ErrorCode::Overloaded);
  EXPECT_EQ(advice.retry_after_s, 7U);
}

TEST_P(Serving, SilentEngineEndsTheRequestAsFailure) {
  selector.workers = {"a", "b"};
  relay.endings.push_back(failed(retry::AttemptOutcome::Silent, ErrorCode::Timeout));
  EXPECT_EQ(serve(chat()).error().code, ErrorCode::Timeout);
  EXPECT_EQ(relay.sent.size(), 1U);
  EXPECT_EQ(selector.endings[0].kind, Kind::Failed);
}

TEST_P(Serving, ClientThatLeftIsNoWorkerFailure) {
  relay.endings.push_back(
      {client_error(ErrorCode::Cancelled, "the client left"), retry::AttemptOutcome::Final, {}});
  EXPECT_EQ(serve(chat()).error().code, ErrorCode::Cancelled);
  EXPECT_EQ(selector.endings[0].kind, Kind::Unused);
}

TEST_P(Serving, TooLargeAnswerIsNoWorkerFailure) {
  selector.workers = {"a", "b"};
  relay.endings.push_back(failed(retry::AttemptOutcome::Lost, ErrorCode::TooLarge));
  static_cast<void>(serve(chat()));
  EXPECT_EQ(selector.endings[0].kind, Kind::Unused);
}

TEST_P(Serving, EngineErrorIsTheAnswer) {
  selector.workers = {"a", "b"};
  relay.endings.push_back({relay::AttemptAnswer{.status = 500}, retry::AttemptOutcome::Final, {}});
  EXPECT_TRUE(serve(chat()).ok());
  EXPECT_EQ(relay.sent.size(), 1U);
  EXPECT_EQ(selector.endings[0].kind, Kind::Answered);
  EXPECT_EQ(selector.endings[0].status, 500);
}

TEST_P(Serving, FullRetryBudgetKeepsTheFailure) {
  selector.workers = {"a", "b"};
  std::vector<std::unique_ptr<retry::RetryBudget::BudgetSlot>> taken;
  for (bool is_free = true; is_free;) {
    taken.push_back(std::make_unique<retry::RetryBudget::BudgetSlot>(proxy.budget()));
    is_free = taken.back()->take();
  }
  relay.endings.push_back(failed(retry::AttemptOutcome::Declined, ErrorCode::Overloaded));
  EXPECT_EQ(serve(chat()).error().code, ErrorCode::Overloaded);
  EXPECT_EQ(relay.sent.size(), 1U);
  EXPECT_EQ(selector.endings.back().kind, Kind::Unused) << "what was booked for the retry";
  EXPECT_TRUE(counts("sightline_retries_refused_total 1"));
  relay.endings.push_back(failed(retry::AttemptOutcome::Unsent));
  EXPECT_TRUE(serve(chat()).ok()) << "no engine has got it";
}

TEST_P(Serving, UnreadRequestIsSelectedWithoutKeys) {
  ASSERT_TRUE(serve_unread("POST").ok());
  EXPECT_FALSE(selector.inquiries[0].is_read);
  EXPECT_TRUE(selector.inquiries[0].keys->empty());
  EXPECT_EQ(relay.sent[0].body, "{}");
  EXPECT_FALSE(relay.sent[0].answer_headers.find(contract::kOverlapHeader).has_value());
}

TEST_P(Serving, DoesNotRepeatRequestThatMayHaveTakenEffect) {
  selector.workers = {"a", "b"};
  for (const auto ending : {retry::AttemptOutcome::Lost, retry::AttemptOutcome::KeptClosed}) {
    relay.endings.push_back(failed(ending));
    EXPECT_FALSE(serve_unread("POST").ok());
    clock.advance(std::chrono::hours(1));
  }
  EXPECT_EQ(relay.sent.size(), 2U);
  relay.endings.push_back(failed(retry::AttemptOutcome::Unsent));
  EXPECT_TRUE(serve_unread("POST").ok());
  relay.endings.push_back(failed(retry::AttemptOutcome::KeptClosed));
  EXPECT_TRUE(serve_unread("GET").ok());
}

TEST_P(Serving, DoesNotPrepareLargeRequestOfDepartedClient) {
  relay.has_left = true;
  const auto done = serve(chat("", std::string(1U << 20U, 'x')));
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().code, ErrorCode::Cancelled);
  EXPECT_TRUE(selector.inquiries.empty());
}

}  // namespace
}  // namespace sightline::proxy
