// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/prompt/media/remote_url.h"

#include <algorithm>
#include <array>
#include <memory>

#include <arpa/inet.h>
#include <curl/curl.h>
#include <unicode/uidna.h>

#include "common/base/check.h"
#include "common/base/number.h"
#include "common/base/out_of_memory.h"

namespace sightline::media {
namespace {

constexpr std::size_t kHostBytesMax = 512;

Error malformed() { return client_error(ErrorCode::InvalidArgument, "the image URL is malformed"); }

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= 0; });
}

// The position of the host: after the scheme and credentials, before the port and path.
struct HostPlace {
  std::size_t begin = 0;
  std::size_t end = 0;
};

HostPlace host_place(std::string_view url) {
  const std::size_t scheme = url.find("://");
  std::size_t begin = scheme == url.npos ? 0 : scheme + 3;
  // A backslash ends the host as well, because browsers read it as a slash.
  const std::size_t path = std::min(url.find_first_of("/?#\\", begin), url.size());
  const std::size_t at = url.substr(0, path).rfind('@');
  if (at != url.npos && at >= begin) begin = at + 1;
  return {begin, path};
}

Result<std::string> ascii_host(std::string_view host) {
  // The object is created once and never freed. ICU allows all threads to use it.
  static const UIDNA* const kRules = [] {
    UErrorCode failed = U_ZERO_ERROR;
    UIDNA* rules = uidna_openUTS46(UIDNA_NONTRANSITIONAL_TO_ASCII | UIDNA_USE_STD3_RULES |
                                       UIDNA_CHECK_BIDI | UIDNA_CHECK_CONTEXTJ,
                                   &failed);
    SL_CHECK(U_SUCCESS(failed));
    return rules;
  }();
  if (host.size() > kHostBytesMax) return malformed();
  std::array<char, kHostBytesMax * 8> ascii{};
  UIDNAInfo info = UIDNA_INFO_INITIALIZER;
  UErrorCode failed = U_ZERO_ERROR;
  const std::int32_t size =
      uidna_nameToASCII_UTF8(kRules, host.data(), static_cast<std::int32_t>(host.size()),
                             ascii.data(), static_cast<std::int32_t>(ascii.size()), &info, &failed);
  if (U_FAILURE(failed) || info.errors != 0 || size <= 0) {
    return client_error(ErrorCode::InvalidArgument,
                        "the host of the image URL is not a valid name: write it in punycode "
                        "(xn--)");
  }
  return std::string(ascii.data(), static_cast<std::size_t>(size));
}

// Returns the URL with its host in ASCII. Blanks and bytes beyond ASCII after the host are
// percent-encoded, as the engine's client does. People paste URLs like that, and libcurl rejects
// blanks.
Result<std::string> encoded(std::string_view url) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  const HostPlace place = host_place(url);
  std::string_view host = url.substr(place.begin, place.end - place.begin);
  std::string text(url.substr(0, place.begin));
  // Programs disagree about the meaning of an escape in a host. The checked host and the requested
  // one could then differ.
  if (host.find('%') != host.npos) return malformed();
  if (is_ascii(host)) {
    text += host;
  } else {
    const std::size_t port = std::min(host.rfind(':'), host.size());
    text += SL_TRY(ascii_host(host.substr(0, port)));
    text += host.substr(port);
  }
  for (const char c : url.substr(place.end)) {
    const auto byte = static_cast<std::uint8_t>(c);
    if (byte != ' ' && byte < 0x80) {
      text += c;
    } else {
      text += {'%', kDigits[byte >> 4U], kDigits[byte & 15U]};
    }
  }
  return text;
}

struct UrlDeleter {
  void operator()(CURLU* url) const { curl_url_cleanup(url); }
};
using Url = std::unique_ptr<CURLU, UrlDeleter>;

std::string part_of(const Url& url, CURLUPart part, unsigned flags = 0) {
  char* text = nullptr;
  if (curl_url_get(url.get(), part, &text, flags) != CURLUE_OK) return {};
  std::string copy(text);
  curl_free(text);
  return copy;
}

}  // namespace

std::string shown_host(std::string_view url) {
  const HostPlace place = host_place(url);
  return std::string(url.substr(place.begin, place.end - place.begin));
}

Bytes address_of_literal(std::string_view text) {
  if (text.starts_with('[') && text.ends_with(']')) text = text.substr(1, text.size() - 2);
  const std::string copy(text);
  Bytes address(16);
  if (inet_pton(AF_INET6, copy.c_str(), address.data()) == 1) return address;
  address.resize(4);
  if (inet_pton(AF_INET, copy.c_str(), address.data()) == 1) return address;
  return {};
}

Result<RemoteUrl> read_remote_url(std::string_view url) {
  // A C string would end at this byte, and the check would see another URL than libcurl.
  if (url.find('\0') != url.npos) return malformed();
  RemoteUrl read;
  read.text = SL_TRY(encoded(url));
  const Url parsed(curl_url());
  if (parsed == nullptr) return out_of_memory();
  if (curl_url_set(parsed.get(), CURLUPART_URL, read.text.c_str(), 0) != CURLUE_OK) {
    return malformed();
  }
  const std::string scheme = part_of(parsed, CURLUPART_SCHEME);
  if (scheme != "http" && scheme != "https") {
    return client_error(ErrorCode::InvalidArgument,
                        "the scheme of the image URL must be http, https or data");
  }
  read.is_https = scheme == "https";
  read.host = part_of(parsed, CURLUPART_HOST);
  std::transform(read.host.begin(), read.host.end(), read.host.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  // The rest of the router compares hosts without brackets and without a final dot.
  if (read.host.starts_with('[')) read.host = read.host.substr(1, read.host.size() - 2);
  if (read.host.ends_with('.')) read.host.pop_back();
  if (read.host.empty()) return malformed();
  const std::string port = part_of(parsed, CURLUPART_PORT, CURLU_DEFAULT_PORT);
  read.port = whole_number<std::uint16_t>(port).value_or(0);
  read.address = address_of_literal(read.host);
  return read;
}

}  // namespace sightline::media
