// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/http/header_rules.h"

#include <algorithm>
#include <cstddef>

namespace sightline::http {
namespace {

constexpr std::string_view kCrlf = "\r\n";
constexpr std::size_t kPortDigitsMax = 5;
constexpr std::string_view kNameSigns = "-._~!$&'()*+,;=%";
constexpr std::string_view kAddressSigns = ":.-_~%";  // within brackets, perhaps with a zone

bool is_letter_or_digit(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool consists_of(std::string_view text, std::string_view signs) {
  return std::all_of(text.begin(), text.end(), [signs](char c) {
    return is_letter_or_digit(c) || signs.find(c) != signs.npos;
  });
}

// True for no text, or for a colon with a port.
bool is_port_part(std::string_view text) {
  if (text.empty()) return true;
  if (text.front() != ':' || text.size() > 1 + kPortDigitsMax) return false;
  return text.find_first_not_of("0123456789", 1) == text.npos;
}

}  // namespace

bool is_host_value(std::string_view value) {
  if (!value.starts_with('[')) {
    const auto host = value.substr(0, value.find(':'));
    return consists_of(host, kNameSigns) && is_port_part(value.substr(host.size()));
  }
  const auto end = value.find(']');
  if (end == value.npos || end == 1) return false;
  return consists_of(value.substr(1, end - 1), kAddressSigns) &&
         is_port_part(value.substr(end + 1));
}

bool has_folded_line(std::string_view header) {
  // A blank after a line end continues the line. Another reader might start a new field there.
  for (auto end = header.find(kCrlf); end != header.npos; end = header.find(kCrlf, end + 1)) {
    const auto next = header.substr(end + kCrlf.size());
    if (next.starts_with(' ') || next.starts_with('\t')) return true;
  }
  return false;
}

}  // namespace sightline::http
