// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/bytes.h"
#include "common/base/result.h"

namespace sightline::media {

// An http or https URL in the form in which the router requests it.
struct RemoteUrl {
  // The whole URL, in ASCII.
  std::string text;
  // In lower case and without a final dot. An IPv6 address has no brackets.
  std::string host;
  // The port of the URL, or the scheme's default port.
  std::uint16_t port = 0;
  bool is_https = false;
  // The address if the host is an IP address, 4 or 16 bytes in network order. Otherwise empty.
  Bytes address;

  // "host:port", by which downloads of one host are counted.
  [[nodiscard]] std::string authority() const { return host + ':' + std::to_string(port); }
};

// Reads a URL as browsers and the engine's client do. A host name with other letters gets its xn--
// form (UTS #46, non-transitional). Every notation of an IPv4 address, for example "0x7f.1", gets
// its four numbers. Blanks and bytes beyond ASCII after the host are percent-encoded.
//
// Errors: InvalidArgument, blamed on the client, and out_of_memory().
Result<RemoteUrl> read_remote_url(std::string_view url);

// Returns the host as the client wrote it, without credentials. Errors say no more than this about
// a URL, because paths and credentials may be secret.
std::string shown_host(std::string_view url);

// Returns the bytes of a written IP address, with or without brackets. Empty for a name.
Bytes address_of_literal(std::string_view text);

}  // namespace sightline::media
