// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/contract/identity_key.h"

#include <algorithm>
#include <string>

#include "common/base/bytes.h"

namespace sightline::contract {
namespace {

constexpr std::string_view kDevelopmentText = "sightline-development-key-000001";
static_assert(kDevelopmentText.size() == IdentityKey::kBytes);

IdentityKey key_of(ByteView bytes) {
  IdentityKey key;
  std::copy(bytes.begin(), bytes.end(), key.bytes.begin());
  return key;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

}  // namespace

IdentityKey development_identity_key() { return key_of(bytes_of(kDevelopmentText)); }

Result<IdentityKey> parse_identity_key(std::string_view file_content) {
  // Not trimmed, because raw bytes may look like blanks.
  if (file_content.size() == IdentityKey::kBytes) return key_of(bytes_of(file_content));
  const auto decoded = from_hex(trimmed(file_content));
  if (decoded && decoded->size() == IdentityKey::kBytes) return key_of(*decoded);
  return client_error(ErrorCode::InvalidArgument,
                      "the identity key file must hold 32 raw bytes or 64 hexadecimal digits. "
                      "Create one with: head -c 32 /dev/urandom > FILE");
}

}  // namespace sightline::contract
