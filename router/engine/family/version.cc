// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/engine/family/version.h"

#include <algorithm>

namespace sightline::family {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_local(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' || c == '-' ||
         c == '_';
}

// Reads a version from its beginning. Each method returns false or empty if its part is missing.
class Cursor {
 public:
  explicit Cursor(std::string_view text) : rest_(text) {}

  bool literal(std::string_view text) {
    if (!rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }

  std::optional<std::uint32_t> number() {
    const auto end = std::find_if_not(rest_.begin(), rest_.end(), is_digit);
    const auto digits = rest_.substr(0, static_cast<std::size_t>(end - rest_.begin()));
    if (digits.empty()) return std::nullopt;
    std::uint32_t value = 0;
    for (const char digit : digits) {
      value = value * 10 + static_cast<std::uint32_t>(digit - '0');
      // The limit also keeps the value from overflowing.
      if (value > kVersionNumberMax) return std::nullopt;
    }
    rest_.remove_prefix(digits.size());
    return value;
  }

  // Reads a word with its number, for example "rc1". False if another word follows. Empty if the
  // word has no number.
  std::optional<bool> counted(std::string_view word) {
    if (!literal(word)) return false;
    if (!number()) return std::nullopt;
    return true;
  }

  [[nodiscard]] std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
};

}  // namespace

std::optional<Version> parse_version(std::string_view text) {
  if (text.size() > kVersionBytesMax) return std::nullopt;
  Cursor cursor(text);
  Version version{.text = std::string(text), .is_release = true};
  const auto major = cursor.number();
  if (!major || !cursor.literal(".")) return std::nullopt;
  const auto minor = cursor.number();
  if (!minor || !cursor.literal(".")) return std::nullopt;
  const auto patch = cursor.number();
  if (!patch) return std::nullopt;
  version.major = *major;
  version.minor = *minor;
  version.patch = *patch;
  // Marks of a version in their order (PEP 440). A post-release is a release.
  for (const std::string_view word : {"a", "b", "rc", ".post", ".dev"}) {
    const auto found = cursor.counted(word);
    if (!found) return std::nullopt;
    if (*found && word != ".post") version.is_release = false;
  }
  if (cursor.literal("+")) {
    const auto local = cursor.rest();
    const bool is_good = !local.empty() && std::all_of(local.begin(), local.end(), is_local);
    return is_good ? std::optional(version) : std::nullopt;
  }
  return cursor.rest().empty() ? std::optional(version) : std::nullopt;
}

}  // namespace sightline::family
