// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/prompt/media/download.h"

#include <algorithm>

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/check.h"

#include "router/prompt/media/address_guard.h"

namespace sightline::media {
namespace {

// Response headers of one download, redirects included, in bytes.
constexpr std::size_t kHeaderBytesMax = std::size_t{64} << 10U;

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

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= 0; });
}

Error too_large(const Download& download) {
  return limit_error(ErrorCode::TooLarge, "media-image-bytes-max",
                     "the image at " + host_of(download.url()) + " is larger than " +
                         std::to_string(download.limits.image_bytes_max) +
                         " bytes (media-image-bytes-max)");
}

Error too_large_together(const Order& order) {
  return limit_error(ErrorCode::TooLarge, "body-bytes-max",
                     "the images of this request exceed " + std::to_string(order.wanted.bytes_max) +
                         " bytes together (body-bytes-max)",
                     "messages");
}

// Why these bytes cannot be taken; nothing if they were.
std::optional<Error> take(Download& download, std::span<const std::uint8_t> more) {
  const FetchLimits& limits = download.limits;
  Order& order = download.order;
  if (more.size() > limits.image_bytes_max - download.body->bytes().size()) {
    return too_large(download);
  }
  if (more.size() > order.wanted.bytes_max - order.bytes) return too_large_together(order);
  if (!download.body->append(more)) return download.body->no_room(more.size());
  order.bytes += more.size();
  return std::nullopt;
}

std::size_t on_body(char* data, std::size_t, std::size_t size, void* context) {
  Download& download = *static_cast<Download*>(context);
  download.refused = take(download, {reinterpret_cast<const std::uint8_t*>(data), size});
  return download.refused ? 0 : size;  // fewer than size: libcurl ends the transfer
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
  const int opened = socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
  if (opened >= 0 && opened < download.limits.descriptor_max) return opened;
  download.refused =
      overload_error("open-files", "the router has no descriptor for one more download");
  if (opened >= 0) close(opened);
  return CURL_SOCKET_BAD;
}

}  // namespace

void prepare_transfer(Download& download, std::chrono::milliseconds left) {
  download.easy.reset(curl_easy_init());
  CURL* easy = download.easy.get();
  SL_CHECK(easy != nullptr);
  const FetchLimits& limits = download.limits;
  const auto set = [easy](CURLoption option, auto value) {
    SL_CHECK(curl_easy_setopt(easy, option, value) == CURLE_OK);
  };
  set(CURLOPT_URL, encoded_url(download.url()).c_str());  // libcurl copies it
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

namespace {

Error timed_out(const Download& download) {
  const FetchLimits& limits = download.limits;
  return client_error(ErrorCode::Timeout,
                      "the image at " + host_of(download.url()) + " did not arrive in time (" +
                          std::to_string(limits.connect_timeout.count()) + " ms to connect, " +
                          std::to_string(limits.total_timeout.count()) + " ms in all)");
}

Error refused_address(const Download& download) {
  return client_error(ErrorCode::InvalidArgument,
                      "the image host " + host_of(download.url()) +
                          " is not a public address; send the image as a data URL instead");
}

// What a failed transfer means to the client. Addresses are never named: they may be internal.
Error failure_of(const Download& download, CURLcode code) {
  const std::string host = host_of(download.url());
  if (download.refused) return *download.refused;
  if (code == CURLE_FILESIZE_EXCEEDED) return too_large(download);
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
      return client_error(ErrorCode::InvalidArgument,
                          is_ascii(host) ? "the image URL is malformed"
                                         : "the host of the image URL must be ASCII: write a name "
                                           "in other letters in its xn-- form (punycode)");
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

}  // namespace

Result<FetchedImage> result_of(const Download& download, CURLcode code) {
  if (code != CURLE_OK) return failure_of(download, code);
  long status = 0;
  curl_easy_getinfo(download.easy.get(), CURLINFO_RESPONSE_CODE, &status);
  if (status != 200) {
    return client_error(ErrorCode::Unsupported, "the image host " + host_of(download.url()) +
                                                    " answered HTTP " + std::to_string(status));
  }
  const char* type = nullptr;
  curl_easy_getinfo(download.easy.get(), CURLINFO_CONTENT_TYPE, &type);
  return FetchedImage{{download.body, &download.body->bytes()}, type == nullptr ? "" : type};
}

}  // namespace sightline::media
