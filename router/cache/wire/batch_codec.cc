// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/cache/wire/batch_codec.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>
#include <utility>

#include "router/cache/wire/msgpack.h"

namespace sightline::wire {
namespace {

using Kind = MsgpackReader::Kind;

// Fields of a store by their place in the array form of vLLM. In the map form they have names.
constexpr std::array<std::string_view, 15> kStoredFields = {"block_hashes",
                                                            "parent_block_hash",
                                                            "token_ids",
                                                            "block_size",
                                                            "lora_id",
                                                            "medium",
                                                            "lora_name",
                                                            "extra_keys",
                                                            "group_idx",
                                                            "kv_cache_spec_kind",
                                                            "kv_cache_spec_sliding_window",
                                                            "locality",
                                                            "ownership",
                                                            "session_id",
                                                            "cache_salt"};
constexpr std::size_t kPlaces = 14;    // places in the array form, for the first of these
constexpr std::size_t kNamedFrom = 6;  // From here on, a map of named fields may follow there.
// Parts of the names of fields that may distinguish one content from another.
constexpr std::array<std::string_view, 18> kContentNames = {
    "salt",  "key",   "lora",   "adapter", "mm_",    "modal",     "media",  "image", "video",
    "audio", "embed", "digest", "content", "prompt", "namespace", "tenant", "token", "hash"};
constexpr std::array<std::string_view, 5> kRemovedFields = {"block_hashes", "medium", "group_idx",
                                                            "locality", "remaining_copy_counts"};

// The bytes of each field's value. Empty for a field that the event does not have.
template <std::size_t kCount>
using Fields = std::array<ByteView, kCount>;

// One event, split into type and fields. The fields are not read.
struct RawEvent {
  std::string_view type;
  bool map = false;
  MsgpackReader body;     // at the first field
  std::size_t count = 0;  // fields that follow
};

// How much the remaining events of the batch may hold together.
struct Quota {
  std::size_t blocks = kBlocksPerBatchMax;
  std::size_t tokens = kTokensPerBatchMax;
  std::size_t extras = kExtrasPerBatchMax;
  bool exceeded = false;

