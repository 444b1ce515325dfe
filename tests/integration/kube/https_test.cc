// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include <atomic>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

#include <gtest/gtest.h>
#include <unistd.h>

#include "operator/kube/https/https_transport.h"
#include "operator/kube/reflector/informer.h"
#include "operator/kube/rest/rest_client.h"
#include "tests/fakes/manual_clock.h"
#include "tests/fakes/run_task.h"
#include "tests/integration/kube/tls_server.h"

namespace sightline::https {
namespace {

using client::Reason;
using client::WatchEvent;
using std::chrono::milliseconds;
using std::chrono::seconds;
using test::Authority;
using test::Conversation;
using test::TlsServer;

const object::Resource kPods{"", "v1", "pods", "Pod"};
constexpr const char* kChunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

std::string chunk(const std::string& text) {
  std::ostringstream head;
  head << std::hex << text.size() << "\r\n";
  return head.str() + text + "\r\n";
}

std::string event_line(int number) {
  return R"({"type":"ADDED","object":{"metadata":{"name":"a","resourceVersion":")" +
         std::to_string(number) + "\"}}}\n";
}

// The files of a pod's service account, and a client that reads them. Tests set its clock.
class HttpsTest : public testing::Test {
 protected:
  HttpsTest() { std::filesystem::create_directories(directory_); }
  ~HttpsTest() override { std::filesystem::remove_all(directory_); }

  void write(const std::string& name, const std::string& text) const {
    std::ofstream(directory_ / name) << text;
  }
  [[nodiscard]] std::string path(const std::string& name) const {
    return (directory_ / name).string();
  }

  void serve(TlsServer::Handle handle, const std::string& client_authority = {}) {
    write("ca.crt", authority_.certificate());
    server_.emplace(authority_.issue("kube.test"), client_authority, std::move(handle));
  }
  rest::RestClient& client(HttpsOptions options = {}, Duration call_timeout = fakes::kPatience) {
    if (options.server.empty()) options.server = server_->url();
    connection_.cluster.authority.file = path("ca.crt");
    credentials_.emplace(connection_, clock_);
    transport_.emplace(options, *credentials_, system_clock(), stop_.get_token());
    rest_.emplace(rest::RestOptions{.user_agent = "tester/1",
                                    .host = "h",
                                    .call_timeout = call_timeout,
                                    .retries_max = 0,
                                    .line_bytes_max = 1 << 16},
                  *transport_, system_clock(), metrics_);
    return *rest_;
  }
  client::Answer<object::Value> get(rest::RestClient& from) { return from.get(kPods, {"s", "a"}); }
  static bool say_ok(Conversation& request) {
    request.answer(200, "{}");
    return true;
  }

