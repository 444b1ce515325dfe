// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace sightline {

// Returns `HOST:PORT` as a URL writes it (RFC 3986 section 3.2). An IPv6 address gets brackets,
// unless it has them: without brackets, its colons would hide where the port begins. `host` is a
// name or an address. Pure.
inline std::string authority(std::string_view host, std::uint16_t port) {
  const bool is_bare_v6 = host.find(':') != host.npos && !host.starts_with('[');
  std::string text(host);
  if (is_bare_v6) text = "[" + text + "]";
  return text + ":" + std::to_string(port);
}

}  // namespace sightline
