// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/media/fetcher.h"

#include <algorithm>
#include <deque>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>

#include <arpa/inet.h>
#include <curl/curl.h>
#include <netinet/in.h>
#include <unistd.h>

#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/runtime/worker_thread.h"

#include "router/media/address_guard.h"

namespace sightline::media {
namespace {

// Response headers of one download, redirects included, in bytes.
constexpr std::size_t kHeaderBytesMax = std::size_t{64} << 10U;

struct EasyDeleter {
  void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
};
struct MultiDeleter {
  void operator()(CURLM* multi) const { curl_multi_cleanup(multi); }
};

// The host as the client wrote it, without credentials: all that an error may say about a URL.
std::string host_of(std::string_view url) {
  const std::size_t scheme = url.find("://");
  std::string_view rest = scheme == std::string_view::npos ? url : url.substr(scheme + 3);
  rest = rest.substr(0, rest.find_first_of("/?#\\"));
  const std::size_t at = rest.rfind('@');
  if (at != std::string_view::npos) rest.remove_prefix(at + 1);
  return std::string(rest);
}

// The URL with blanks and bytes beyond ASCII behind the host percent-encoded, as the engine's
// client encodes them: people paste such URLs, and libcurl refuses blanks.
std::string encoded_url(std::string_view url) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  const std::size_t scheme = url.find("://");
  const std::size_t path = url.find_first_of("/?#", scheme == url.npos ? 0 : scheme + 3);
  std::string encoded(url.substr(0, path));
  for (const char c : path == url.npos ? std::string_view{} : url.substr(path)) {
    const auto byte = static_cast<std::uint8_t>(c);
    if (byte != ' ' && byte < 0x80) {
      encoded += c;
    } else {
      encoded += {'%', kDigits[byte >> 4U], kDigits[byte & 15U]};
    }
  }
  return encoded;
}

// libcurl wants its process-wide state set up once, before any thread uses it.
void set_up_library() {
  static const bool is_up = curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
  SL_CHECK(is_up);
}

// One download, from the call to its end. Lives on the loop's thread once taken up.
struct Download {
  std::string url;
  Fetcher::Done done;
  Instant deadline;
  FetchLimits limits;

  std::unique_ptr<CURL, EasyDeleter> easy;
  std::shared_ptr<Bytes> bytes = std::make_shared<Bytes>();
  std::size_t header_bytes = 0;
  bool is_too_large = false;
  bool has_refused_address = false;
};

std::size_t on_body(char* data, std::size_t, std::size_t size, void* context) {
  Download& download = *static_cast<Download*>(context);
  if (size > download.limits.image_bytes_max - download.bytes->size()) {
    download.is_too_large = true;
    return 0;  // fewer than size: libcurl ends the transfer
  }
  const auto* begin = reinterpret_cast<const std::uint8_t*>(data);
  download.bytes->insert(download.bytes->end(), begin, begin + size);
  return size;
}

std::size_t on_header(char*, std::size_t, std::size_t size, void* context) {
  Download& download = *static_cast<Download*>(context);
  download.header_bytes += size;
  return download.header_bytes > kHeaderBytesMax ? 0 : size;
}

bool is_allowed(const curl_sockaddr& address) {
  if (address.family == AF_INET) {
    const auto* ipv4 = reinterpret_cast<const sockaddr_in*>(&address.addr);
    return is_public_address({reinterpret_cast<const std::uint8_t*>(&ipv4->sin_addr), 4});
  }
  if (address.family == AF_INET6) {
    const auto* ipv6 = reinterpret_cast<const sockaddr_in6*>(&address.addr);
    return is_public_address({reinterpret_cast<const std::uint8_t*>(&ipv6->sin6_addr), 16});
  }
  return false;
}

curl_socket_t on_open_socket(void* context, curlsocktype, curl_sockaddr* address) {
  Download& download = *static_cast<Download*>(context);
  if (!download.limits.allow_private_addresses && !is_allowed(*address)) {
    download.has_refused_address = true;
    return CURL_SOCKET_BAD;
  }
  return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

void set_options(CURL* easy, Download& download, std::chrono::milliseconds left) {
  const FetchLimits& limits = download.limits;
  const auto set = [easy](CURLoption option, auto value) {
    SL_CHECK(curl_easy_setopt(easy, option, value) == CURLE_OK);
  };
  set(CURLOPT_URL, encoded_url(download.url).c_str());  // libcurl copies it
  set(CURLOPT_PRIVATE, &download);
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
  set(CURLOPT_PROXY, "");  // none, whatever the environment says
  set(CURLOPT_NETRC, long{CURL_NETRC_IGNORED});
  set(CURLOPT_USERAGENT, "sightline");
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_QUICK_EXIT, 1L);  // do not wait for a name server when the process ends
  set(CURLOPT_FAILONERROR, 1L);
  set(CURLOPT_FOLLOWLOCATION, 1L);
  set(CURLOPT_MAXREDIRS, static_cast<long>(limits.redirects_max));
  set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(limits.connect_timeout.count()));
  set(CURLOPT_TIMEOUT_MS, std::max(1L, static_cast<long>(left.count())));
  set(CURLOPT_MAXFILESIZE_LARGE, static_cast<curl_off_t>(limits.image_bytes_max));
  set(CURLOPT_WRITEFUNCTION, &on_body);
  set(CURLOPT_WRITEDATA, &download);
  set(CURLOPT_HEADERFUNCTION, &on_header);
  set(CURLOPT_HEADERDATA, &download);
  set(CURLOPT_OPENSOCKETFUNCTION, &on_open_socket);
  set(CURLOPT_OPENSOCKETDATA, &download);
}

