// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/prompt/media/download.h"

#include <algorithm>

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/check.h"
#include "common/base/number.h"
#include "common/base/out_of_memory.h"

#include "router/prompt/media/address_guard.h"

namespace sightline::media {
namespace {

// Limit for the response headers of one download, including those of redirections, in bytes.
constexpr std::size_t kHeaderBytesMax = std::size_t{64} << 10U;

// Limit for the bodies of redirections of one download, in bytes. The fetcher ignores these bodies.
constexpr std::size_t kPassedOverBytesMax = std::size_t{64} << 10U;

std::string host_of(const Download& download) { return shown_host(download.wanted_url()); }

Error too_large(const Download& download) {
  return limit_error(ErrorCode::TooLarge, "media-image-bytes-max",
                     "the image at " + host_of(download) + " is larger than " +
                         std::to_string(download.limits.image_bytes_max) +
                         " bytes (media-image-bytes-max)");
}

Error too_large_together(const Order& order) {
  return limit_error(ErrorCode::TooLarge, "body-bytes-max",
                     "the images of this request exceed " + std::to_string(order.wanted.bytes_max) +
                         " bytes together (body-bytes-max)",
                     "messages");
}

// Adds bytes to the download, or returns the reason why they do not fit.
std::optional<Error> take(Download& download, std::span<const std::uint8_t> more) {
  const FetchLimits& limits = download.limits;
  Order& order = download.order;
  const bool is_bounded = download.is_of_image();
  // Compares with the rest instead of adding, because a sum could overflow.
  if (is_bounded && more.size() > limits.image_bytes_max - download.body->bytes().size()) {
    return too_large(download);
  }
  if (more.size() > order.wanted.bytes_max - order.bytes) return too_large_together(order);
  if (!download.body->append(more)) return download.body->no_room(more.size());
  order.bytes += more.size();
  return std::nullopt;
}

bool is_redirection(long status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

long status_of(const Download& download) {
  long status = 0;
  curl_easy_getinfo(download.easy.get(), CURLINFO_RESPONSE_CODE, &status);
  return status;
}

std::size_t on_body(char* data, std::size_t, std::size_t size, void* context) {
  Download& download = *static_cast<Download*>(context);
  // The body of a redirection is not part of the image. It has its own limit, because a host could
  // send bytes forever.
  if (is_redirection(status_of(download))) {
    download.passed_over_bytes += size;
    return download.passed_over_bytes > kPassedOverBytesMax ? 0 : size;
  }
  // No exception may pass through libcurl, which is C code.
  try {
    download.refused = take(download, {reinterpret_cast<const std::uint8_t*>(data), size});
  } catch (const std::bad_alloc&) {
    download.refused = out_of_memory();
  }
  // A number other than `size` makes libcurl end the transfer.
  return download.refused ? 0 : size;
}

Error unsupported(const Download& download, const std::string& what) {
  return client_error(ErrorCode::Unsupported, "the image host " + host_of(download) + " " + what);
}

std::size_t on_header(char*, std::size_t, std::size_t size, void* context) {
  Download& download = *static_cast<Download*>(context);
  // The sum covers all redirections. Otherwise each of them could send its own header of full size.
  download.header_bytes += size;
  if (download.header_bytes <= kHeaderBytesMax) return size;
  try {
    download.refused = unsupported(
        download, "sent more than " + std::to_string(kHeaderBytesMax) + " bytes of headers");
  } catch (const std::bad_alloc&) {
    download.refused = out_of_memory();
  }
  return 0;
}

bool is_allowed(AddressKind kind, const FetchLimits& limits) {
  return kind == AddressKind::Public ||
         (kind == AddressKind::Private && limits.allow_private_addresses);
}

AddressKind kind_of(const curl_sockaddr& address) {
  if (address.family == AF_INET) {
    const auto* ipv4 = reinterpret_cast<const sockaddr_in*>(&address.addr);
    return kind_of_address({reinterpret_cast<const std::uint8_t*>(&ipv4->sin_addr), 4});
  }
  if (address.family == AF_INET6) {
    const auto* ipv6 = reinterpret_cast<const sockaddr_in6*>(&address.addr);
    return kind_of_address({reinterpret_cast<const std::uint8_t*>(&ipv6->sin6_addr), 16});
  }
  // An image URL never leads to another address family. Metadata is the kind that no setting
  // allows.
  return AddressKind::Metadata;
}

// libcurl calls this function with the address that it is about to connect to. A check of the name
// alone would allow a second DNS answer that leads to a private address.
curl_socket_t on_open_socket(void* context, curlsocktype, curl_sockaddr* address) {
  Download& download = *static_cast<Download*>(context);
  // The operator chose the address of the proxy.
  if (!download.goes_through_proxy && !is_allowed(kind_of(*address), download.limits)) {
    download.has_refused_address = true;
    return CURL_SOCKET_BAD;
  }
  // Descriptors from this number on are left for others.
  const int opened = socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
  if (opened >= 0 && opened < download.limits.descriptor_max) return opened;
  download.refused =
      overload_error("open-files", "the router has no file descriptor left for another download");
  if (opened >= 0) close(opened);
  return CURL_SOCKET_BAD;
}

Error refused_address(const Download& download) {
  const std::string what = download.limits.allow_private_addresses
                               ? "a metadata service of a cloud, which is never allowed"
                               : "not a public address. Send the image as a data URL instead";
  return client_error(ErrorCode::InvalidArgument,
                      "the image host " + host_of(download) +
                          (download.redirects == 0 ? " is " : " redirects to a host that is ") +
                          what);
}

// Checks a host that a proxy will request. The proxy resolves names itself. Only the written form
// of the host can be checked here.
bool is_inside(const RemoteUrl& url, const FetchLimits& limits) {
  if (!url.address.empty()) return !is_allowed(kind_of_address(url.address), limits);
  const bool is_local = url.host == "localhost" || url.host.ends_with(".localhost");
  return is_local && !limits.allow_private_addresses;
}

// Sets the options of a transfer.
class Options {
 public:
  explicit Options(CURL* easy) : easy_(easy) {}

  template <class Value>
  void set(CURLoption option, Value value) {
    const CURLcode code = curl_easy_setopt(easy_, option, value);
    if (code == CURLE_OUT_OF_MEMORY) has_memory_ = false;
    SL_CHECK(code == CURLE_OK || code == CURLE_OUT_OF_MEMORY);
  }
  // False: an option was not set for want of memory.
  [[nodiscard]] bool has_memory() const { return has_memory_; }

 private:
  CURL* easy_;
  bool has_memory_ = true;
};

void set_peer(Options& options, const Download& download, std::string_view proxy) {
  const FetchLimits& limits = download.limits;
  options.set(CURLOPT_URL, download.url.text.c_str());  // libcurl copies texts
  options.set(CURLOPT_PROXY, std::string(proxy).c_str());
  options.set(CURLOPT_NOPROXY, "");  // who is exempt was decided
  if (!limits.ca_file.empty()) {
    options.set(CURLOPT_CAINFO, limits.ca_file.c_str());
    options.set(CURLOPT_PROXY_CAINFO, limits.ca_file.c_str());
  }
  options.set(CURLOPT_PROTOCOLS_STR, "http,https");
  options.set(CURLOPT_NETRC, long{CURL_NETRC_IGNORED});
  options.set(CURLOPT_USERAGENT, "sightline");
}

std::chrono::seconds silence_max(const FetchLimits& limits) {
  const auto share = std::chrono::duration_cast<std::chrono::seconds>(limits.total_timeout);
  return std::max(kSilenceMin, share / kSilenceShare);
}

void set_limits(Options& options, const Download& download, std::chrono::milliseconds left) {
  const FetchLimits& limits = download.limits;
  options.set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(limits.connect_timeout.count()));
  options.set(CURLOPT_TIMEOUT_MS, std::max(1L, static_cast<long>(left.count())));
  options.set(CURLOPT_LOW_SPEED_LIMIT, long{kLeastBytesPerSecond});
  options.set(CURLOPT_LOW_SPEED_TIME, static_cast<long>(silence_max(limits).count()));
  const std::uint64_t bytes_max =
      download.is_of_image() ? limits.image_bytes_max : download.order.wanted.bytes_max;
  options.set(CURLOPT_MAXFILESIZE_LARGE, static_cast<curl_off_t>(bytes_max));
}

}  // namespace

Result<Done> prepare_transfer(Download& download, std::chrono::milliseconds left) {
  const std::string_view proxy = download.limits.proxies.proxy_for(download.url);
  download.goes_through_proxy = !proxy.empty();
  if (download.goes_through_proxy && is_inside(download.url, download.limits)) {
    return refused_address(download);
  }
  download.easy.reset(curl_easy_init());
  if (download.easy == nullptr) return out_of_memory();
  Options options(download.easy.get());
  set_peer(options, download, proxy);
  set_limits(options, download, left);
  options.set(CURLOPT_PRIVATE, &download);
  options.set(CURLOPT_NOSIGNAL, 1L);
  options.set(CURLOPT_QUICK_EXIT, 1L);  // do not wait for a name server when the process ends
  options.set(CURLOPT_FAILONERROR, 1L);
  options.set(CURLOPT_FOLLOWLOCATION, 0L);  // each URL is judged here first
  // Some stores send compressed data even if the request does not ask for it. With this option
  // libcurl decodes it.
  if (download.decodes) options.set(CURLOPT_ACCEPT_ENCODING, "gzip, deflate");
  options.set(CURLOPT_WRITEFUNCTION, &on_body);
  options.set(CURLOPT_WRITEDATA, &download);
  options.set(CURLOPT_HEADERFUNCTION, &on_header);
  options.set(CURLOPT_HEADERDATA, &download);
  options.set(CURLOPT_OPENSOCKETFUNCTION, &on_open_socket);
  options.set(CURLOPT_OPENSOCKETDATA, &download);
  if (!options.has_memory()) return out_of_memory();
  return Done{};
}

namespace {

Error timed_out(const Download& download) {
  const FetchLimits& limits = download.limits;
  return client_error(ErrorCode::Timeout,
                      "the image at " + host_of(download) + " did not arrive in time (limits: " +
                          std::to_string(limits.connect_timeout.count()) + " ms to connect, " +
                          std::to_string(limits.total_timeout.count()) + " ms in total, at least " +
                          std::to_string(kLeastBytesPerSecond) + " bytes a second over " +
                          std::to_string(silence_max(limits).count()) + " s)");
}

Error answered(const Download& download) {
  return unsupported(download, "answered HTTP " + std::to_string(status_of(download)));
}

Error not_reached(const Download& download, const std::string& what) {
  return client_error(ErrorCode::Unavailable, "the image host " + host_of(download) + " " + what);
}

// What a failed transfer means to the client. Addresses are never named: they may be internal.
Error failure_of(const Download& download, CURLcode code) {
  if (download.refused) return *download.refused;
  switch (code) {
    case CURLE_FILESIZE_EXCEEDED:
      return download.is_of_image() ? too_large(download) : too_large_together(download.order);
    case CURLE_HTTP_RETURNED_ERROR:
      return answered(download);
    case CURLE_OPERATION_TIMEDOUT:
      return timed_out(download);
    case CURLE_URL_MALFORMAT:
      return client_error(ErrorCode::InvalidArgument, "the image URL is malformed");
    case CURLE_UNSUPPORTED_PROTOCOL:
      return client_error(ErrorCode::InvalidArgument,
                          "the image host " + host_of(download) + " does not speak HTTP");
    case CURLE_OUT_OF_MEMORY:  // libcurl 7.88 also says so of a header line above 100 KB
      return unsupported(download,
                         "sent a header line that is too long, or the router is out of memory");
    case CURLE_BAD_CONTENT_ENCODING:
      return unsupported(download, "sent a content encoding that cannot be decoded");
    case CURLE_COULDNT_RESOLVE_PROXY:
      return not_reached(download,
                         "is not reachable: the proxy of the environment cannot be resolved");
    case CURLE_COULDNT_RESOLVE_HOST:
      return not_reached(download, "cannot be resolved");
    case CURLE_COULDNT_CONNECT:
      if (download.has_refused_address) return refused_address(download);
      return not_reached(download, "is not reachable");
    default:
      return client_error(ErrorCode::Unavailable,
                          "the image at " + host_of(download) +
                              " could not be downloaded: " + curl_easy_strerror(code));
  }
}

bool may_pass(const Download& download, CURLcode code) {
  if (download.refused || download.has_refused_address) return false;
  const long status = status_of(download);
  switch (code) {
    case CURLE_HTTP_RETURNED_ERROR:
      return status == 429 || status == 500 || status == 502 || status == 503 || status == 504;
    case CURLE_COULDNT_CONNECT:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_GOT_NOTHING:
    case CURLE_PARTIAL_FILE:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
    case CURLE_SSL_CONNECT_ERROR:
      return true;
    default:
      return false;
  }
}

// Some hosts declare a content coding that does not exist ("binary", "utf-8"), or one that the body
// does not have. The second attempt takes the body without decoding.
bool may_be_plain(const Download& download, CURLcode code) {
  return code == CURLE_BAD_CONTENT_ENCODING && download.decodes && download.body->bytes().empty();
}

std::string header_of(const Download& download, const char* name) {
  curl_header* header = nullptr;
  const auto found = curl_easy_header(download.easy.get(), name, 0, CURLH_HEADER, -1, &header);
  return found == CURLHE_OK ? header->value : "";
}

// "bytes 0-99/100" (RFC 9110 section 14.4).
bool is_of_whole(std::string_view range) {
  constexpr std::string_view kFirst = "bytes 0-";
  if (!range.starts_with(kFirst)) return false;
  range.remove_prefix(kFirst.size());
  const std::size_t slash = std::min(range.find('/'), range.size());
  const auto last = whole_number<std::uint64_t>(range.substr(0, slash));
  const auto size = whole_number<std::uint64_t>(range.substr(std::min(slash + 1, range.size())));
  return last && size && *last < *size && *last + 1 == *size;
}

bool is_whole_answer(const Download& download) {
  const long status = status_of(download);
  return status == 200 || status == 203 ||
         (status == 206 && is_of_whole(header_of(download, "content-range")));
}

Result<Next> redirected(const Download& download) {
  if (download.redirects >= download.limits.redirects_max) {
    return unsupported(download, "redirected more than " +
                                     std::to_string(download.limits.redirects_max) + " times");
  }
  const char* url = nullptr;
  curl_easy_getinfo(download.easy.get(), CURLINFO_REDIRECT_URL, &url);
  if (url == nullptr) return answered(download);
  auto target = read_remote_url(url);
  if (target.ok()) return Next(Redirected{std::move(target).value()});
  if (target.error().code != ErrorCode::InvalidArgument) return std::move(target).error();
  return client_error(ErrorCode::InvalidArgument,
                      "the image host " + host_of(download) +
                          " redirects to a URL that is not a valid http or https URL");
}

}  // namespace

Result<Next> next_of(const Download& download, CURLcode code) {
  if (!download.is_second_attempt) {
    if (may_pass(download, code)) return Next(TryAgain{kRetryPause});
    if (may_be_plain(download, code)) return Next(TryAgain{});
  }
  if (code != CURLE_OK) return failure_of(download, code);
  if (is_redirection(status_of(download))) return redirected(download);
  if (!is_whole_answer(download)) return answered(download);
  return Next(
      Arrived{{{download.body, &download.body->bytes()}, header_of(download, "content-type")}});
}

void begin_again(Download& download, std::shared_ptr<Body> body) {
  download.order.bytes -= download.body->bytes().size();
  download.body = std::move(body);
}

}  // namespace sightline::media
