// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/kube/rest/rest_client.h"

#include <deque>
#include <utility>

#include <gtest/gtest.h>

#include "tests/fakes/manual_clock.h"

namespace sightline::rest {
namespace {

using client::Answer;
using client::Failure;
using client::Reason;
using client::WatchEvent;
using object::Value;
using std::chrono::seconds;

const object::Resource kPods{"", "v1", "pods", "Pod"};

Failure failed(Reason reason, bool is_unknown) {
  Failure failure;
  failure.reason = reason;
  failure.is_outcome_unknown = is_unknown;
  return failure;
}

// Gives the answers of a list, one after the other, and records the requests.
class FakeTransport : public Transport {
 public:
  Answer<HttpAnswer> exchange(const HttpRequest& request, Duration) override {
    requests.push_back(request);
    if (answers.empty()) return HttpAnswer{200, "{}", {}};
    auto answer = std::move(answers.front());
    answers.pop_front();
    return answer;
  }
  Answer<Opened> open(const HttpRequest& request, Duration) override {
    requests.push_back(request);
    return Opened{{200, {}, {}}, std::make_unique<Pieces>(pieces)};
  }

  std::deque<Answer<HttpAnswer>> answers;
  std::vector<HttpRequest> requests;
  std::deque<std::string> pieces;

 private:
  class Pieces : public Stream {
   public:
    explicit Pieces(std::deque<std::string> pieces) : pieces_(std::move(pieces)) {}
    Answer<Piece> read(Duration) override {
      if (pieces_.empty()) return Piece{{}, true};
      Piece piece{pieces_.front(), false};
      pieces_.pop_front();
      return piece;
    }
    void cancel() override { pieces_.clear(); }

   private:
    std::deque<std::string> pieces_;
  };
};

class RestClientTest : public testing::Test {
 protected:
  RestOptions options() {
    return {.user_agent = "tester/1",
            .host = "h",
            .line_bytes_max = 100,
            .may_write = [this] { return may_write_; },
            .pause =
                [this](Duration wait) {
                  waits_.push_back(wait);
                  clock_.advance(wait);
                  return !is_stopping_;
                }};
  }
  Answer<Value> create() {
    return client_.create(kPods, *Value::parse(R"({"metadata":{"namespace":"s","name":"a"}})"));
  }

