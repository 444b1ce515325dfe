// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace sightline {

// "HOST:PORT" as it stands in a URL (RFC 3986 section 3.2): an IPv6 address has brackets. The host
// is a name or an address, with or without brackets. Pure.
inline std::string authority(std::string_view host, std::uint16_t port) {
  const bool is_bare_v6 = host.find(':') != host.npos && !host.starts_with('[');
  std::string text(host);
  if (is_bare_v6) text = "[" + text + "]";
  return text + ":" + std::to_string(port);
}

}  // namespace sightline
