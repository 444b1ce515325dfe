// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/base/base64.h"

#include <cstddef>

#include "common/base/digits.h"

namespace sightline {
namespace {

constexpr std::string_view kDigits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

std::string to_base64(ByteView bytes) {
  std::string text = to_digits(bytes, kDigits);
  while (text.size() % 4 != 0) text += '=';
  return text;
}

std::optional<std::string> from_base64(std::string_view text) {
  std::string digits(text);
  // A kubeconfig may break long base64 into lines.
  std::erase_if(digits, [](char c) { return c == '\n' || c == '\r'; });
  if (digits.size() % 4 != 0) return std::nullopt;
  const std::size_t length = digits.find_last_not_of('=') + 1;
  // At most two `=` may pad the last group.
  if (digits.size() - length > 2) return std::nullopt;
  digits.resize(length);
  const auto bytes = from_digits(digits, kDigits);
  if (!bytes) return std::nullopt;
  return std::string(bytes->begin(), bytes->end());
}

}  // namespace sightline