  const std::filesystem::path directory_ =
      std::filesystem::temp_directory_path() / ("kube_https_test." + std::to_string(::getpid()));
  test::ManualClock clock_;  // of credentials
  Authority authority_{"first"};
  config::Connection connection_;
  std::stop_source stop_;
  runtime::Metrics metrics_;
  std::optional<TlsServer> server_;
  std::optional<config::Credentials> credentials_;
  std::optional<HttpsTransport> transport_;
  std::optional<rest::RestClient> rest_;
};

TEST_F(HttpsTest, CallsShareAConnectionAndIdentifyThemselves) {
  write("token", "secret");
  connection_.user.token_file = path("token");
  std::string authorization;
  std::string agent;
  std::string body;
  serve([&](Conversation& request) {
    authorization = request.headers["authorization"];
    agent = request.headers["user-agent"];
    body = request.body;
    request.answer(201, R"({"metadata":{"name":"a"}})");
    return true;
  });
  auto& api = client();
  for (int i = 0; i < 10; ++i) {
    const auto made =
        api.create(kPods, *object::Value::parse(R"({"metadata":{"name":"a","namespace":"s"}})"));
    ASSERT_TRUE(made.ok()) << made.error().message;
  }
  EXPECT_EQ(authorization, "Bearer secret");
  EXPECT_EQ(agent, "tester/1");
  EXPECT_EQ(body, R"({"metadata":{"name":"a","namespace":"s"}})");
  // The library returns a connection a moment after the answer, so the next call may need another
  // one.
  EXPECT_LT(server_->connections(), 10);
}

TEST_F(HttpsTest, StatusObjectsAreTypedFailures) {
  serve([](Conversation& request) {
    request.answer(429, R"({"kind":"Status","reason":"TooManyRequests","message":"busy"})",
                   "Retry-After: 7\r\n");
    return true;
  });
  const auto answer = get(client());
  ASSERT_TRUE(failed(answer, Reason::TooManyRequests));
  EXPECT_EQ(answer.error().retry_after, seconds(7));
  EXPECT_EQ(answer.error().message, "busy");
}

TEST_F(HttpsTest, RejectsAServerOfAnotherAuthority) {
  const Authority other("other");
  serve(say_ok);
  server_->use(other.issue("kube.test"));
  const auto answer = get(client());
  ASSERT_TRUE(failed(answer, Reason::Unreachable)) << answer.ok();
}

TEST_F(HttpsTest, RejectsAServerOfAnUnexpectedName) {
  serve(say_ok);
  HttpsOptions options;
  options.tls_server_name = "elsewhere.test";
  EXPECT_FALSE(get(client(options)).ok());
  options.tls_server_name = "kube.test";
  EXPECT_TRUE(get(client(options)).ok());
}

TEST_F(HttpsTest, UsesANewAuthorityWithoutARestart) {
  const Authority second("second");
  serve(say_ok);
  auto& api = client();
  EXPECT_TRUE(get(api).ok());
  write("ca.crt", authority_.certificate() + second.certificate());
  clock_.advance(seconds(60));
  EXPECT_TRUE(get(api).ok());
  server_->use(second.issue("kube.test"));
  EXPECT_TRUE(get(api).ok()) << "the connection that is open stays so";
  write("ca.crt", second.certificate());
  clock_.advance(seconds(60));
  const auto answer = get(api);
  EXPECT_TRUE(answer.ok()) << answer.error().message;
}

TEST_F(HttpsTest, UsesAReplacedTokenAndRereadsARefusedOne) {
  write("token", "one");
  connection_.user.token_file = path("token");
  std::atomic<bool> is_refusing{false};
  std::string seen;
  serve([&](Conversation& request) {
    seen = request.headers["authorization"];
    request.answer(is_refusing ? 401 : 200, "{}");
    return true;
  });
  auto& api = client();
  EXPECT_TRUE(get(api).ok());
  write("token", "two");
  clock_.advance(seconds(51));
  EXPECT_TRUE(get(api).ok());
  EXPECT_EQ(seen, "Bearer two");
}

TEST_F(HttpsTest, AClientCertificateThatWasReplacedMakesANewConnection) {
  const Authority clients("clients");
  const auto first = clients.issue("one");
  write("tls.crt", first.certificate);
  write("tls.key", first.key);
  connection_.user.certificate.file = path("tls.crt");
  connection_.user.key.file = path("tls.key");
  std::string seen;
  serve(
      [&](Conversation& request) {
        seen = request.client;
        return say_ok(request);
      },
      clients.certificate());
  auto& api = client();
  EXPECT_TRUE(get(api).ok());
  EXPECT_EQ(seen, "one");
  const auto second = clients.issue("two");
  // Half of a pair is not used.
  write("tls.crt", second.certificate);
  clock_.advance(seconds(60));
  EXPECT_TRUE(get(api).ok());
  EXPECT_EQ(seen, "one");
  write("tls.key", second.key);
  clock_.advance(seconds(60));
  EXPECT_TRUE(get(api).ok());
  EXPECT_EQ(seen, "two");
}

TEST_F(HttpsTest, ReportsUnusableFiles) {
  serve(say_ok);
  write("ca.crt", "no certificate");
  EXPECT_TRUE(failed(get(client()), Reason::Misconfigured));
}

TEST_F(HttpsTest, ReportsThatNothingListens) {
  serve(say_ok);
  HttpsOptions options;
  options.server = server_->url();
  server_.reset();
  const auto answer = client(options).remove(kPods, {"s", "a"}, {});
  ASSERT_TRUE(failed(answer, Reason::ConnectionRefused)) << answer.error().message;
  EXPECT_FALSE(answer.error().is_outcome_unknown);
}

TEST_F(HttpsTest, ALateAnswerIsAnUnknownOutcome) {
  serve([](Conversation& request) {
    request.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{");
    request.linger();
    return false;
  });
  const auto answer = client({}, milliseconds(100)).remove(kPods, {"s", "a"}, {});
  ASSERT_TRUE(failed(answer, Reason::Deadline));
  EXPECT_TRUE(answer.error().is_outcome_unknown);
}

TEST_F(HttpsTest, ACutAnswerIsAnUnknownOutcome) {
  serve([](Conversation& request) {
    request.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{");
    return false;
  });
  const auto answer = client().remove(kPods, {"s", "a"}, {});
  ASSERT_TRUE(failed(answer, Reason::Unreachable)) << client::name_of(answer.error().reason);
  EXPECT_TRUE(answer.error().is_outcome_unknown);
}

TEST_F(HttpsTest, ATooLongAnswerIsRefused) {
  serve([](Conversation& request) {
    request.answer(200, "{\"x\":\"" + std::string(300'000, 'x') + "\"}");
    return true;
  });
  HttpsOptions options;
  options.body_bytes_max = 100'000;
  EXPECT_TRUE(failed(get(client(options)), Reason::LimitExceeded));
  options.body_bytes_max = 400'000;
  EXPECT_TRUE(get(client(options)).ok());
}

TEST_F(HttpsTest, AMalformedAnswerIsAFailure) {
  for (const std::string text :
       {"nonsense\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]"}) {
    serve([text](Conversation& request) {
      request.send(text);
      return false;
    });
    EXPECT_FALSE(get(client()).ok()) << text;
  }
}

TEST_F(HttpsTest, ALongWatchPassesThroughASmallBuffer) {
  constexpr int kLines = 10'000;
  serve([](Conversation& request) {
    std::string text;
    request.send(kChunked);
    for (int i = 0; i < kLines; ++i) {
      text += event_line(i);
      if (i % 37 != 0 && i + 1 != kLines) continue;
      // Chunks end at any place.
      const std::string all = std::exchange(text, {});
      request.send(chunk(all.substr(0, all.size() / 2)) + chunk(all.substr(all.size() / 2)));
    }
    request.send("0\r\n\r\n");
    return true;
  });
  HttpsOptions options;
  options.stream_bytes_max = 10'000;
  auto watch = client(options).watch(kPods, {});
  ASSERT_TRUE(watch.ok()) << watch.error().message;
  for (int i = 0; i < kLines; ++i) {
    const auto event = (*watch)->next(fakes::kPatience);
    ASSERT_TRUE(event.ok()) << event.error().message;
    ASSERT_EQ(event->what, WatchEvent::EventKind::Event);
    ASSERT_EQ(event->object.at({"metadata", "resourceVersion"}).text(), std::to_string(i));
  }
  EXPECT_EQ((*watch)->next(fakes::kPatience)->what, WatchEvent::EventKind::Ended);
}

TEST_F(HttpsTest, AWatchCutInALineReturnsTheWholeLines) {
  serve([](Conversation& request) {
    request.send(kChunked + chunk(event_line(1) + event_line(2).substr(0, 20)));
    return false;
  });
  auto watch = client().watch(kPods, {});
  ASSERT_TRUE(watch.ok());
  EXPECT_EQ((*watch)->next(fakes::kPatience)->type, "ADDED");
  EXPECT_TRUE(failed((*watch)->next(fakes::kPatience), Reason::Unreachable));
}

TEST_F(HttpsTest, ATooLongLineEndsAWatch) {
  serve([](Conversation& request) {
    request.send(kChunked);
    while (request.send(chunk(std::string(10'000, 'x')))) {
    }
    return false;
  });
  auto watch = client().watch(kPods, {});
  ASSERT_TRUE(watch.ok());
  EXPECT_TRUE(failed((*watch)->next(fakes::kPatience), Reason::LimitExceeded));
}

TEST_F(HttpsTest, ASilentWatchEndsByCancellationOrAStop) {
  serve([](Conversation& request) {
    request.send(kChunked + chunk(event_line(1)));
    request.linger();
    return false;
  });
  auto& api = client();
  auto watch = api.watch(kPods, {});
  auto other = api.watch(kPods, {});
  ASSERT_TRUE(watch.ok() && other.ok());
  EXPECT_EQ((*watch)->next(fakes::kPatience)->type, "ADDED");
  EXPECT_EQ((*watch)->next(milliseconds(20))->what, WatchEvent::EventKind::Silent);
  std::jthread canceller([&] { (*watch)->cancel(); });
  EXPECT_EQ((*watch)->next(fakes::kPatience)->what, WatchEvent::EventKind::Ended);
  EXPECT_EQ((*other)->next(fakes::kPatience)->type, "ADDED");
  std::jthread stopper([&] { stop_.request_stop(); });
  EXPECT_EQ((*other)->next(fakes::kPatience)->what, WatchEvent::EventKind::Ended);
  EXPECT_TRUE(failed(get(api), Reason::Cancelled));
}

TEST_F(HttpsTest, ARefusedWatchIsATypedFailure) {
  serve([](Conversation& request) {
    request.answer(410, R"({"kind":"Status","reason":"Expired","message":"old","code":410})");
    return true;
  });
  EXPECT_TRUE(failed(client().watch(kPods, {}), Reason::Expired));
}

TEST_F(HttpsTest, AStopEndsACallThatWaits) {
  std::atomic<bool> is_asked{false};
  serve([&](Conversation& request) {
    is_asked = true;
    request.linger();
    return false;
  });
  auto& api = client();
  std::jthread stopper([&] {
    EXPECT_TRUE(fakes::eventually([&] { return is_asked.load(); }));
    stop_.request_stop();
  });
  EXPECT_TRUE(failed(get(api), Reason::Cancelled));
}

TEST_F(HttpsTest, AnInformerFollowsAServerWhoseWatchesBreak) {
  std::atomic<int> watches{0};
  serve([&](Conversation& request) {
    if (request.target.find("watch=true") == std::string::npos) {
      request.answer(200, R"({"metadata":{"resourceVersion":"5"},"items":[]})");
      return true;
    }
    const int number = ++watches;
    std::string line = event_line(10 + number);
    line.replace(line.find("\"a\""), 3, "\"a" + std::to_string(number) + "\"");
    request.send(kChunked + chunk(line + "{\"type"));
    if (number >= 3) request.linger();
    return false;
  });
  auto& api = client();
  reflector::Informer informer({.resource = kPods, .rules = {.watch_short = Duration::zero()}}, api,
                               system_clock(), metrics_);
  EXPECT_TRUE(fakes::eventually([&] { return informer.store().size() == 3; }));
}

}  // namespace
}  // namespace sightline::https
