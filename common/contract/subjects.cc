// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/contract/subjects.h"

#include "common/base/bytes.h"

namespace sightline::contract {
namespace {

constexpr std::string_view kHex = "0123456789ABCDEF";
constexpr std::size_t kDigestBytes = 2 + 16;  // "%-" and 16 digits

bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-' || c == ':';
}

// FNV-1a, 64 bits.
std::uint64_t digest(std::string_view text) {
  std::uint64_t value = 0xcbf29ce484222325ULL;
  for (const char c : text) value = (value ^ static_cast<std::uint8_t>(c)) * 0x100000001b3ULL;
  return value;
}

}  // namespace

std::string subject_token(std::string_view name) {
  if (name.empty()) return "%";
  std::string token;
  std::size_t cut = 0;  // the longest part of the token that leaves room for a digest
  for (const char c : name) {
    if (token.size() <= kSubjectTokenBytesMax - kDigestBytes) cut = token.size();
    if (token.size() > kSubjectTokenBytesMax) break;
    if (is_plain(c)) {
      token += c;
    } else {
      const auto byte = static_cast<std::uint8_t>(c);
      token += '%';
      token += kHex[byte >> 4U];
      token += kHex[byte & 15U];
    }
  }
  if (token.size() <= kSubjectTokenBytesMax) return token;
  // The cut is between two characters of the name, never within an escape.
  token.resize(cut);
  token += "%-";  // a whole token never contains this
  const std::uint64_t value = digest(name);
  for (unsigned shift = 64; shift > 0; shift -= 4) token += kHex[(value >> (shift - 4)) & 15U];
  return token;
}

Subjects::Subjects(std::string_view scope, std::string_view revision) {
  const std::size_t slash = scope.find('/');
  const std::string_view name =
      slash == std::string_view::npos ? std::string_view() : scope.substr(slash + 1);
  scope_prefix_ = "sl." + subject_token(scope.substr(0, slash)) + "." + subject_token(name) + ".";
  prefix_ = scope_prefix_ + subject_token(revision) + ".";
}

std::string Subjects::events(std::string_view worker, std::uint32_t rank) const {
  return prefix_ + "kv." + subject_token(worker) + "." + std::to_string(rank);
}

std::string Subjects::asks(std::string_view worker, std::uint32_t rank) const {
  return prefix_ + "ask." + subject_token(worker) + "." + std::to_string(rank);
}

std::string Subjects::replies(std::string_view reader) const {
  return prefix_ + "to." + subject_token(reader);
}

std::string Subjects::returns(std::string_view reader) const {
  return prefix_ + "returns." + subject_token(reader);
}

std::string Subjects::lists(std::uint64_t instance) const {
  return prefix_ + "lists." + to_hex(instance);
}

}  // namespace sightline::contract
