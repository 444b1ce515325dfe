// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/prompt/media/fetcher.h"

#include <cstdlib>
#include <future>

#include <gtest/gtest.h>
#include <zlib.h>

#include "tests/unit/router/prompt/media/page_server.h"

namespace sightline::media {
namespace {

using std::chrono::milliseconds;

FetchLimits local_limits() {
  FetchLimits limits;
  limits.allow_private_addresses = true;
  limits.total_timeout = milliseconds(10'000);
  return limits;
}

std::future<Result<FetchedImage>> started(Fetcher& fetcher, const std::string& url) {
  auto promise = std::make_shared<std::promise<Result<FetchedImage>>>();
  auto future = promise->get_future();
  fetcher.fetch({.urls = {url}}, [promise](Fetched fetched) {
    if (fetched.error) return promise->set_value(*fetched.error);
    promise->set_value(std::move(fetched.images.at(0)));
  });
  return future;
}

struct Ordered {
  Fetcher::OrderId id;
  std::future<Fetched> fetched;
};

Ordered ordered(Fetcher& fetcher, FetchOrder order) {
  auto promise = std::make_shared<std::promise<Fetched>>();
  auto future = promise->get_future();
  const auto id = fetcher.fetch(
      std::move(order), [promise](Fetched fetched) { promise->set_value(std::move(fetched)); });
  return {id, std::move(future)};
}

Result<FetchedImage> fetched(Fetcher& fetcher, const std::string& url) {
  return started(fetcher, url).get();
}

// Returns the error of a download, which must fail.
Error failure(Fetcher& fetcher, const std::string& url) {
  auto image = fetched(fetcher, url);
  EXPECT_FALSE(image.ok()) << url;
  return image.ok() ? Error{} : image.error();
}

std::string gzipped(std::string_view text) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string coded(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(coded.data());
  stream.avail_out = static_cast<uInt>(coded.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  coded.resize(stream.total_out);
  deflateEnd(&stream);
  return coded;
}

std::optional<std::string> everyday_pages(const std::string& path) {
  if (path == "/ok") return page("200 OK", "Content-Type: image/png\r\n", "picture");
  if (path == "/redirect") return page("302 Found", "Location: /ok\r\n", "elsewhere");
  if (path == "/loop") return page("302 Found", "Location: /loop\r\n", "");
  if (path == "/file") return page("302 Found", "Location: file:///etc/hostname\r\n", "");
  if (path == "/line") {
    return page("200 OK", "X-Long: " + std::string(200'000, 'x') + "\r\n", "picture");
  }
  if (path == "/missing") return page("404 Not Found", "", "no such page");
  if (path == "/empty") return std::string("HTTP/1.1 204 No Content\r\n\r\n");
  if (path == "/cookie") return page("200 OK", "Set-Cookie: a=b\r\n", "");
  if (path == "/headers") {
    std::string headers;
    for (int i = 0; i < 3000; ++i)
      headers += "X-Header-Of-Some-Length: " + std::to_string(i) + "\r\n";
    return page("200 OK", headers, "picture");
  }
  if (path == "/large") return page("200 OK", "", std::string(2000, 'x'));
  if (path == "/chunks") {
    std::string body;
    for (int i = 0; i < 200; ++i) body += "10\r\n0123456789abcdef\r\n";
    return "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + body + "0\r\n\r\n";
  }
  if (path == "/cut") {
    return std::string("HTTP/1.1 200 OK\r\nContent-Length: 100\r\nConnection: close\r\n\r\nhalf");
  }
  if (path == "/garbage") return std::string("\x01\x02 Connection: close \r\n\r\n");
  return std::nullopt;
}

TEST(Fetcher, GivesTheBytesAndTheirDeclaredType) {
  PageServer server(everyday_pages);
  Fetcher fetcher(local_limits());
  const auto image = fetched(fetcher, server.url("/ok"));
  ASSERT_TRUE(image.ok());
  EXPECT_EQ(text_of(*image->bytes), "picture");
  EXPECT_EQ(image->content_type, "image/png");
}

TEST(Fetcher, BlanksAndLettersBeyondAsciiAreEncoded) {
  PageServer server(
      [](const std::string& path) { return std::optional(page("200 OK", "", path)); });
  Fetcher fetcher(local_limits());
  const auto image = fetched(fetcher, server.url("/caf\xc3\xa9 1%20.png?q=a b#part"));
  ASSERT_TRUE(image.ok());
  EXPECT_EQ(text_of(*image->bytes), "/caf%C3%A9%201%20.png?q=a%20b");
  EXPECT_FALSE(fetched(fetcher, server.url("/a\r\nX-Evil: 1")).ok());
}

TEST(Fetcher, FollowsRedirectsAndKeepsItsConnection) {
  PageServer server(everyday_pages);
  Fetcher fetcher(local_limits());
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(fetched(fetcher, server.url("/redirect")).ok());
  EXPECT_EQ(server.connections(), 1);
}

TEST(Fetcher, SizeLimitsHoldWithAndWithoutADeclaredLength) {
  PageServer server(everyday_pages);
  FetchLimits limits = local_limits();
  limits.image_bytes_max = 1999;
  Fetcher fetcher(limits);
  for (const char* path : {"/large", "/chunks"}) {
    const Error error = failure(fetcher, server.url(path));
    EXPECT_EQ(error.code, ErrorCode::TooLarge) << path;
    EXPECT_NE(error.message.find("1999 bytes"), std::string::npos);
  }
  limits.image_bytes_max = 2000;
  Fetcher wider(limits);
  EXPECT_TRUE(fetched(wider, server.url("/large")).ok());
}

TEST(Fetcher, FailuresBlameTheClientAndGiveTheReason) {
  PageServer server(everyday_pages);
  Fetcher fetcher(local_limits());
  struct Case {
    std::string path;
    ErrorCode want_code;
    std::string want_text;
  };
  const std::vector<Case> cases{
      {"/missing", ErrorCode::Unsupported, "HTTP 404"},
      {"/empty", ErrorCode::Unsupported, "HTTP 204"},
      {"/loop", ErrorCode::Unsupported, "more than 10 times"},
      {"/file", ErrorCode::InvalidArgument, "redirects to a URL that is not"},
      {"/headers", ErrorCode::Unsupported, "65536 bytes of headers"},
      {"/line", ErrorCode::Unsupported, "line that is too long"},
      {"/cut", ErrorCode::Unavailable, "could not be downloaded"},
      {"/garbage", ErrorCode::InvalidArgument, "does not speak HTTP"}};
  for (const Case& c : cases) {
    const Error error = failure(fetcher, server.url(c.path));
    EXPECT_EQ(error.code, c.want_code) << c.path << ": " << error.message;
    EXPECT_EQ(error.blame, Blame::Client) << c.path;
    EXPECT_FALSE(error.retryable);
    EXPECT_NE(error.message.find(c.want_text), std::string::npos) << error.message;
  }
}

TEST(Fetcher, AnAnswerThatDoesNotComeIsATimeout) {
  PageServer server(everyday_pages);
  FetchLimits limits = local_limits();
  limits.total_timeout = milliseconds(100);
  limits.downloads_max = 1;
  Fetcher fetcher(limits);
  auto first = started(fetcher, server.url("/never"));
  EXPECT_EQ(first.get().error().code, ErrorCode::Timeout);
}

TEST(Fetcher, SilentHostEndsLongBeforeItsTimeout) {
  PageServer server(everyday_pages);
  FetchLimits limits = local_limits();
  limits.total_timeout = 4 * kSilenceMin;
  Fetcher fetcher(limits);
  auto silent = started(fetcher, server.url("/never"));
  server.wait_for_requests(1);
  const auto began = std::chrono::steady_clock::now();
  EXPECT_EQ(silent.get().error().code, ErrorCode::Timeout);
  EXPECT_LT(std::chrono::steady_clock::now() - began, 3 * kSilenceMin);
}

TEST(Fetcher, PrivateAddressesAreRefusedInEveryNotation) {
  PageServer server(everyday_pages);
  Fetcher fetcher(FetchLimits{});
  for (const char* host : {"127.0.0.1", "localhost", "0x7f000001", "2130706433", "017700000001",
                           "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "127.1"}) {
    const Error error = failure(fetcher, server.url("/ok", host));
    EXPECT_EQ(error.code, ErrorCode::InvalidArgument) << host << ": " << error.message;
    EXPECT_NE(error.message.find("not a public address"), std::string::npos) << error.message;
  }
  EXPECT_EQ(failure(fetcher, "http://169.254.169.254/latest/meta-data").code,
            ErrorCode::InvalidArgument);
  EXPECT_EQ(server.connections(), 0);
}

TEST(Fetcher, ErrorsNameNeitherAddressesNorCredentials) {
  int free_port = 0;
  {
    const PageServer gone(everyday_pages);
    const std::string url = gone.url("");
    free_port = std::stoi(url.substr(url.rfind(':') + 1));
  }
  Fetcher fetcher(local_limits());
  const Error error = failure(
      fetcher, "http://user:secret@localhost:" + std::to_string(free_port) + "/x?token=secret");
  EXPECT_EQ(error.code, ErrorCode::Unavailable);
  EXPECT_NE(error.message.find("localhost"), std::string::npos);
  EXPECT_EQ(error.message.find("127.0.0.1"), std::string::npos);
  EXPECT_EQ(error.message.find("secret"), std::string::npos);
  EXPECT_EQ(failure(fetcher, "http://").code, ErrorCode::InvalidArgument);
  const Error scheme = failure(fetcher, "file:///etc/hostname");
  EXPECT_EQ(scheme.code, ErrorCode::InvalidArgument);
  EXPECT_NE(scheme.message.find("scheme"), std::string::npos) << scheme.message;
}

TEST(Fetcher, OnlyTheConfiguredProxiesAreUsed) {
  PageServer server(everyday_pages);
  setenv("http_proxy", "http://127.0.0.1:1", 1);
  Fetcher fetcher(local_limits());
  EXPECT_TRUE(fetched(fetcher, server.url("/ok")).ok());
  unsetenv("http_proxy");
}

TEST(Fetcher, ProxyGetsNoForbiddenAddresses) {
  PageServer proxy([](const std::string& path) { return std::optional(page("200 OK", "", path)); });
  FetchLimits limits;  // the proxy's own address is private
  limits.proxies.http = proxy.url("");
  Fetcher fetcher(limits);
  const auto image = fetched(fetcher, "http://pictures.invalid/a.png");
  ASSERT_TRUE(image.ok()) << image.error().message;
  EXPECT_EQ(text_of(*image->bytes), "http://pictures.invalid/a.png");
  for (const char* url : {"http://10.0.0.1/", "http://0xa9fea9fe/", "http://localhost/",
                          "http://a.localhost/", "http://[::1]/"}) {
    EXPECT_EQ(failure(fetcher, url).code, ErrorCode::InvalidArgument) << url;
  }
  limits.allow_private_addresses = true;
  limits.proxies.exempt = {"127.0.0.1"};
  Fetcher wider(limits);
  EXPECT_TRUE(fetched(wider, "http://10.0.0.1/").ok());
  EXPECT_EQ(text_of(*fetched(wider, proxy.url("/direct"))->bytes), "/direct");
  EXPECT_EQ(failure(wider, "http://169.254.169.254/").code, ErrorCode::InvalidArgument);
}

TEST(Fetcher, MetadataServicesAreRefusedInAnyCase) {
  Fetcher fetcher(local_limits());
  for (const char* url : {"http://169.254.169.254/latest", "http://[::ffff:169.254.169.254]/",
                          "http://168.63.129.16/", "http://100.100.100.200/"}) {
    const Error error = failure(fetcher, url);
    EXPECT_EQ(error.code, ErrorCode::InvalidArgument) << url << ": " << error.message;
  }
  PageServer server([](const std::string&) {
    return std::optional(page("302 Found", "Location: http://169.254.169.254/\r\n", ""));
  });
  const Error error = failure(fetcher, server.url("/"));
  EXPECT_EQ(error.code, ErrorCode::InvalidArgument);
  EXPECT_NE(error.message.find("redirects to a host that is a metadata service"), std::string::npos)
      << error.message;
}

TEST(Fetcher, TemporaryFailureIsRetriedOnce) {
  std::atomic<int> asked = 0;
  PageServer server([&asked](const std::string& path) {
    const bool is_first = ++asked == 1;
    if (!is_first && path != "/always") return std::optional(page("200 OK", "", "picture"));
    if (path == "/cut") return everyday_pages("/cut");
    return std::optional(page("503 Slow Down", "", "later"));
  });
  Fetcher fetcher(local_limits());
  for (const char* path : {"/503", "/cut"}) {
    asked = 0;
    const auto image = fetched(fetcher, server.url(path));
    ASSERT_TRUE(image.ok()) << path << image.error().message;
    EXPECT_EQ(text_of(*image->bytes), "picture") << path;
    EXPECT_EQ(asked, 2) << path;
  }
  asked = 0;
  EXPECT_NE(failure(fetcher, server.url("/always")).message.find("HTTP 503"), std::string::npos);
  EXPECT_EQ(asked, 2);
}

TEST(Fetcher, BytesOfAFailedAttemptDoNotCount) {
  std::atomic<int> asked = 0;
  PageServer server([&asked](const std::string&) {
    return ++asked == 1 ? everyday_pages("/cut") : std::optional(page("200 OK", "", "12345"));
  });
  Fetcher fetcher(local_limits());
  EXPECT_FALSE(ordered(fetcher, {.urls = {server.url("/")}, .bytes_max = 5}).fetched.get().error);
}

TEST(Fetcher, OnlyWholeAnswersCount) {
  PageServer server([](const std::string& path) -> std::optional<std::string> {
    if (path == "/203") return page("203 X", "", "picture");
    if (path == "/whole") return page("206 X", "Content-Range: bytes 0-6/7\r\n", "picture");
    if (path == "/part") return page("206 X", "Content-Range: bytes 0-6/8\r\n", "picture");
    if (path == "/end") return page("206 X", "Content-Range: bytes 1-7/8\r\n", "picture");
    return page("206 X", "", "picture");
  });
  Fetcher fetcher(local_limits());
  EXPECT_TRUE(fetched(fetcher, server.url("/203")).ok());
  EXPECT_TRUE(fetched(fetcher, server.url("/whole")).ok());
  for (const char* path : {"/part", "/end", "/unsaid"}) {
    EXPECT_NE(failure(fetcher, server.url(path)).message.find("HTTP 206"), std::string::npos);
  }
}

TEST(Fetcher, CompressedBodiesAreDecodedWithinTheLimits) {
  PageServer server([](const std::string& path) -> std::optional<std::string> {
    if (path == "/gzip") return page("200 OK", "Content-Encoding: gzip\r\n", gzipped("picture"));
    if (path == "/bomb") {
      return page("200 OK", "Content-Encoding: gzip\r\n", gzipped(std::string(1 << 20, 'x')));
    }
    if (path == "/odd") return page("200 OK", "Content-Encoding: binary\r\n", "picture");
    return page("200 OK", "Content-Encoding: gzip\r\n", "picture");
  });
  FetchLimits limits = local_limits();
  limits.image_bytes_max = 100'000;
  Fetcher fetcher(limits);
  for (const char* path : {"/gzip", "/odd", "/none"}) {
    const auto image = fetched(fetcher, server.url(path));
    ASSERT_TRUE(image.ok()) << path << ": " << image.error().message;
    EXPECT_EQ(text_of(*image->bytes), "picture") << path;
  }
  EXPECT_EQ(failure(fetcher, server.url("/bomb")).code, ErrorCode::TooLarge);
}

TEST(Fetcher, OtherMediaHaveOnlyTheOrdersLimit) {
  PageServer server(everyday_pages);
  FetchLimits limits = local_limits();
  limits.image_bytes_max = 1999;
  Fetcher fetcher(limits);
  const FetchOrder order{.urls = {server.url("/ok"), server.url("/large")}, .images = 1};
  EXPECT_FALSE(ordered(fetcher, order).fetched.get().error);
}

TEST(Fetcher, HostThatNeverAnswersLeavesSlotsForOthers) {
  PageServer stuck(everyday_pages);
  PageServer other(everyday_pages);
  FetchLimits limits = local_limits();
  limits.total_timeout = std::chrono::minutes(10);  // no download ends meanwhile
  Fetcher fetcher(limits);
  std::vector<Ordered> waiting;
  for (int i = 0; i < 140; ++i) {
    waiting.push_back(ordered(fetcher, {.urls = {stuck.url("/never")}}));
  }
  stuck.wait_for_requests(32);
  EXPECT_TRUE(fetched(fetcher, other.url("/ok")).ok());
  EXPECT_EQ(stuck.connections(), 32);
  for (Ordered& order : waiting) fetcher.cancel(order.id);
}

TEST(Fetcher, LimitOfRunningDownloadsHolds) {
  std::promise<void> gate;
  const std::shared_future<void> is_open = gate.get_future().share();
  PageServer server([is_open](const std::string&) {
    is_open.wait();
    return std::optional(page("200 OK", "", "picture"));
  });
  FetchLimits limits = local_limits();
  limits.downloads_max = 2;
  Fetcher fetcher(limits);
  std::vector<std::future<Result<FetchedImage>>> downloads;
  downloads.push_back(started(fetcher, server.url("/0")));
  downloads.push_back(started(fetcher, server.url("/1")));
  server.wait_for_requests(2);
  for (int i = 0; i < 4; ++i) downloads.push_back(started(fetcher, server.url("/more")));
  gate.set_value();
  for (auto& download : downloads) EXPECT_TRUE(download.get().ok());
  EXPECT_EQ(server.open_max(), 2);
}

TEST(Fetcher, DownloadWithoutASlotInTimeIsRefused) {
  PageServer server(everyday_pages);
  FetchLimits limits = local_limits();
  limits.total_timeout = std::chrono::seconds(3);
  limits.downloads_max = 1;
  Fetcher fetcher(limits);
  // Each of the first two needs the whole time. The second one gets no time.
  std::vector<std::future<Result<FetchedImage>>> downloads;
  for (int i = 0; i < 2; ++i) downloads.push_back(started(fetcher, server.url("/never")));
  EXPECT_EQ(downloads[0].get().error().code, ErrorCode::Timeout);
  const Error late = downloads[1].get().error();
  EXPECT_EQ(late.code, ErrorCode::Overloaded) << late.message;
  EXPECT_EQ(late.limit, "media-downloads-max");
}

TEST(Fetcher, ReturnsImagesInTheOrderOfTheUrls) {
  PageServer server(
      [](const std::string& path) { return std::optional(page("200 OK", "", path)); });
  Fetcher fetcher(local_limits());
  FetchOrder order;
  for (int i = 0; i < 30; ++i) order.urls.push_back(server.url("/" + std::to_string(i)));
  const Fetched fetched = ordered(fetcher, order).fetched.get();
  ASSERT_FALSE(fetched.error) << fetched.error->message;
  ASSERT_EQ(fetched.images.size(), 30U);
  for (std::size_t i = 0; i < 30; ++i) {
    EXPECT_EQ(text_of(*fetched.images[i].bytes), "/" + std::to_string(i));
  }
}

TEST(Fetcher, OneFailureEndsTheRestOfItsOrder) {
  PageServer server(everyday_pages);
  FetchLimits limits = local_limits();
  limits.downloads_max = 24;  // three for the first order
  Fetcher fetcher(limits);
  FetchOrder order;
  for (const char* path : {"/never", "/missing", "/never"}) order.urls.push_back(server.url(path));
  const Fetched fetched = ordered(fetcher, order).fetched.get();
  ASSERT_TRUE(fetched.error);
  EXPECT_EQ(fetched.error->code, ErrorCode::Unsupported);
  EXPECT_EQ(fetched.failed, 1U);
}

TEST(Fetcher, BytesOfAnOrderCountAsTheyArrive) {
  // Each image is within the limits, and the last one never ends.
  PageServer server(everyday_pages);
  Fetcher fetcher(local_limits());
  FetchOrder order{.urls = {}, .bytes_max = 3999};
  for (int i = 0; i < 2; ++i) order.urls.push_back(server.url("/large"));
  order.urls.push_back(server.url("/never"));
  const Fetched fetched = ordered(fetcher, order).fetched.get();
  ASSERT_TRUE(fetched.error);
  EXPECT_EQ(fetched.error->code, ErrorCode::TooLarge);
  EXPECT_EQ(fetched.error->limit, "body-bytes-max");
  order.bytes_max = 4000;
  order.urls.pop_back();
  EXPECT_FALSE(ordered(fetcher, order).fetched.get().error);
}

TEST(Fetcher, HeldBytesCountUntilTheirRelease) {
  PageServer server(everyday_pages);
  FetchLimits limits = local_limits();
  limits.held_bytes_max = 3999;
  Fetcher fetcher(limits);
  auto kept = fetched(fetcher, server.url("/large"));
  ASSERT_TRUE(kept.ok());
  const Error error = failure(fetcher, server.url("/large"));
  EXPECT_EQ(error.code, ErrorCode::Overloaded);
  EXPECT_EQ(error.limit, "media-held-bytes-max");
  EXPECT_EQ(error.blame, Blame::Internal);
  kept->bytes.reset();
  EXPECT_TRUE(fetched(fetcher, server.url("/large")).ok());
}

TEST(Fetcher, StuckOrdersLeaveSlotsForOthers) {
  PageServer server(everyday_pages);
  Fetcher fetcher(local_limits());
  std::vector<Ordered> stuck;
  for (int i = 0; i < 10; ++i) {
    stuck.push_back(ordered(fetcher, {.urls = std::vector<std::string>(64, server.url("/never"))}));
  }
  // The first order gets an eighth of the slots. Each later one gets less.
  server.wait_for_requests(8 + 9);
  EXPECT_TRUE(fetched(fetcher, server.url("/ok")).ok());
  for (Ordered& order : stuck) fetcher.cancel(order.id);
}

TEST(Fetcher, CancelledOrderFreesItsSlotsImmediately) {
  PageServer server(everyday_pages);
  FetchLimits limits = local_limits();
  limits.downloads_max = 1;
  Fetcher fetcher(limits);
  auto stuck = ordered(fetcher, {.urls = {server.url("/never"), server.url("/never")}});
  server.wait_for_requests(1);
  auto next = started(fetcher, server.url("/ok"));
  fetcher.cancel(stuck.id);
  const Fetched ended = stuck.fetched.get();
  ASSERT_TRUE(ended.error);
  EXPECT_EQ(ended.error->code, ErrorCode::Cancelled);
  EXPECT_EQ(ended.error->blame, Blame::Client);
  EXPECT_TRUE(next.get().ok());
  fetcher.cancel(stuck.id);  // a second call has no effect
}

TEST(Fetcher, TheSameUrlIsAskedForEachTime) {
  std::atomic<int> asked = 0;
  PageServer server([&asked](const std::string&) {
    return std::optional(
        page("200 OK", "Cache-Control: max-age=1000\r\n", std::to_string(++asked)));
  });
  Fetcher fetcher(local_limits());
  EXPECT_EQ(text_of(*fetched(fetcher, server.url("/x"))->bytes), "1");
  EXPECT_EQ(text_of(*fetched(fetcher, server.url("/x"))->bytes), "2");
}

TEST(Fetcher, DestructionCancelsRunningAndWaitingOrders) {
  PageServer server(everyday_pages);
  FetchLimits limits = local_limits();
  limits.downloads_max = 1;
  std::vector<std::future<Result<FetchedImage>>> downloads;
  {
    Fetcher fetcher(limits);
    downloads.push_back(started(fetcher, server.url("/never")));
    server.wait_for_requests(1);
    downloads.push_back(started(fetcher, server.url("/never")));
  }
  for (auto& download : downloads) {
    ASSERT_EQ(download.wait_for(milliseconds(0)), std::future_status::ready);
    EXPECT_EQ(download.get().error().code, ErrorCode::Cancelled);
  }
}

}  // namespace
}  // namespace sightline::media
