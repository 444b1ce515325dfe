// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/cache/wire/batch_codec.h"

#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include "common/base/rng.h"

#include "tests/support/pack.h"

namespace sightline::wire {
namespace {

// The same batches as msgspec writes them for each generation of the format: two blocks of 4
// tokens, the second one holds the beginning of a media item.
constexpr std::string_view kMapForm =
    "93cb41daa8dbe0200000918ba474797065ab426c6f636b53746f726564ac626c6f636b5f68617368657392cf"
    "dab7c3d2a1908f01cf0123456789abcdefb1706172656e745f626c6f636b5f68617368c0a9746f6b656e5f69"
    "647398ce0002505ccd0368ccc6ce00025064ce00025067ce00025067ce00025067ce00025067aa626c6f636b"
    "5f73697a6504a76c6f72615f6964c0a66d656469756da3475055a96c6f72615f6e616d65c0aa65787472615f"
    "6b65797392c09192b4696d672d3766336139633065353164326238343600a967726f75705f69647800b26b76"
    "5f63616368655f737065635f6b696e64ae66756c6c5f617474656e74696f6e00";

constexpr std::string_view kMapRemovedAndCleared =
    "93cb41daa8dbe04000009284a474797065ac426c6f636b52656d6f766564ac626c6f636b5f68617368657391"
    "cf0123456789abcdefa66d656469756da3475055a967726f75705f6964780081a474797065b0416c6c426c6f"
    "636b73436c656172656400";

constexpr std::string_view kArrayWithGroup =
    "93cb41daa8dbe0200000919aab426c6f636b53746f72656492cfdab7c3d2a1908f01cf0123456789abcdefc0"
    "98ce0002505ccd0368ccc6ce00025064ce00025067ce00025067ce00025067ce0002506704c0a3475055c092"
    "c09192b4696d672d37663361396330653531643262383436000000";

constexpr std::string_view kArrayWithBareIdentifier =
    "93cb41daa8dbe02000009199ab426c6f636b53746f72656492cfdab7c3d2a1908f01cf0123456789abcdefc0"
    "98ce0002505ccd0368ccc6ce00025064ce00025067ce00025067ce00025067ce0002506704c0a3475055c092"
    "c091b4696d672d3766336139633065353164326238343600";

constexpr std::string_view kArrayOfOldVersions =
    "92cb41daa8dbe02000009397ab426c6f636b53746f72656491cfdab7c3d2a1908f01c094ce0002505ccd0368"
    "ccc6ce0002506404c0a347505593ac426c6f636b52656d6f76656491cf0123456789abcdefa347505591b041"
    "6c6c426c6f636b73436c6561726564";

constexpr std::string_view kMapWithByteHashes =
    "93cb41daa8dbe0800000918ba474797065ab426c6f636b53746f726564ac626c6f636b5f68617368657391c4"
    "202d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881b1706172656e745f626c6f"
    "636b5f68617368c420148de9c5a7a44d19e56cd9ae1a554bf67847afb0c58f6e12fa29ac7ddfca9940a9746f"
    "6b656e5f69647394ce00025067ce00025067ce00025067ce00025067aa626c6f636b5f73697a6504a76c6f72"
    "615f6964c0a66d656469756da3475055a96c6f72615f6e616d65c0aa65787472615f6b657973919192b4696d"
    "672d37663361396330653531643262383436fca967726f75705f69647800b26b765f63616368655f73706563"
    "5f6b696e64ae66756c6c5f617474656e74696f6e00";

constexpr std::string_view kSignedHashAndSentinels =
    "93cb41daa8dbe02000009197ab426c6f636b53746f72656491d3dab7e81ae93e2f01c0940102ce000f42bbce"
    "000f42bb04c0a347505500";

constexpr std::uint64_t kFirst = 0xDAB7C3D2A1908F01;
constexpr std::uint64_t kSecond = 0x0123456789ABCDEF;
const std::vector<std::int64_t> kTokens = {151644, 872,    198,    151652,
                                           151655, 151655, 151655, 151655};

Bytes hex(std::string_view digits) { return from_hex(digits).value(); }

EventBatch decode(ByteView payload) {
  auto batch = decode_batch(payload);
  EXPECT_TRUE(batch.ok()) << batch.error().message;
  return std::move(*batch);
}

EventBatch decode_hex(std::string_view digits) {
  const auto bytes = hex(digits);
  return decode(bytes);
}

// The only event of a batch, as a store.
BlockStored stored_in(const EventBatch& batch) {
  EXPECT_EQ(batch.events.size(), 1U);
  const auto* stored = std::get_if<BlockStored>(&batch.events.at(0));
  EXPECT_NE(stored, nullptr);
  return stored == nullptr ? BlockStored{} : *stored;
}

BlockStored decode_stored(const pack::Value& event) {
  return stored_in(decode(pack::batch({event})));
}

EngineHash unsigned_hash(std::uint64_t value) { return {.low = value, .high = 1}; }

void expect_common_store(const BlockStored& stored) {
  EXPECT_EQ(stored.hashes, (std::vector{unsigned_hash(kFirst), unsigned_hash(kSecond)}));
  EXPECT_FALSE(stored.parent.has_value());
  EXPECT_EQ(stored.tokens, kTokens);
  EXPECT_EQ(stored.block_size, 4U);
  EXPECT_EQ(stored.tier, operations::Tier::Gpu);
  EXPECT_FALSE(stored.lora_name.has_value());
  EXPECT_FALSE(stored.lora_unnamed);
  EXPECT_FALSE(stored.remote);
  ASSERT_EQ(stored.extras.size(), 2U);
  EXPECT_TRUE(stored.extras[0].media.empty());
  EXPECT_TRUE(stored.extras[0].strings.empty());
}

TEST(BatchCodec, ReadsTheMapForm) {
  const auto batch = decode_hex(kMapForm);
  EXPECT_EQ(batch.timestamp_s, 1789095808.5);
  EXPECT_EQ(batch.rank, 0);
  const auto stored = stored_in(batch);
  expect_common_store(stored);
  ASSERT_EQ(stored.extras[1].media.size(), 1U);
  EXPECT_EQ(stored.extras[1].media[0].id, keys::identifier_hash("img-7f3a9c0e51d2b846"));
  EXPECT_EQ(stored.extras[1].media[0].offset, 0);
  EXPECT_EQ(stored.group, 0);
  EXPECT_EQ(stored.kind, SpecKind::Full);
  EXPECT_TRUE(stored.offsets_stated);
}

TEST(BatchCodec, ReadsRemovalsAndClearsInTheMapForm) {
  const auto batch = decode_hex(kMapRemovedAndCleared);
  ASSERT_EQ(batch.events.size(), 2U);
  const auto& removed = std::get<BlockRemoved>(batch.events[0]);
  EXPECT_EQ(removed.hashes, std::vector{unsigned_hash(kSecond)});
  EXPECT_EQ(removed.tier, operations::Tier::Gpu);
  EXPECT_EQ(removed.group, 0);
  EXPECT_TRUE(std::holds_alternative<AllBlocksCleared>(batch.events[1]));
}

TEST(BatchCodec, ReadsTheArrayFormWithAGroup) {
  const auto stored = stored_in(decode_hex(kArrayWithGroup));
  expect_common_store(stored);
  ASSERT_EQ(stored.extras[1].media.size(), 1U);
  EXPECT_EQ(stored.extras[1].media[0].offset, 0);
  EXPECT_EQ(stored.group, 0);
  EXPECT_EQ(stored.kind, SpecKind::Unstated);
  EXPECT_TRUE(stored.offsets_stated);
}

TEST(BatchCodec, KeepsABareIdentifierApartFromAnItemWithAnOffset) {
  const auto stored = stored_in(decode_hex(kArrayWithBareIdentifier));
  expect_common_store(stored);
  EXPECT_TRUE(stored.extras[1].media.empty());
  EXPECT_EQ(stored.extras[1].strings, std::vector<std::string>{"img-7f3a9c0e51d2b846"});
  EXPECT_FALSE(stored.group.has_value());
  EXPECT_FALSE(stored.offsets_stated);
}

TEST(BatchCodec, ReadsTheArrayFormOfOldVersions) {
  const auto batch = decode_hex(kArrayOfOldVersions);
  EXPECT_FALSE(batch.rank.has_value());
  ASSERT_EQ(batch.events.size(), 3U);
  const auto& stored = std::get<BlockStored>(batch.events[0]);
  EXPECT_EQ(stored.hashes, std::vector{unsigned_hash(kFirst)});
  EXPECT_EQ(stored.tokens.size(), 4U);
  EXPECT_TRUE(stored.extras.empty());
  EXPECT_EQ(std::get<BlockRemoved>(batch.events[1]).hashes, std::vector{unsigned_hash(kSecond)});
  EXPECT_TRUE(std::holds_alternative<AllBlocksCleared>(batch.events[2]));
}

TEST(BatchCodec, ReadsByteHashesAndNegativeOffsets) {
  const auto stored = stored_in(decode_hex(kMapWithByteHashes));
  ASSERT_EQ(stored.hashes.size(), 1U);
  ASSERT_TRUE(stored.parent.has_value());
  EXPECT_NE(stored.hashes[0], *stored.parent);
  // The integer form of the same hash is another handle.
  EXPECT_NE(stored.hashes[0], unsigned_hash(154678297519343745));
  EXPECT_NE(stored.hashes[0].low, 154678297519343745U);
  ASSERT_EQ(stored.extras.size(), 1U);
  EXPECT_EQ(stored.extras[0].media.at(0).offset, -4);
}

TEST(BatchCodec, ReadsSignedHashesAndSentinelTokens) {
  const auto stored = stored_in(decode_hex(kSignedHashAndSentinels));
  const auto bits = static_cast<std::uint64_t>(std::int64_t{-2686423450423251199});
  EXPECT_EQ(stored.hashes, (std::vector{EngineHash{.low = bits, .high = 2}}));
  EXPECT_EQ(stored.tokens, (std::vector<std::int64_t>{1, 2, 1000123, 1000123}));
  EXPECT_EQ(stored.block_size, 4U);
}

TEST(BatchCodec, EqualIntegersOfAnyWidthAreOneHash) {
  const auto stored = decode_stored(
      pack::map({{"type", pack::text("BlockStored")},
                 {"block_hashes", pack::array({"\x05", pack::integer(5), pack::negative(5)})},
                 {"token_ids", pack::array({})},
                 {"block_size", "\x04"}}));
  ASSERT_EQ(stored.hashes.size(), 3U);
  EXPECT_EQ(stored.hashes[0], stored.hashes[1]);
  EXPECT_EQ(stored.hashes[0], stored.hashes[2]);
}

pack::Value store_with(const std::vector<std::pair<std::string, pack::Value>>& changes) {
  std::vector<std::pair<std::string, pack::Value>> fields = {
      {"type", pack::text("BlockStored")}, {"block_hashes", pack::integers({7})},
      {"parent_block_hash", pack::nil()},  {"token_ids", pack::integers({1, 2})},
      {"block_size", pack::integer(2)},    {"lora_id", pack::nil()},
      {"medium", pack::text("GPU")},       {"lora_name", pack::nil()},
  };
  for (const auto& change : changes) {
    const auto place = std::find_if(fields.begin(), fields.end(),
                                    [&](const auto& field) { return field.first == change.first; });
    if (place == fields.end()) {
      fields.push_back(change);
    } else {
      *place = change;
    }
  }
  return pack::map(fields);
}

TEST(BatchCodec, ReadsLoraMediaAndSaltOfOneEntry) {
  const auto entry =
      hex("93a96d6174682d6c6f726192b4696d672d3766336139633065353164326238343603"
          "a874656e616e742d61");
  const auto stored =
      decode_stored(store_with({{"lora_name", pack::text("math-lora")},
                                {"extra_keys", pack::array({std::string(text_of(entry))})}}));
  EXPECT_EQ(stored.lora_name, "math-lora");
  ASSERT_EQ(stored.extras.size(), 1U);
  const auto& extra = stored.extras[0];
  ASSERT_EQ(extra.media.size(), 1U);
  EXPECT_EQ(extra.media[0].id, keys::identifier_hash("img-7f3a9c0e51d2b846"));
  EXPECT_EQ(extra.media[0].offset, 3);
  EXPECT_EQ(extra.strings, std::vector<std::string>{"tenant-a"});
  EXPECT_FALSE(extra.opaque);
}

TEST(BatchCodec, OnlyTheFirstStringMayBeTheAdapter) {
  const auto salted = pack::array({pack::array({pack::text("ad"), pack::text("ad")})});
  const auto stored =
      decode_stored(store_with({{"lora_name", pack::text("ad")}, {"extra_keys", salted}}));
  EXPECT_EQ(stored.extras.at(0).strings, std::vector<std::string>{"ad"});
}

TEST(BatchCodec, AdaptersWithoutANameAreMarked) {
  EXPECT_TRUE(decode_stored(store_with({{"lora_id", pack::integer(1)}})).lora_unnamed);
  EXPECT_FALSE(
      decode_stored(store_with({{"lora_id", pack::integer(1)}, {"lora_name", pack::text("ad")}}))
          .lora_unnamed);
}

TEST(BatchCodec, ShapesItDoesNotKnowLeaveABlockOpaque) {
  const std::vector<pack::Value> unclear = {
      pack::binary("digest of prompt embeds"),
      pack::integer(7),
      pack::map({{"cache_salt", pack::text("x")}}),
      pack::array({pack::text("id")}),
      pack::array({pack::text("id"), pack::integer(0), pack::integer(0)}),
      pack::array({pack::integer(0), pack::text("id")}),
      pack::array({pack::text("id"), pack::integer(~std::uint64_t{0})}),
  };
  for (const auto& element : unclear) {
    const auto stored =
        decode_stored(store_with({{"extra_keys", pack::array({pack::array({element})})}}));
    ASSERT_EQ(stored.extras.size(), 1U);
    EXPECT_TRUE(stored.extras[0].opaque);
    EXPECT_TRUE(stored.extras[0].media.empty());
  }
}

TEST(BatchCodec, TiersFollowTheMedium) {
  struct Case {
    pack::Value medium;
    std::optional<operations::Tier> want;
  };
  for (const auto& test : {
           Case{pack::nil(), operations::Tier::Gpu},
           Case{pack::text("GPU"), operations::Tier::Gpu},
           Case{pack::text("CPU"), operations::Tier::Cpu},
           Case{pack::text("CPU_PINNED"), operations::Tier::Cpu},
           Case{pack::text("STORAGE"), operations::Tier::Storage},
           Case{pack::text("FS"), operations::Tier::Storage},
           Case{pack::text("OBJ"), operations::Tier::Storage},
           Case{pack::text("DISK"), operations::Tier::Storage},
           Case{pack::text("TAPE"), std::nullopt},
           Case{pack::integer(1), std::nullopt},
       }) {
    EXPECT_EQ(decode_stored(store_with({{"medium", test.medium}})).tier, test.want);
  }
}

TEST(BatchCodec, KindsOtherThanFullAndMlaAreOther) {
  const auto kind = [](const pack::Value& value) {
    return decode_stored(store_with({{"kv_cache_spec_kind", value}})).kind;
  };
  EXPECT_EQ(kind(pack::nil()), SpecKind::Unstated);
  EXPECT_EQ(kind(pack::text("full_attention")), SpecKind::Full);
  EXPECT_EQ(kind(pack::text("mla_attention")), SpecKind::Mla);
  for (const auto* name : {"sliding_window", "mamba", "chunked_local_attention", "new_kind"}) {
    EXPECT_EQ(kind(pack::text(name)), SpecKind::Other);
  }
}

TEST(BatchCodec, AcceptsMapKeysInAnyOrderAndIgnoresUnknown) {
  const auto stored = decode_stored(pack::map({
      {"locality", pack::text("REMOTE")},
      {"session_id", pack::text("s")},
      {"ownership", pack::text("o")},
      {"token_ids", pack::integers({1, 2})},
      {"cache_salts", pack::nil()},
      {"mm_keys", pack::array({pack::nil(), pack::array({})})},
      {"block_hashes", pack::integers({7})},
      {"type", pack::text("BlockStored")},
      {"block_size", pack::integer(2)},
  }));
  EXPECT_EQ(stored.hashes, std::vector{unsigned_hash(7)});
  EXPECT_EQ(stored.tokens.size(), 2U);
  EXPECT_TRUE(stored.remote);
  EXPECT_FALSE(stored.unclear);
  EXPECT_FALSE(stored.unknown_field);
}

TEST(BatchCodec, UnknownContentFieldsMakeBlocksUnclear) {
  const auto future = decode_stored(
      store_with({{"from the future", pack::map({{"a", pack::array({pack::nil()})}})}}));
  EXPECT_TRUE(future.unknown_field);
  EXPECT_FALSE(future.unclear);
  for (const auto* name : {"mm_keys", "extra_key", "lora_path", "cache_salt_v2", "tenant_id"}) {
    for (const auto& value : {pack::text("x"), pack::integer(0), pack::array({pack::text("x")})}) {
      const auto stored = decode_stored(store_with({{name, value}}));
      EXPECT_TRUE(stored.unclear) << name;
      EXPECT_TRUE(stored.unknown_field) << name;
    }
  }
}

TEST(BatchCodec, ReadsTheSaltOfAWholeEvent) {
  EXPECT_EQ(decode_stored(store_with({{"cache_salt", pack::text("t")}})).cache_salt, "t");
  EXPECT_FALSE(decode_stored(store_with({{"cache_salt", pack::nil()}})).cache_salt.has_value());
  EXPECT_FALSE(decode_stored(store_with({{"cache_salt", pack::text("t")}})).unclear);
  for (const auto& value : {pack::binary("t"), pack::integer(7), pack::array({pack::text("t")})}) {
    EXPECT_TRUE(decode_stored(store_with({{"cache_salt", value}})).unclear);
  }
}

// SGLang appends named fields to the array form.
TEST(BatchCodec, ReadsNamedFieldsBehindAnArray) {
  std::vector<pack::Value> fields = {pack::text("BlockStored"), pack::integers({7}), pack::nil(),
                                     pack::integers({1, 2}),    pack::integer(2),    pack::nil(),
                                     pack::text("GPU"),         pack::nil()};
  for (const std::size_t behind : {7U, 8U}) {
    fields.resize(behind);
    fields.push_back(pack::map({{"cache_salt", pack::text("t")}, {"session_id", pack::text("s")}}));
    const auto stored = decode_stored(pack::array(fields));
    EXPECT_EQ(stored.cache_salt, "t");
    EXPECT_FALSE(stored.lora_name.has_value());
    EXPECT_FALSE(stored.unclear);
    EXPECT_FALSE(stored.unknown_field);
  }
  fields.back() = pack::map({{"extra_key", pack::text("t")}});
  EXPECT_TRUE(decode_stored(pack::array(fields)).unclear);
  fields.resize(7);
  fields[6] = pack::map({{"cache_salt", pack::text("t")}});  // in the place of the medium
  EXPECT_FALSE(decode_stored(pack::array(fields)).tier.has_value());
}

TEST(BatchCodec, FurtherArrayElementsAreIgnored) {
  std::vector<pack::Value> fields = {
      pack::text("BlockRemoved"), pack::integers({7}), pack::text("CPU"),  pack::integer(1),
      pack::text("LOCAL"),        pack::nil(),         pack::text("later")};
  const auto payload = pack::array({pack::number(1), pack::array({pack::array(fields)}),
                                    pack::integer(3), pack::text("later too")});
  const auto batch = decode(bytes_of(payload));
  EXPECT_EQ(batch.rank, 3);
  const auto& removed = std::get<BlockRemoved>(batch.events.at(0));
  EXPECT_EQ(removed.tier, operations::Tier::Cpu);
  EXPECT_EQ(removed.group, 1);
  EXPECT_FALSE(removed.remote);
}

TEST(BatchCodec, EventsWithoutHashesAreWhole) {
  const auto stored = decode_stored(store_with({{"block_hashes", pack::array({})}}));
  EXPECT_TRUE(stored.hashes.empty());
  EXPECT_EQ(stored.tokens.size(), 2U);
}

TEST(BatchCodec, UnknownTypesPassAsSuch) {
  const auto batch = decode(pack::batch({pack::array({pack::text("BlockMoved"), pack::nil()}),
                                         pack::map({{"type", pack::text("BlockMoved")}})}));
  ASSERT_EQ(batch.events.size(), 2U);
  for (const auto& event : batch.events) {
    EXPECT_TRUE(std::holds_alternative<UnknownEvent>(event));
  }
}

TEST(BatchCodec, OfPairsOfTokensTheFirstOnesAreTaken) {
  const auto pair = [](std::uint64_t first, std::uint64_t second) {
    return pack::array({pack::integer(first), pack::integer(second)});
  };
  const auto event =
      decode_stored(store_with({{"token_ids", pack::array({pair(5, 6), pair(6, 1ULL << 61U)})}}));
  EXPECT_EQ(event.tokens, (std::vector<std::int64_t>{5, 6}));
  EXPECT_TRUE(event.paired);
  EXPECT_FALSE(decode_stored(store_with({})).paired);
}

TEST(BatchCodec, ABrokenEventLeavesItsNeighboursWhole) {
  const std::vector<pack::Value> broken_stores = {
      store_with({{"block_hashes", pack::text("x")}}),
      store_with({{"block_hashes", pack::array({pack::number(1)})}}),
      store_with({{"parent_block_hash", pack::text("x")}}),
      store_with({{"token_ids", pack::array({pack::array({pack::integer(1)})})}}),
      store_with({{"token_ids", pack::array({pack::array({pack::integer(1), pack::text("x")})})}}),
      store_with({{"token_ids", pack::nil()}}),
      store_with({{"block_size", pack::negative(-1)}}),
      store_with({{"block_size", pack::integer(1ULL << 40U)}}),
      store_with({{"lora_name", pack::integer(1)}}),
      store_with({{"cache_salt", pack::text(std::string(5000, 'x'))}}),
      store_with({{"lora_name", pack::text(std::string(5000, 'x'))}}),
      store_with({{"extra_keys", pack::array({pack::nil(), pack::nil()})}}),
      store_with({{"extra_keys", pack::array({pack::text("x")})}}),
      store_with(
          {{"extra_keys", pack::array({pack::array({pack::text(std::string(5000, 'x'))})})}}),
      store_with({{"group_idx", pack::text("x")}}),
  };
  for (const auto& event : broken_stores) {
    const auto batch = decode(pack::batch({event, pack::removed({1})}));
    ASSERT_EQ(batch.events.size(), 2U);
    const auto* malformed = std::get_if<MalformedEvent>(&batch.events[0]);
    ASSERT_NE(malformed, nullptr);
    EXPECT_TRUE(malformed->store);
    EXPECT_FALSE(malformed->reason.empty());
    EXPECT_TRUE(std::holds_alternative<BlockRemoved>(batch.events[1]));
  }
}

TEST(BatchCodec, ABrokenEventThatMayBeARemovalSaysSo) {
  for (const auto& event : {pack::array({pack::text("BlockRemoved"), pack::nil()}), pack::array({}),
                            pack::array({pack::integer(1)}), pack::text("x"),
                            pack::map({{"typo", pack::text("BlockStored")}})}) {
    const auto batch = decode(pack::batch({event}));
    const auto* malformed = std::get_if<MalformedEvent>(&batch.events.at(0));
    ASSERT_NE(malformed, nullptr);
    EXPECT_FALSE(malformed->store);
  }
}

TEST(BatchCodec, RefusesWhatIsNotABatch) {
  for (const auto* payload :
       {"", "c0", "80", "90", "91cb41daa8dbe0200000", "92a17890", "92cb41daa8dbe020000080",
        "92cb41daa8dbe0200000ddffffffff", "92cb41daa8dbe020000091", "93cb41daa8dbe020000090cd",
        "92cb41daa8dbe020000091919191919191919191919191c0"}) {
    const auto bytes = hex(payload);
    const auto batch = decode_batch(bytes);
    ASSERT_FALSE(batch.ok()) << payload;
    EXPECT_EQ(batch.error().code, ErrorCode::Corrupt);
    EXPECT_EQ(batch.error().blame, Blame::Worker);
  }
}

TEST(BatchCodec, RefusesMoreEventsThanTheLimit) {
  std::string events(kEventsPerBatchMax + 1, '\xc0');
  const auto payload = "\x92" + pack::number(1) +
                       pack::sized(0xdd, static_cast<std::uint32_t>(events.size())) + events;
  EXPECT_FALSE(decode_batch(bytes_of(payload)).ok());
}

TEST(BatchCodec, EveryTruncationOfARealBatchIsRefused) {
  for (const auto vector : {kMapForm, kArrayWithGroup, kMapWithByteHashes}) {
    const auto whole = hex(vector);
    for (std::size_t size = 0; size < whole.size(); ++size) {
      EXPECT_FALSE(decode_batch(ByteView(whole).first(size)).ok()) << size;
    }
  }
}

TEST(BatchCodec, SurvivesEveryDamagedByteOfARealBatch) {
  Rng rng(5);
  for (const auto vector : {kMapForm, kMapRemovedAndCleared, kArrayWithGroup, kMapWithByteHashes}) {
    const auto whole = hex(vector);
    for (int round = 0; round < 5000; ++round) {
      auto damaged = whole;
      for (std::uint32_t i = rng.below(3); i < 3; ++i) {
        damaged[rng.below(static_cast<std::uint32_t>(damaged.size()))] =
            static_cast<std::uint8_t>(rng.next());
      }
      const auto batch = decode_batch(damaged);
      if (batch.ok()) {
        EXPECT_LE(batch->events.size(), damaged.size());
      }
    }
  }
}

// The only event of a batch, as a removal.
BlockRemoved removed_in(const pack::Value& event) {
  const auto batch = decode(pack::batch({event}));
  const auto* removed = std::get_if<BlockRemoved>(&batch.events.at(0));
  return removed == nullptr ? BlockRemoved{} : *removed;
}

TEST(BatchCodec, ReadsRemainingCopiesInBothForms) {
  const auto counts = pack::integers({2, 0});
  const auto as_map = removed_in(pack::map({{"type", pack::text("BlockRemoved")},
                                            {"block_hashes", pack::integers({7, 8})},
                                            {"medium", pack::text("GPU")},
                                            {"remaining_copy_counts", counts}}));
  EXPECT_EQ(as_map.copies_left, (std::vector<std::uint32_t>{2, 0}));
  const auto as_array =
      removed_in(pack::array({pack::text("BlockRemoved"), pack::integers({7, 8}), pack::text("GPU"),
                              pack::nil(), pack::nil(), counts}));
  EXPECT_EQ(as_array.copies_left, as_map.copies_left);
  EXPECT_EQ(as_array.hashes.size(), 2U);
}

TEST(BatchCodec, NumberOfRemainingCopiesMayBeMissing) {
  EXPECT_TRUE(removed_in(pack::removed({7})).copies_left.empty());
  const auto event = removed_in(pack::map({{"type", pack::text("BlockRemoved")},
                                           {"block_hashes", pack::integers({7})},
                                           {"remaining_copy_counts", pack::nil()}}));
  EXPECT_EQ(event.hashes.size(), 1U);
  EXPECT_TRUE(event.copies_left.empty());
}

TEST(BatchCodec, ARemovalWithCountsThatCannotBeReadIsBroken) {
  for (const auto& counts :
       {pack::integers({1, 0}), pack::integers({}), pack::text("1"), pack::integer(1),
        pack::array({pack::negative(-1)}), pack::array({pack::nil()})}) {
    const auto batch = decode(pack::batch({pack::map({{"type", pack::text("BlockRemoved")},
                                                      {"block_hashes", pack::integers({7})},
                                                      {"remaining_copy_counts", counts}})}));
    const auto* broken = std::get_if<MalformedEvent>(&batch.events.at(0));
    ASSERT_NE(broken, nullptr);
    EXPECT_FALSE(broken->store);
  }
}

TEST(BatchCodec, MoreCopiesThanCanBeCountedAreMany) {
  const auto event =
      removed_in(pack::map({{"type", pack::text("BlockRemoved")},
                            {"block_hashes", pack::integers({7})},
                            {"remaining_copy_counts", pack::integers({std::uint64_t{1} << 40U})}}));
  EXPECT_EQ(event.copies_left, (std::vector<std::uint32_t>{0xffffffff}));
}

}  // namespace
}  // namespace sightline::wire
