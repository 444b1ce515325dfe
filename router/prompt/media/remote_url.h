// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/bytes.h"
#include "common/base/result.h"

namespace sightline::media {

// An http or https URL as it is asked for.
struct RemoteUrl {
  std::string text;        // in ASCII
  std::string host;        // in lower case, an IPv6 address without brackets
  std::uint16_t port = 0;  // the scheme's where the URL names none
  bool is_https = false;
  Bytes address;  // of a host that is an IP address, 4 or 16 bytes, else empty

  [[nodiscard]] std::string authority() const { return host + ':' + std::to_string(port); }
};

// Reads a URL as browsers and the engine's client do: a name in other letters becomes its xn-- form
// (UTS #46, not transitional), every notation of an IPv4 address its four numbers ("0x7f.1");
// blanks and bytes beyond ASCII behind the host are percent-encoded.
// Errors: InvalidArgument, blamed on the client.
Result<RemoteUrl> read_remote_url(std::string_view url);

// The host as the client wrote it, without credentials: all that an error may say about a URL.
std::string shown_host(std::string_view url);

// The bytes of an IP address as it is written, in brackets or not; none for a name.
Bytes address_of_literal(std::string_view text);

}  // namespace sightline::media
