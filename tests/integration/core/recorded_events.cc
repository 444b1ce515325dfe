// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "tests/integration/core/recorded_events.h"

#include <algorithm>
#include <bit>
#include <string>

#include "common/base/check.h"

namespace sightline::core {
namespace {

// The part of MessagePack that an event needs.
class Reader {
 public:
  explicit Reader(ByteView bytes) : bytes_(bytes) {}

  bool nil() {
    if (bytes_[at_] != 0xc0) return false;
    ++at_;
    return true;
  }
  bool is_text() const { return (bytes_[at_] & 0xe0U) == 0xa0 || (bytes_[at_] & 0xfeU) == 0xd8; }
  bool is_binary() const { return bytes_[at_] == 0xc4; }

  double float64() {
    SL_CHECK(take() == 0xcb);
    return std::bit_cast<double>(number(8));
  }
  std::int64_t integer() {
    const std::uint8_t tag = take();
    if (tag < 0x80) return tag;
    if (tag >= 0xe0) return static_cast<std::int8_t>(tag);
    if (tag >= 0xcc && tag <= 0xcf) return static_cast<std::int64_t>(number(1U << (tag - 0xcc)));
    if (tag == 0xd0) return static_cast<std::int8_t>(number(1));
    SL_CHECK(tag == 0xd1);
    return static_cast<std::int16_t>(number(2));
  }
  std::string text() {
    const std::uint8_t tag = take();
    const std::size_t size = tag == 0xd9 ? number(1) : (tag == 0xda ? number(2) : tag & 0x1fU);
    return std::string(text_of(block(size)));
  }
  Bytes binary() {
    SL_CHECK(take() == 0xc4);
    const ByteView content = block(number(1));
    return {content.begin(), content.end()};
  }
  std::size_t count(std::uint8_t small, std::uint8_t count16) {
    const std::uint8_t tag = take();
    if ((tag & 0xf0U) == small) return tag & 0x0fU;
    SL_CHECK(tag == count16);
    return number(2);
  }
  std::size_t array() { return count(0x90, 0xdc); }
  std::size_t map() { return count(0x80, 0xde); }

 private:
  std::uint8_t take() { return block(1)[0]; }
  std::uint64_t number(std::size_t bytes) {
    std::uint64_t value = 0;
    for (const std::uint8_t byte : block(bytes)) value = (value << 8U) | byte;
    return value;
  }
  ByteView block(std::size_t size) {
    SL_CHECK(bytes_.size() - at_ >= size);
    at_ += size;
    return bytes_.subspan(at_ - size, size);
  }

  ByteView bytes_;
  std::size_t at_ = 0;
};

class BatchReader {
 public:
  explicit BatchReader(ByteView payload) : reader_(payload) {}

  RecordedBatch read() {
    SL_CHECK(reader_.array() == 3);
    batch_.timestamp_s = reader_.float64();
    const std::size_t events = reader_.array();
    for (std::size_t i = 0; i < events; ++i) batch_.events.push_back(event());
    SL_CHECK(reader_.integer() == 0);
    return std::move(batch_);
  }

 private:
  KvEvent event() {
    const std::size_t fields = reader_.map();
    SL_CHECK(reader_.text() == "type");
    const std::string type = reader_.text();
    if (type == "AllBlocksCleared") return AllBlocksCleared{};
    BlockStored stored;
    for (std::size_t i = 1; i < fields; ++i) field(reader_.text(), stored);
    if (type == "BlockStored") return stored;
    SL_CHECK(type == "BlockRemoved" && stored.hashes.size() == 1);
    return BlockRemoved{stored.hashes[0]};
  }

  void field(const std::string& name, BlockStored& stored) {
    if (name == "block_hashes") {
      stored.hashes.resize(reader_.array());
      for (auto& h : stored.hashes) h = hash();
    } else if (name == "parent_block_hash") {
      if (!reader_.nil()) stored.parent = hash();
    } else if (name == "token_ids") {
      stored.tokens.resize(reader_.array());
      for (auto& token : stored.tokens) token = static_cast<TokenId>(reader_.integer());
    } else if (name == "block_size") {
      stored.block_size = static_cast<std::uint32_t>(reader_.integer());
    } else if (name == "lora_id") {
      if (!reader_.nil()) stored.lora = Lora{"", static_cast<std::uint32_t>(reader_.integer())};
    } else if (name == "lora_name") {
      if (!reader_.nil()) stored.lora->name = reader_.text();
    } else if (name == "extra_keys") {
      stored.extra_keys.resize(reader_.array());
      for (auto& keys : stored.extra_keys) keys = extra_keys(stored.lora.has_value());
    } else if (name == "session_id") {
      stored.session_id = reader_.text();
    } else {
      fixed_field(name);
    }
  }

  void fixed_field(const std::string& name) {
    if (name == "medium") {
      SL_CHECK(reader_.text() == "GPU");
    } else if (name == "group_idx") {
      SL_CHECK(reader_.integer() == 0);
    } else {
      SL_CHECK(name == "kv_cache_spec_kind" && reader_.text() == "full_attention");
    }
  }

  ExtraKeys extra_keys(bool lora) {
    ExtraKeys keys;
    if (reader_.nil()) return keys;
    const std::size_t count = reader_.array();
    for (std::size_t i = 0; i < count; ++i) {
      if (!reader_.is_text()) {
        SL_CHECK(reader_.array() == 2);
        const std::string identifier = reader_.text();
        keys.media.push_back({identifier, reader_.integer()});
      } else if (lora && i == 0) {
        keys.lora_name = reader_.text();
      } else {
        keys.cache_salt = reader_.text();
      }
    }
    return keys;
  }

  BlockHash hash() {
    BlockHash hash{};
    if (reader_.is_binary()) {
      batch_.byte_hashes = true;
      const Bytes bytes = reader_.binary();
      SL_CHECK(bytes.size() == hash.size());
      std::copy(bytes.begin(), bytes.end(), hash.begin());
    } else {
      store_be64(hash.data() + 24, static_cast<std::uint64_t>(reader_.integer()));
    }
    return hash;
  }

  Reader reader_;
  RecordedBatch batch_;
};

}  // namespace

RecordedBatch read_recorded(ByteView payload) { return BatchReader(payload).read(); }

}  // namespace sightline::core