Error timed_out(const Download& download) {
  const FetchLimits& limits = download.limits;
  return client_error(ErrorCode::Timeout,
                      "the image at " + host_of(download.url) + " did not arrive in time (" +
                          std::to_string(limits.connect_timeout.count()) + " ms to connect, " +
                          std::to_string(limits.total_timeout.count()) + " ms in all)");
}

Error too_large(const Download& download) {
  return client_error(ErrorCode::TooLarge,
                      "the image at " + host_of(download.url) + " is larger than the limit of " +
                          std::to_string(download.limits.image_bytes_max) + " bytes");
}

Error refused_address(const Download& download) {
  return client_error(ErrorCode::InvalidArgument,
                      "the image host " + host_of(download.url) +
                          " is not a public address; send the image as a data URL instead");
}

// What a failed transfer means to the client. Addresses are never named: they may be internal.
Error failure_of(const Download& download, CURLcode code) {
  const std::string host = host_of(download.url);
  if (download.is_too_large || code == CURLE_FILESIZE_EXCEEDED) return too_large(download);
  switch (code) {
    case CURLE_HTTP_RETURNED_ERROR: {
      long status = 0;
      curl_easy_getinfo(download.easy.get(), CURLINFO_RESPONSE_CODE, &status);
      return client_error(ErrorCode::Unsupported,
                          "the image host " + host + " answered HTTP " + std::to_string(status));
    }
    case CURLE_OPERATION_TIMEDOUT:
      return timed_out(download);
    case CURLE_URL_MALFORMAT:
      return client_error(ErrorCode::InvalidArgument, "the image URL is malformed");
    case CURLE_UNSUPPORTED_PROTOCOL:
      return client_error(
          ErrorCode::InvalidArgument,
          "the image host " + host + " does not speak HTTP, or redirects to another scheme");
    case CURLE_TOO_MANY_REDIRECTS:
      return client_error(ErrorCode::Unsupported,
                          "the image host " + host + " redirects more than " +
                              std::to_string(download.limits.redirects_max) + " times");
    case CURLE_COULDNT_RESOLVE_HOST:
      return client_error(ErrorCode::Unavailable, "the image host " + host + " is not known");
    case CURLE_COULDNT_CONNECT:
      if (download.has_refused_address) return refused_address(download);
      return client_error(ErrorCode::Unavailable, "the image host " + host + " is not reachable");
    default:
      return client_error(
          ErrorCode::Unavailable,
          "the image at " + host + " could not be downloaded: " + curl_easy_strerror(code));
  }
}

Result<FetchedImage> result_of(const Download& download, CURLcode code) {
  if (code != CURLE_OK) return failure_of(download, code);
  long status = 0;
  curl_easy_getinfo(download.easy.get(), CURLINFO_RESPONSE_CODE, &status);
  if (status != 200) {
    return client_error(ErrorCode::Unsupported, "the image host " + host_of(download.url) +
                                                    " answered HTTP " + std::to_string(status));
  }
  const char* type = nullptr;
  curl_easy_getinfo(download.easy.get(), CURLINFO_CONTENT_TYPE, &type);
  return FetchedImage{download.bytes, type == nullptr ? "" : type};
}

}  // namespace

class Fetcher::Loop {
 public:
  explicit Loop(const FetchLimits& limits)
      : limits_(limits),
        multi_(make_multi(limits)),
        thread_("fetcher", [this](std::stop_token s) { run(std::move(s)); }) {}

