// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/admin_port/target.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace sightline::admin_port {

Result<std::string> decode_escapes(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    const auto digits = text.substr(i + 1, 2);
    std::uint8_t byte = 0;
    const auto end = digits.data() + digits.size();
    const bool is_number = std::from_chars(digits.data(), end, byte, 16).ptr == end;
    if (digits.size() != 2 || !is_number) {
      return client_error(ErrorCode::InvalidArgument,
                          "malformed escape in the request's path or query");
    }
    out += static_cast<char>(byte);
    i += digits.size();
  }
  return out;
}

Result<Query> decode_query(std::string_view query) {
  Query decoded;
  while (!query.empty()) {
    const std::string_view part = query.substr(0, query.find('&'));
    const std::size_t equals = std::min(part.find('='), part.size());
    auto name = SL_TRY(decode_escapes(part.substr(0, equals)));
    // A part without '=' has no value behind it.
    auto value = SL_TRY(decode_escapes(part.substr(std::min(equals + 1, part.size()))));
    decoded[std::move(name)].push_back(std::move(value));
    query.remove_prefix(std::min(part.size() + 1, query.size()));
  }
  return decoded;
}

}  // namespace sightline::admin_port