  bool spend(std::size_t Quota::*part, std::size_t count) {
    if (count > this->*part) exceeded = true;
    if (exceeded) return false;
    this->*part -= count;
    return true;
  }
};

bool is_absent(ByteView field) { return field.empty() || MsgpackReader(field).peek() == Kind::Nil; }

void note_unknown_field(std::string_view name, ByteView value, BlockStored& event) {
  if (name == "type" || is_empty_value(value, kNestingMax)) return;
  event.unknown_field = true;
  event.unclear |=
      std::any_of(kContentNames.begin(), kContentNames.end(),
                  [&](std::string_view part) { return name.find(part) != std::string_view::npos; });
}

// If `store` is given, records the fields that are not in `names` there.
template <std::size_t kCount>
bool read_fields(RawEvent event, const std::array<std::string_view, kCount>& names,
                 Fields<kCount>& fields, BlockStored* store = nullptr) {
  const std::size_t places = event.map ? kCount : std::min(kCount, kPlaces);
  for (std::size_t i = 0; i < event.count; ++i) {
    auto place = i;
    const auto name = event.map ? event.body.text() : std::string_view();
    if (!name) return false;
    if (event.map) {
      place =
          static_cast<std::size_t>(std::find(names.begin(), names.end(), *name) - names.begin());
    }
    const auto value = event.body.skip(kNestingMax);
    if (!value) return false;
    RawEvent named{.type = {}, .map = true, .body = MsgpackReader(*value)};
    if (store != nullptr && !event.map && i >= kNamedFrom && named.body.peek() == Kind::Map) {
      named.count = named.body.map().value_or(0);
      if (!read_fields(named, names, fields, store)) return false;
    } else if (place < places) {
      fields[place] = *value;
    } else if (store != nullptr && event.map) {
      note_unknown_field(*name, *value, *store);
    }
  }
  return true;
}

std::optional<EngineHash> read_hash(MsgpackReader& reader) {
  if (reader.peek() == Kind::Binary) {
    const auto bytes = reader.binary();
    if (!bytes) return std::nullopt;
    const auto hash = keys::identifier_hash(text_of(*bytes));
    return EngineHash{.low = hash.low, .high = hash.high};
  }
  const auto value = reader.integer();
  if (!value) return std::nullopt;
  return EngineHash{.low = value->bits, .high = value->negative ? 2U : 1U};
}

bool read_hashes(ByteView field, std::vector<EngineHash>& hashes, Quota& budget) {
  MsgpackReader reader(field);
  const auto count = reader.array();
  if (!count || !budget.spend(&Quota::blocks, *count)) return false;
  hashes.reserve(*count);
  for (std::size_t i = 0; i < *count; ++i) {
    const auto hash = read_hash(reader);
    if (!hash) return false;
    hashes.push_back(*hash);
  }
  return true;
}

std::int64_t token_of(MsgpackInteger value) {
  constexpr auto kLargest = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (!value.negative && value.bits > kLargest) return -1;
  return static_cast<std::int64_t>(value.bits);
}

// Reads a token, or a pair of neighbours and returns the first of them.
std::optional<MsgpackInteger> read_token(MsgpackReader& reader, bool paired) {
  if (!paired) return reader.integer();
  if (reader.array() != 2U) return std::nullopt;
  const auto first = reader.integer();
  return reader.integer() ? first : std::nullopt;
}

bool read_tokens(ByteView field, BlockStored& event, Quota& budget) {
  MsgpackReader reader(field);
  const auto count = reader.array();
  if (!count || *count > kTokensPerEventMax) return false;
  if (!budget.spend(&Quota::tokens, *count)) return false;
  event.tokens.reserve(*count);
  event.paired = reader.peek() == Kind::Array;
  for (std::size_t i = 0; i < *count; ++i) {
    const auto value = read_token(reader, event.paired);
    if (!value) return false;
    event.tokens.push_back(token_of(*value));
  }
  return true;
}

std::optional<std::string> read_text(MsgpackReader& reader) {
  const auto text = reader.text();
  if (!text || text->size() > kTextBytesMax) return std::nullopt;
  return std::string(*text);
}

// Only a text can be the salt of a request.
bool read_salt(ByteView field, BlockStored& event) {
  if (is_absent(field)) return true;
  MsgpackReader reader(field);
  event.unclear |= reader.peek() != Kind::Text;
  if (event.unclear) return true;
  event.cache_salt = read_text(reader);
  return event.cache_salt.has_value();
}

// GPU is vLLM's default. vLLM before August 2026 has FS and OBJ. SGLang has the other names.
std::optional<operations::Tier> tier_of(ByteView field) {
  if (is_absent(field)) return operations::Tier::Gpu;
  const auto medium = MsgpackReader(field).text();
  if (!medium) return std::nullopt;
  if (*medium == "GPU") return operations::Tier::Gpu;
  if (*medium == "CPU" || *medium == "CPU_PINNED") return operations::Tier::Cpu;
  for (const std::string_view name : {"STORAGE", "FS", "OBJ", "DISK", "EXTERNAL"}) {
    if (*medium == name) return operations::Tier::Storage;
  }
  return std::nullopt;
}

SpecKind kind_of(ByteView field) {
  if (is_absent(field)) return SpecKind::Unstated;
  const auto kind = MsgpackReader(field).text();
  if (kind == "full_attention") return SpecKind::Full;
  if (kind == "mla_attention") return SpecKind::Mla;
  return SpecKind::Other;
}

bool is_remote(ByteView field) {
  return !is_absent(field) && MsgpackReader(field).text() == "REMOTE";
}

bool read_group(ByteView field, std::optional<std::int64_t>& group) {
  if (is_absent(field)) return true;
  const auto value = MsgpackReader(field).integer();
  if (!value) return false;
  group = token_of(*value);
  return true;
}

// Reads a pair [identifier, offset]. The content of any other array is unknown: opaque.
bool read_pair(MsgpackReader& reader, BlockExtra& extra) {
  const auto bytes = reader.skip(kNestingMax);
  if (!bytes) return false;
  MsgpackReader pair(*bytes);
  if (pair.array() != 2U) {
    extra.opaque = true;
    return true;
  }
  const auto identifier = pair.text();
  const auto offset = identifier ? pair.integer() : std::nullopt;
  const bool fits = offset && (offset->negative || token_of(*offset) >= 0);
  if (!fits || !pair.at_end()) {
    extra.opaque = true;
    return true;
  }
  extra.media.push_back({.id = keys::identifier_hash(*identifier), .offset = token_of(*offset)});
  return true;
}

// Reads the extra keys of one block: LoRA name, then media, salt, embeds (vLLM 0.17 to 0.32).
bool read_extra(MsgpackReader& reader, const std::optional<std::string>& lora, BlockExtra& extra,
                Quota& budget) {
  if (reader.nil()) return true;
  const auto count = reader.array();
  if (!count || *count > kMediaPerBlockMax || !budget.spend(&Quota::extras, *count)) return false;
  for (std::size_t i = 0; i < *count; ++i) {
    const auto kind = reader.peek();
    if (kind == Kind::Array) {
      if (!read_pair(reader, extra)) return false;
    } else if (kind == Kind::Text) {
      auto text = read_text(reader);
      if (!text) return false;
      extra.names_lora |= i == 0 && lora == *text;
      if (i != 0 || !extra.names_lora) extra.strings.push_back(std::move(*text));
    } else {
      if (!reader.skip(kNestingMax)) return false;
      extra.opaque = true;
    }
  }
  return true;
}

bool read_extras(ByteView field, BlockStored& event, Quota& budget) {
  if (is_absent(field)) return true;
  MsgpackReader reader(field);
  const auto count = reader.array();
  if (!count || *count != event.hashes.size()) return false;
  event.extras.resize(*count);
  for (auto& extra : event.extras) {
    if (!read_extra(reader, event.lora_name, extra, budget)) return false;
    event.offsets_stated |= !extra.media.empty();
  }
  return true;
}

KvEvent broken(bool store, std::string reason) {
  return MalformedEvent{.store = store, .reason = std::move(reason)};
}

KvEvent read_stored(const RawEvent& raw, Quota& budget) {
  Fields<kStoredFields.size()> fields{};
  BlockStored event;
  if (!read_fields(raw, kStoredFields, fields, &event)) return broken(true, "names of fields");
  const auto& [hashes, parent, tokens, block_size, lora_id, medium, lora_name, extra_keys, group,
               kind, window, locality, ownership, session, salt] = fields;
  // vLLM has offsets of media keys since 0.19 and group_idx since 0.20, so group_idx implies both.
  event.offsets_stated = raw.map || raw.count >= 9;
  if (!read_hashes(hashes, event.hashes, budget)) return broken(true, "block_hashes");
  if (!is_absent(parent)) {
    MsgpackReader reader(parent);
    event.parent = read_hash(reader);
    if (!event.parent) return broken(true, "parent_block_hash");
  }
  if (!read_tokens(tokens, event, budget)) return broken(true, "token_ids");
  const auto size = MsgpackReader(block_size).integer();
  if (!size || size->negative || size->bits > kTokensPerEventMax) {
    return broken(true, "block_size");
  }
  event.block_size = static_cast<std::uint32_t>(size->bits);
  if (!is_absent(lora_name)) {
    MsgpackReader reader(lora_name);
    event.lora_name = read_text(reader);
    if (!event.lora_name) return broken(true, "lora_name");
  }
  if (!read_salt(salt, event)) return broken(true, "cache_salt");
  event.lora_unnamed = !is_absent(lora_id) && !event.lora_name;
  if (!read_extras(extra_keys, event, budget)) return broken(true, "extra_keys");
  if (!read_group(group, event.group)) return broken(true, "group_idx");
  event.tier = tier_of(medium);
  event.kind = kind_of(kind);
  event.remote = is_remote(locality);
  return event;
}

KvEvent read_removed(const RawEvent& raw, Quota& budget) {
  Fields<kRemovedFields.size()> fields{};
  if (!read_fields(raw, kRemovedFields, fields)) return broken(false, "fields cannot be read");
  const auto& [hashes, medium, group, locality, copies] = fields;
  BlockRemoved event;
  if (!read_hashes(hashes, event.hashes, budget))
    return broken(false, "block_hashes of BlockRemoved");
  if (!is_absent(copies)) {
    auto counts = MsgpackReader(copies).counts(event.hashes.size());
    if (!counts) return broken(false, "remaining_copy_counts of BlockRemoved");
    event.copies_left = std::move(*counts);
  }
  if (!read_group(group, event.group)) return broken(false, "group_idx of BlockRemoved");
  event.tier = tier_of(medium);
  event.remote = is_remote(locality);
  return event;
}

// Returns the type and fields of one event. In a map, the type may be at any place.
std::optional<RawEvent> open_event(ByteView bytes) {
  RawEvent event{.type = {}, .body = MsgpackReader(bytes)};
  if (event.body.peek() == Kind::Array) {
    const auto count = event.body.array();
    const auto type = count && *count > 0 ? event.body.text() : std::nullopt;
    if (!type) return std::nullopt;
    event.type = *type;
    event.count = *count - 1;
    return event;
  }
  event.map = true;
  const auto count = event.body.map();
  if (!count) return std::nullopt;
  event.count = *count;
  Fields<1> type{};
  if (!read_fields(event, std::array<std::string_view, 1>{"type"}, type)) return std::nullopt;
  const auto text = MsgpackReader(type[0]).text();
  if (!text) return std::nullopt;
  event.type = *text;
  return event;
}

KvEvent read_event(ByteView bytes, Quota& budget) {
  const auto raw = open_event(bytes);
  if (!raw) return broken(false, "event without a type");
  if (raw->type == "BlockStored") return read_stored(*raw, budget);
  if (raw->type == "BlockRemoved") return read_removed(*raw, budget);
  if (raw->type == "AllBlocksCleared") return AllBlocksCleared{};
  return UnknownEvent{};
}

Error corrupt(std::string_view what) {
  return worker_error(ErrorCode::Corrupt, "KV event batch: " + std::string(what), false);
}

Error too_large(std::string what) {
  return worker_error(ErrorCode::TooLarge, std::move(what), false);
}

}  // namespace

Result<EventBatch> decode_batch(ByteView payload) {
  if (payload.size() > kPayloadBytesMax) {
    return too_large("KV event batch of " + std::to_string(payload.size()) +
                     " bytes, above the limit of " + std::to_string(kPayloadBytesMax));
  }
  MsgpackReader reader(payload);
  const auto elements = reader.array();
  if (!elements || *elements < 2) return corrupt("is not [time, events, …]");
  EventBatch batch;
  Quota budget;
  const auto timestamp = reader.number();
  if (!timestamp) return corrupt("time is not a number");
  batch.timestamp_s = *timestamp;
  const auto count = reader.array();
  if (!count) return corrupt("events are not an array of the announced length");
  if (*count > kEventsPerBatchMax) return corrupt("too many events in one batch");
  batch.events.reserve(*count);
  for (std::size_t i = 0; i < *count; ++i) {
    const auto event = reader.skip(kNestingMax);
    if (!event) return corrupt("an event is cut short or nested too deep");
    batch.events.push_back(read_event(*event, budget));
    if (budget.exceeded) {
      return too_large("KV event batch with more blocks, tokens or extra keys than allowed");
    }
  }
  if (*elements >= 3 && reader.at_end()) return corrupt("is cut short");
  if (*elements >= 3 && reader.peek() == Kind::Integer) {
    const auto rank = reader.integer();
    if (!rank) return corrupt("data-parallel rank is cut short");
    batch.rank = token_of(*rank);
  }
  return batch;
}

}  // namespace sightline::wire
