// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <bit>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/bytes.h"

// Writes msgpack for tests. Each function returns the bytes of one value.
namespace sightline::pack {

using Value = std::string;

// The head of a value whose length has four bytes, big-endian.
inline Value sized(std::uint8_t tag, std::uint32_t size) {
  Value out(1, static_cast<char>(tag));
  for (int shift = 24; shift >= 0; shift -= 8) out.push_back(static_cast<char>(size >> shift));
  return out;
}
inline Value nil() { return "\xc0"; }
// Numbers always have the widest form, of eight bytes.
inline Value integer(std::uint64_t value) {
  Value out("\xcf");
  for (int shift = 56; shift >= 0; shift -= 8) out.push_back(static_cast<char>(value >> shift));
  return out;
}
inline Value negative(std::int64_t value) {
  auto out = integer(static_cast<std::uint64_t>(value));
  out[0] = '\xd3';
  return out;
}
inline Value number(double value) {
  auto out = integer(std::bit_cast<std::uint64_t>(value));
  out[0] = '\xcb';
  return out;
}
inline Value text(std::string_view value) {
  return sized(0xdb, static_cast<std::uint32_t>(value.size())) + std::string(value);
}
inline Value binary(std::string_view value) {
  return sized(0xc6, static_cast<std::uint32_t>(value.size())) + std::string(value);
}
inline Value array(const std::vector<Value>& items) {
  auto out = sized(0xdd, static_cast<std::uint32_t>(items.size()));
  for (const auto& item : items) out += item;
  return out;
}
inline Value integers(const std::vector<std::uint64_t>& values) {
  std::vector<Value> items;
  for (const auto value : values) items.push_back(integer(value));
  return array(items);
}
inline Value map(const std::vector<std::pair<std::string, Value>>& fields) {
  auto out = sized(0xdf, static_cast<std::uint32_t>(fields.size()));
  for (const auto& [name, value] : fields) out += text(name) + value;
  return out;
}
// A batch of rank 0.
inline Bytes batch(const std::vector<Value>& events, double timestamp_s = 1.5) {
  const auto whole = array({number(timestamp_s), array(events), integer(0)});
  return {whole.begin(), whole.end()};
}
// A plain BlockStored in the form of a map.
inline Value stored(const std::vector<std::uint64_t>& hashes, const Value& parent,
                    const std::vector<std::uint64_t>& tokens, std::uint64_t block_size = 1) {
  return map({{"type", text("BlockStored")},
              {"block_hashes", integers(hashes)},
              {"parent_block_hash", parent},
              {"token_ids", integers(tokens)},
              {"block_size", integer(block_size)},
              {"lora_id", nil()},
              {"medium", text("GPU")},
              {"lora_name", nil()}});
}
inline Value removed(const std::vector<std::uint64_t>& hashes) {
  return map({{"type", text("BlockRemoved")}, {"block_hashes", integers(hashes)}});
}
inline Value cleared() { return map({{"type", text("AllBlocksCleared")}}); }

}  // namespace sightline::pack