  test::ManualClock clock_;
  runtime::Metrics metrics_;
  FakeTransport transport_;
  bool may_write_ = true;
  bool is_stopping_ = false;
  std::vector<Duration> waits_;
  RestClient client_{options(), transport_, clock_, metrics_};
};

TEST_F(RestClientTest, RequestsAreThoseOfTheApi) {
  const auto object = *Value::parse(R"({"metadata":{"namespace":"s","name":"a"}})");
  static_cast<void>(client_.get(kPods, {"s", "a"}));
  static_cast<void>(client_.list(kPods, {{"s", "a=b", ""}, "7", 5, "t+"}));
  static_cast<void>(client_.watch(kPods, {{"", "", "x=y"}, "7", seconds(300)}));
  static_cast<void>(client_.create(kPods, object));
  static_cast<void>(client_.update(kPods, object));
  static_cast<void>(client_.apply(kPods, object, {.manager = "m", .subresource = "status"}));
  static_cast<void>(client_.merge_patch(kPods, {"s", "a"}, object, ""));
  static_cast<void>(client_.remove(kPods, {"s", "a"}, {.uid = "u", .resource_version = "3"}));
  std::vector<std::string> asked;
  for (const HttpRequest& request : transport_.requests) {
    asked.push_back(request.method + " " + request.target + " " + request.content_type);
  }
  EXPECT_EQ(asked, (std::vector<std::string>{
                       "GET /api/v1/namespaces/s/pods/a ",
                       "GET /api/v1/namespaces/s/pods?labelSelector=a%3Db&resourceVersion=7&limit=5"
                       "&continue=t%2B ",
                       "GET /api/v1/pods?watch=true&allowWatchBookmarks=true&fieldSelector=x%3Dy"
                       "&resourceVersion=7&timeoutSeconds=300 ",
                       "POST /api/v1/namespaces/s/pods application/json",
                       "PUT /api/v1/namespaces/s/pods/a application/json",
                       "PATCH /api/v1/namespaces/s/pods/a/status?fieldManager=m&force=true "
                       "application/apply-patch+yaml",
                       "PATCH /api/v1/namespaces/s/pods/a application/merge-patch+json",
                       "DELETE /api/v1/namespaces/s/pods/a application/json"}));
  EXPECT_EQ(transport_.requests.back().body,
            R"({"apiVersion":"v1","kind":"DeleteOptions","preconditions":{"resourceVersion":"3",)"
            R"("uid":"u"},"propagationPolicy":"Background"})");
  EXPECT_EQ(transport_.requests.front().headers.at(1),
            (std::pair<std::string, std::string>{"User-Agent", "tester/1"}));
}

TEST_F(RestClientTest, ABusyServerIsAskedAgainWhenItSays) {
  transport_.answers = {HttpAnswer{429, "", seconds(3)}, HttpAnswer{503, "", seconds(1)},
                        HttpAnswer{201, R"({"x":1})", {}}};
  const auto made = create();
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(waits_, (std::vector<Duration>{seconds(3), seconds(1)}));
}

TEST_F(RestClientTest, LeavesALongWaitToTheCaller) {
  transport_.answers = {HttpAnswer{429, "", seconds(6)}};
  const auto made = create();
  ASSERT_TRUE(failed(made, Reason::TooManyRequests));
  EXPECT_EQ(made.error().retry_after, seconds(6));
  EXPECT_TRUE(waits_.empty());
}

TEST_F(RestClientTest, AnAnswerOfTooManyValuesIsTooLong) {
  std::string many = "{\"items\":[0";
  for (int i = 0; i < 4'000'000; ++i) many += ",0";
  transport_.answers = {HttpAnswer{200, many + "]}", {}}};
  EXPECT_TRUE(failed(client_.list(kPods, {}), Reason::LimitExceeded));
}

TEST_F(RestClientTest, StopsAfterTenRetries) {
  for (int i = 0; i < 20; ++i) transport_.answers.push_back(HttpAnswer{429, "", seconds(1)});
  EXPECT_TRUE(failed(create(), Reason::TooManyRequests));
  EXPECT_EQ(transport_.requests.size(), 11U);
}

TEST_F(RestClientTest, WithoutARetryAfterAnErrorIsAnError) {
  transport_.answers = {HttpAnswer{503, "", {}}};
  EXPECT_TRUE(failed(create(), Reason::ServiceUnavailable));
  EXPECT_TRUE(waits_.empty());
}

TEST_F(RestClientTest, ABrokenConnectionIsTriedAgainForReadsOnly) {
  transport_.answers = {failed(Reason::Unreachable, true), HttpAnswer{200, R"({"x":1})", {}}};
  EXPECT_TRUE(client_.get(kPods, {"s", "a"}).ok());
  transport_.answers = {failed(Reason::Unreachable, true)};
  const auto made = create();
  EXPECT_TRUE(failed(made, Reason::Unreachable));
  EXPECT_TRUE(made.error().is_outcome_unknown);
}

TEST_F(RestClientTest, AWriteThatMayHaveBeenCarriedOutSaysSo) {
  for (const auto& [answer, want] : std::vector<std::pair<Answer<HttpAnswer>, bool>>{
           {failed(Reason::Deadline, true), true},
           {failed(Reason::ConnectionRefused, false), false},
           {HttpAnswer{504, "", {}}, true},
           {HttpAnswer{500, "", {}}, true},
           {HttpAnswer{409, "", {}}, false},
           {HttpAnswer{200, "no json", {}}, true}}) {
    transport_.answers = {answer};
    const auto made = create();
    ASSERT_FALSE(made.ok());
    EXPECT_EQ(made.error().is_outcome_unknown, want) << client::name_of(made.error().reason);
    transport_.answers = {answer};
    const auto got = client_.get(kPods, {"s", "a"});
    EXPECT_FALSE(got.ok() || got.error().is_outcome_unknown);
  }
}

TEST_F(RestClientTest, WhoMayNotWriteOnlyReads) {
  may_write_ = false;
  EXPECT_TRUE(failed(create(), Reason::NotLeading));
  EXPECT_TRUE(failed(client_.remove(kPods, {"s", "a"}, {}), Reason::NotLeading));
  EXPECT_TRUE(transport_.requests.empty());
  EXPECT_TRUE(client_.get(kPods, {"s", "a"}).ok());
}

TEST_F(RestClientTest, WhoLosesTheLeaseWhileAWriteWaitsDoesNotWrite) {
  transport_.answers = {HttpAnswer{429, "", seconds(3)}};
  auto with_loss = options();
  with_loss.pause = [this](Duration) {
    may_write_ = false;
    return true;
  };
  RestClient client(with_loss, transport_, clock_, metrics_);
  EXPECT_TRUE(failed(client.remove(kPods, {"s", "a"}, {}), Reason::NotLeading));
  EXPECT_EQ(transport_.requests.size(), 1U);
}

TEST_F(RestClientTest, AStopEndsWaits) {
  is_stopping_ = true;
  transport_.answers = {HttpAnswer{429, "", seconds(3)}};
  EXPECT_TRUE(failed(create(), Reason::Cancelled));
}

TEST_F(RestClientTest, ARateThatIsSetIsKept) {
  auto limited = options();
  limited.requests_per_second = 2;
  limited.requests_burst = 1;
  RestClient client(limited, transport_, clock_, metrics_);
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(client.get(kPods, {"s", "a"}).ok());
  Duration total{};
  for (const Duration wait : waits_) total += wait;
  EXPECT_EQ(total, seconds(2));
}

TEST_F(RestClientTest, AListIsItemsWithTheirKind) {
  transport_.answers = {HttpAnswer{
      200, R"({"metadata":{"resourceVersion":"9","continue":"c"},"items":[{"metadata":{}}]})", {}}};
  const auto list = client_.list(kPods, {});
  ASSERT_TRUE(list.ok());
  EXPECT_EQ(list->resource_version, "9");
  EXPECT_EQ(list->continue_from, "c");
  EXPECT_EQ(list->items.at(0)["kind"].text(), "Pod");
  transport_.answers = {HttpAnswer{200, R"({"items":7})", {}}};
  EXPECT_TRUE(failed(client_.list(kPods, {}), Reason::Malformed));
}

TEST_F(RestClientTest, EventsOfAWatchMayComeInAnyPieces) {
  transport_.pieces = {"{\"type\":\"ADDED\",\"obj", "ect\":{\"a\":1}}\n\n{\"type\":\"DELETED\",",
                       "\"object\":{}}\r\n"};
  const auto watch = client_.watch(kPods, {});
  ASSERT_TRUE(watch.ok());
  auto event = (*watch)->next(seconds(1));
  EXPECT_EQ(event->type, "ADDED");
  EXPECT_EQ(event->object.to_text(), R"({"a":1})");
  event = (*watch)->next(seconds(1));
  EXPECT_EQ(event->type, "DELETED");
  event = (*watch)->next(seconds(1));
  EXPECT_EQ(event->what, WatchEvent::EventKind::Ended);
}

TEST_F(RestClientTest, AWatchThatIsCutInALineOrLiesFails) {
  for (const auto& [pieces, want] : std::vector<std::pair<std::deque<std::string>, Reason>>{
           {{"{\"type\":\"ADDED\""}, Reason::Unreachable},
           {{"{\"type\":\"ADDED\"}\n"}, Reason::Malformed},
           {{"nothing\n"}, Reason::Malformed},
           {{std::string(60, 'x'), std::string(60, 'x')}, Reason::LimitExceeded}}) {
    transport_.pieces = pieces;
    const auto watch = client_.watch(kPods, {});
    ASSERT_TRUE(watch.ok());
    EXPECT_TRUE(failed((*watch)->next(seconds(1)), want)) << client::name_of(want);
  }
}

TEST_F(RestClientTest, CountsUnderTheNamesOfClientGo) {
  transport_.answers = {HttpAnswer{404, "", {}}, failed(Reason::Deadline, true)};
  static_cast<void>(client_.get(kPods, {"s", "a"}));
  static_cast<void>(client_.get(kPods, {"s", "a"}));
  const std::string text = metrics_.scrape();
  EXPECT_NE(text.find(R"(rest_client_requests_total{code="404",method="GET",host="h"} 1)"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find(R"(rest_client_requests_total{code="<error>",method="GET",host="h"} 1)"),
            std::string::npos);
}

}  // namespace
}  // namespace sightline::rest
