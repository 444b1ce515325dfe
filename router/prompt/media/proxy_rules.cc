// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/prompt/media/proxy_rules.h"

#include <algorithm>
#include <optional>

#include "common/base/bytes.h"
#include "common/base/number.h"

namespace sightline::media {
namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return out;
}

// Returns whether two addresses have the same leading bits. An IPv4 address is never in a range of
// IPv6.
bool begins_alike(ByteView a, ByteView b, std::uint32_t bits) {
  if (a.size() != b.size() || bits > a.size() * 8) return false;
  for (std::size_t bit = 0; bit < bits; ++bit) {
    const unsigned shift = 7 - bit % 8;
    if (((a[bit / 8] ^ b[bit / 8]) >> shift & 1U) != 0) return false;
  }
  return true;
}

bool is_in_range(const RemoteUrl& url, std::string_view range) {
  const std::size_t slash = range.find('/');
  const auto bits = whole_number(range.substr(slash + 1));
  const Bytes first = address_of_literal(range.substr(0, slash));
  return bits && !first.empty() && begins_alike(url.address, first, *bits);
}

// Returns whether an entry of the list matches the host of the URL.
bool covers(std::string_view entry, const RemoteUrl& url) {
  if (entry == "*") return true;
  if (entry.find('/') != entry.npos) return is_in_range(url, entry);
  // The address is compared in bytes. "::1" and "0:0:0:0:0:0:0:1" are then equal.
  const Bytes address = address_of_literal(entry);
  if (!address.empty()) return address == url.address;
  // An entry may end with a port. An IPv6 address without a port has already matched above.
  const std::size_t colon = entry.rfind(':');
  if (colon != entry.npos) {
    if (entry.substr(colon + 1) != std::to_string(url.port)) return false;
    entry = entry.substr(0, colon);
    const Bytes with_port = address_of_literal(entry);
    if (!with_port.empty()) return with_port == url.address;
  }
  // A leading "." or "*." means the same as no prefix: the name and all names below it.
  if (entry.starts_with('*')) entry.remove_prefix(1);
  if (entry.starts_with('.')) entry.remove_prefix(1);
  if (entry.empty() || !url.host.ends_with(entry)) return false;
  // "example.com" matches "a.example.com", but not "badexample.com".
  return url.host.size() == entry.size() || url.host[url.host.size() - entry.size() - 1] == '.';
}

}  // namespace

std::string_view ProxyRules::proxy_for(const RemoteUrl& url) const {
  const bool is_exempt = std::any_of(exempt.begin(), exempt.end(),
                                     [&](const std::string& entry) { return covers(entry, url); });
  if (is_exempt) return {};
  return url.is_https ? https : http;
}

ProxyRules proxies_of_environment(const std::function<std::string(const char* name)>& get) {
  const auto either = [&](const char* small, const char* capital) {
    const std::string first = get(small);
    return first.empty() ? get(capital) : first;
  };
  const std::string all = either("all_proxy", "ALL_PROXY");
  ProxyRules rules{.http = either("http_proxy", "HTTP_PROXY"),
                   .https = either("https_proxy", "HTTPS_PROXY"),
                   .exempt = {}};
  if (rules.http.empty()) rules.http = all;
  if (rules.https.empty()) rules.https = all;
  const std::string list = lower(either("no_proxy", "NO_PROXY"));
  constexpr std::string_view kBetween = ", \t";
  for (std::size_t at = 0; at < list.size();) {
    const std::size_t begin = list.find_first_not_of(kBetween, at);
    if (begin == list.npos) break;
    const std::size_t end = std::min(list.find_first_of(kBetween, begin), list.size());
    rules.exempt.push_back(list.substr(begin, end - begin));
    at = end;
  }
  return rules;
}

}  // namespace sightline::media
