// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "simulator/core/event_encoder.h"

#include <bit>
#include <charconv>
#include <string>

namespace sightline::core {
namespace {

// The first vLLM 0.N with this field or form.
constexpr int kRankSince = 14;
constexpr int kLoraNameSince = 14;
constexpr int kExtraKeysSince = 17;
constexpr int kMediaOffsetSince = 19;
constexpr int kGroupSince = 20;
constexpr int kSpecKindSince = 22;
constexpr int kMapSince = 24;
constexpr int kReplayTopicSince = 25;
constexpr int kSessionSince = 32;

// Writes MessagePack (msgpack.org specification). Every value has its shortest form, as msgspec
// writes it.
class EventWriter {
 public:
  void nil() { out_.push_back(0xc0); }

  void unsigned_integer(std::uint64_t value) {
    if (value < 0x80) return big_endian(value, 1);
    if (value <= 0xff) return tagged(0xcc, value, 1);
    if (value <= 0xffff) return tagged(0xcd, value, 2);
    if (value <= 0xffffffff) return tagged(0xce, value, 4);
    tagged(0xcf, value, 8);
  }

  void integer(std::int64_t value) {
    const auto bits = static_cast<std::uint64_t>(value);
    if (value >= 0) return unsigned_integer(bits);
    if (value >= -32) return big_endian(bits, 1);
    if (value >= INT8_MIN) return tagged(0xd0, bits, 1);
    if (value >= INT16_MIN) return tagged(0xd1, bits, 2);
    if (value >= INT32_MIN) return tagged(0xd2, bits, 4);
    tagged(0xd3, bits, 8);
  }

  // msgspec writes every Python float in 8 bytes.
  void float64(double value) { tagged(0xcb, std::bit_cast<std::uint64_t>(value), 8); }

  void text(std::string_view value) {
    const std::size_t size = value.size();
    if (size < 32) {
      big_endian(0xa0 | size, 1);
    } else if (size <= 0xff) {
      tagged(0xd9, size, 1);
    } else if (size <= 0xffff) {
      tagged(0xda, size, 2);
    } else {
      tagged(0xdb, size, 4);
    }
    out_.insert(out_.end(), value.begin(), value.end());
  }

  // Only block hashes are binary. They have 32 bytes, so the form with an 8-bit length is enough.
  void binary(ByteView value) {
    tagged(0xc4, value.size(), 1);
    out_.insert(out_.end(), value.begin(), value.end());
  }

  void array(std::size_t count) { container({0x90, 0xdc}, count); }
  void map(std::size_t count) { container({0x80, 0xde}, count); }

  Bytes take() { return std::move(out_); }

 private:
  struct ContainerTags {
    std::uint8_t small;
    std::uint8_t count16;  // the 32-bit form has the next tag
  };
  void container(ContainerTags tags, std::size_t count) {
    if (count < 16) return big_endian(tags.small | count, 1);
    if (count <= 0xffff) return tagged(tags.count16, count, 2);
    tagged(static_cast<std::uint8_t>(tags.count16 + 1), count, 4);
  }
  void tagged(std::uint8_t tag, std::uint64_t value, int bytes) {
    out_.push_back(tag);
    big_endian(value, bytes);
  }
  void big_endian(std::uint64_t value, int bytes) {
    for (int shift = (bytes - 1) * 8; shift >= 0; shift -= 8) {
      out_.push_back(static_cast<std::uint8_t>(value >> static_cast<unsigned>(shift)));
    }
  }

  Bytes out_;
};

class BatchEncoder {
 public:
  explicit BatchEncoder(const EventFormat& format) : format_(format) {}

  Bytes encode(const EventBatch& batch) {
    out_.array(has(kRankSince) ? 3 : 2);
    out_.float64(batch.timestamp_s);
    out_.array(batch.events.size());
    for (const KvEvent& event : batch.events) {
      std::visit([this](const auto& e) { write(e); }, event);
    }
    if (has(kRankSince)) out_.unsigned_integer(batch.rank);
    return out_.take();
  }

 private:
  [[nodiscard]] bool has(int since) const { return format_.minor_version >= since; }

  // Opens an event with this number of fields. In a map the tag is a field too.
  void open(std::string_view type, std::size_t fields) {
    if (has(kMapSince)) {
      out_.map(fields + 1);
      out_.text("type");
    } else {
      out_.array(fields + 1);
    }
    out_.text(type);
  }

