// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/front/selection_json/keys_text.h"

#include <algorithm>
#include <cstdint>

#include "common/base/bytes.h"

#include "router/prompt/media/base64_bytes.h"

namespace sightline::selection_json {
namespace {

constexpr std::string_view kDigits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

std::string write_keys(std::span<const keys::BlockKey> keys) {
  Bytes bytes(keys.size() * 8);
  for (std::size_t i = 0; i < keys.size(); ++i) store_le64(bytes.data() + i * 8, keys[i].value);
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t group = 0;
    for (std::size_t j = 0; j < 3; ++j) group = group << 8U | (j < count ? bytes[i + j] : 0U);
    // A group of 3 bytes gives 4 digits. A last group of 1 or 2 bytes is filled with "=".
    for (std::size_t j = 0; j < 4; ++j) {
      text += j <= count ? kDigits[(group >> (18U - 6U * j)) & 63U] : '=';
    }
  }
  return text;
}

Result<std::vector<keys::BlockKey>> read_keys(std::string_view text, std::size_t count_max) {
  // The size is checked before the memory is allocated.
  if (text.size() > (count_max * 8 + 2) / 3 * 4) {
    return client_error(ErrorCode::InvalidArgument,
                        "more than " + std::to_string(count_max) + " keys");
  }
  Bytes bytes(media::base64_bytes_max(text.size()));
  const std::size_t size = SL_TRY(media::decode_base64(text, bytes));
  if (size % 8 != 0) {
    return client_error(ErrorCode::InvalidArgument, "the size must be a multiple of 8 bytes");
  }
  std::vector<keys::BlockKey> keys;
  keys.reserve(size / 8);
  for (std::size_t i = 0; i < size; i += 8) keys.push_back({load_le64(bytes.data() + i)});
  return keys;
}

}  // namespace sightline::selection_json