  void fetch(std::string url, Done done) {
    Download download{std::move(url), std::move(done), system_clock().now() + limits_.total_timeout,
                      limits_};
    {
      const std::lock_guard lock(mutex_);
      if (waiting_.size() < limits_.waiting_max) {
        waiting_.push_back(std::move(download));
        download.done = nullptr;
      }
    }
    if (download.done != nullptr) {
      download.done(client_error(ErrorCode::Overloaded,
                                 "too many images are being downloaded; try again later"));
      return;
    }
    curl_multi_wakeup(multi_.get());
  }

 private:
  static CURLM* make_multi(const FetchLimits& limits) {
    set_up_library();
    CURLM* multi = curl_multi_init();
    SL_CHECK(multi != nullptr);
    curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, static_cast<long>(limits.downloads_max));
    return multi;
  }

  void run(std::stop_token stop) {
    const std::stop_callback wake(stop, [this] { curl_multi_wakeup(multi_.get()); });
    while (!stop.stop_requested()) {
      start_waiting();
      int running = 0;
      curl_multi_perform(multi_.get(), &running);
      finish_done();
      expire_waiting();
      constexpr int kPollMs = 500;  // bounds how late a waiting download notices its deadline
      curl_multi_poll(multi_.get(), nullptr, 0, kPollMs, nullptr);
    }
    cancel_all();
  }

  std::optional<Download> next_waiting() {
    const std::lock_guard lock(mutex_);
    if (waiting_.empty()) return std::nullopt;
    Download download = std::move(waiting_.front());
    waiting_.pop_front();
    return download;
  }

  void start_waiting() {
    while (running_.size() < limits_.downloads_max) {
      auto next = next_waiting();
      if (!next) return;
      start(std::make_unique<Download>(std::move(*next)));
    }
  }

  void start(std::unique_ptr<Download> download) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(download->deadline -
                                                                            system_clock().now());
    if (left.count() <= 0) return download->done(timed_out(*download));
    download->easy.reset(curl_easy_init());
    SL_CHECK(download->easy != nullptr);
    CURL* easy = download->easy.get();
    set_options(easy, *download, left);
    SL_CHECK(curl_multi_add_handle(multi_.get(), easy) == CURLM_OK);
    running_.emplace(easy, std::move(download));
  }

  void finish_done() {
    int left = 0;
    while (const CURLMsg* message = curl_multi_info_read(multi_.get(), &left)) {
      if (message->msg == CURLMSG_DONE) finish(message->easy_handle, message->data.result);
    }
    // A finished download frees a place; the next one need not wait for the next wake-up.
    start_waiting();
  }

  void finish(CURL* easy, CURLcode code) {
    const auto found = running_.find(easy);
    SL_CHECK(found != running_.end());
    const std::unique_ptr<Download> download = std::move(found->second);
    running_.erase(found);
    curl_multi_remove_handle(multi_.get(), easy);
    download->done(result_of(*download, code));
  }

  void expire_waiting() {
    const Instant now = system_clock().now();
    while (true) {
      std::optional<Download> expired;
      {
        const std::lock_guard lock(mutex_);
        if (waiting_.empty() || waiting_.front().deadline > now) return;
        expired = std::move(waiting_.front());
        waiting_.pop_front();
      }
      expired->done(timed_out(*expired));
    }
  }

  void cancel_all() {
    const auto cancelled = [](const Download& download) {
      Error error = internal_error("the download was cancelled: the server is stopping");
      error.code = ErrorCode::Cancelled;
      download.done(std::move(error));
    };
    for (auto& [easy, download] : running_) {
      curl_multi_remove_handle(multi_.get(), easy);
      cancelled(*download);
    }
    running_.clear();
    while (const auto download = next_waiting()) cancelled(*download);
  }

  const FetchLimits limits_;
  const std::unique_ptr<CURLM, MultiDeleter> multi_;
  std::mutex mutex_;              // guards waiting_
  std::deque<Download> waiting_;  // by deadline, since all have the same time to live
  std::unordered_map<CURL*, std::unique_ptr<Download>> running_;  // loop thread only
  WorkerThread thread_;  // last: it uses all of the above and ends first
};

Fetcher::Fetcher(const FetchLimits& limits) : loop_(std::make_unique<Loop>(limits)) {}
Fetcher::~Fetcher() = default;

void Fetcher::fetch(std::string url, Done done) { loop_->fetch(std::move(url), std::move(done)); }

}  // namespace sightline::media