  // Arrays have no field names. A reader finds a field by its position.
  void name(std::string_view field) {
    if (has(kMapSince)) out_.text(field);
  }

  void hash(const BlockHash& hash) {
    if (format_.byte_hashes) {
      out_.binary(hash);
    } else {
      out_.unsigned_integer(event_integer(hash));
    }
  }

  void write(const BlockStored& stored) {
    const bool extra_keys = has(kExtraKeysSince) && !stored.hashes.empty();
    // The fields of every release: hashes, parent, tokens, block size, LoRA id and medium.
    std::size_t fields = 6;
    const bool session = has(kSessionSince) && stored.session_id;
    for (const bool present :
         {has(kLoraNameSince), extra_keys, has(kGroupSince), has(kSpecKindSince), session}) {
      fields += present ? 1 : 0;
    }
    open("BlockStored", fields);
    name("block_hashes");
    out_.array(stored.hashes.size());
    for (const BlockHash& h : stored.hashes) hash(h);
    name("parent_block_hash");
    stored.parent ? hash(*stored.parent) : out_.nil();
    name("token_ids");
    out_.array(stored.tokens.size());
    for (const TokenId token : stored.tokens) out_.unsigned_integer(token);
    name("block_size");
    out_.unsigned_integer(stored.block_size);
    name("lora_id");
    stored.lora ? out_.unsigned_integer(stored.lora->id) : out_.nil();
    // Simulated engines cache on the GPU only.
    name("medium");
    out_.text("GPU");
    if (has(kLoraNameSince)) {
      name("lora_name");
      stored.lora ? out_.text(stored.lora->name) : out_.nil();
    }
    if (extra_keys) {
      name("extra_keys");
      out_.array(stored.extra_keys.size());
      for (const ExtraKeys& keys : stored.extra_keys) write(keys);
    }
    write_group(stored.group);
    if (has(kSpecKindSince)) {
      name("kv_cache_spec_kind");
      out_.text(stored.group == CacheGroup::Full ? "full_attention" : "sliding_window");
    }
    if (session) {
      name("session_id");
      out_.text(*stored.session_id);
    }
  }

  void write(const ExtraKeys& keys) {
    if (keys.empty()) return out_.nil();
    out_.array(keys.media.size() + (keys.lora_name ? 1 : 0) + (keys.cache_salt ? 1 : 0));
    if (keys.lora_name) out_.text(*keys.lora_name);
    for (const MediaKey& media : keys.media) {
      if (has(kMediaOffsetSince)) out_.array(2);
      out_.text(media.identifier);
      if (has(kMediaOffsetSince)) out_.integer(media.offset);
    }
    if (keys.cache_salt) out_.text(*keys.cache_salt);
  }

  void write(const BlockRemoved& removed) {
    open("BlockRemoved", has(kGroupSince) ? 3 : 2);
    name("block_hashes");
    out_.array(1);
    hash(removed.hash);
    name("medium");
    out_.text("GPU");
    write_group(removed.group);
  }

  void write(const AllBlocksCleared&) { open("AllBlocksCleared", 0); }

  void write_group(CacheGroup group) {
    if (!has(kGroupSince)) return;
    name("group_idx");
    out_.unsigned_integer(static_cast<std::uint64_t>(group));
  }

  const EventFormat format_;
  EventWriter out_;
};

}  // namespace

Result<EventFormat> parse_event_format(std::string_view text) {
  EventFormat format;
  const std::string_view prefix = "v0.";
  const std::string_view digits =
      text.substr(0, prefix.size()) == prefix ? text.substr(prefix.size()) : "";
  const auto [end, failure] =
      std::from_chars(digits.data(), digits.data() + digits.size(), format.minor_version);
  const bool whole = failure == std::errc() && end == digits.data() + digits.size();
  if (!whole || format.minor_version < kEventVersionMin ||
      format.minor_version > kEventVersionMax) {
    return client_error(ErrorCode::InvalidArgument,
                        "event encoding \"" + std::string(text) + "\" is not one of v0." +
                            std::to_string(kEventVersionMin) + " … v0." +
                            std::to_string(kEventVersionMax));
  }
  return format;
}

bool replays_topic(const EventFormat& format) { return format.minor_version >= kReplayTopicSince; }

bool tells_group_kinds(const EventFormat& format) { return format.minor_version >= kSpecKindSince; }

Bytes encode(const EventBatch& batch, const EventFormat& format) {
  return BatchEncoder(format).encode(batch);
}

}  // namespace sightline::core
