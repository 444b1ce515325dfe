// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/replicas/membership/members.h"

#include <optional>

#include <gtest/gtest.h>

#include "common/base/json.h"

namespace sightline::membership {
namespace {

using std::chrono::seconds;
using Kind = MemberChange::Kind;

constexpr Instant kStart{std::chrono::hours(1)};

Announcement mine() {
  Announcement a;
  a.role = Role::Router;
  a.name = "router-0:9090";
  a.instance = 0x0123456789abcdefULL;
  a.scope = "default/default";
  a.revision = "0";
  a.model_digest = std::string(64, 'a');
  a.served_model = "qwen";
  a.block_size = 16;
  a.key_check = key_check_of(contract::development_identity_key());
  a.frames = {1, 2};
  a.admin_address = "10.0.0.7:9090";
  a.started = 1'700'000'000;
  return a;
}

const envelope::Sealer& sealer() {
  static const envelope::Sealer sealer(
      contract::development_identity_key(),
      {.scope = "default/default", .revision = {}, .fingerprint = {}});
  return sealer;
}

// Receives the next announcement of a process with the key.
std::optional<MemberChange> hear(Members& members, Announcement theirs, Instant now) {
  static std::uint64_t number = 0;
  theirs.number = ++number;
  return members.hear(theirs, Proof::Yes, now);
}

Announcement other(std::uint64_t instance = 7) {
  Announcement a = mine();
  a.role = Role::Agent;
  a.name = "agent-" + std::to_string(instance);
  a.instance = instance;
  return a;
}

TEST(Announcement, IsReadAsItWasWritten) {
  Announcement a = mine();
  a.name = "a \"name\" with \n and \xC3\xA4";
  a.generation = ~0ULL;
  a.number = ~0ULL - 1;
  a.leaving = true;
  const auto read = decode(encode(a));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(*read, a);
}

TEST(Announcement, KeepsToItsSizeHoweverLongItsTextsAre) {
  Announcement a = mine();
  std::string umlauts;
  for (int i = 0; i < 50'000; ++i) umlauts += "\xC3\xA4";
  a.scope = umlauts;
  a.served_model = "x" + umlauts;
  a.name = std::string("\xFF", 1);
  const std::string text = encode(a);
  EXPECT_LE(text.size(), kAnnouncementBytesMax);
  const auto read = decode(text);
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->scope.size(), kAnnouncedTextBytesMax);
  EXPECT_EQ(read->served_model.size(), kAnnouncedTextBytesMax - 1);
  EXPECT_TRUE(read->name.empty());
}

TEST(Announcement, KeepsItsSizeForAnyTexts) {
  Announcement a = mine();
  const std::string controls(100'000, '\x01');
  for (std::string* text : {&a.name, &a.scope, &a.revision, &a.model_digest, &a.served_model,
                            &a.key_check, &a.admin_address, &a.selection_address}) {
    *text = controls;
  }
  const std::string told = encode(a);
  EXPECT_LE(told.size(), kAnnouncementBytesMax);
  const auto read = decode(told);
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->name, std::string(kAnnouncedTextBytesMax / 6, '\x01'));
}

TEST(Announcement, ThatIsMalformedIsRefusedWithTheFieldsName) {
  const std::string whole = encode(mine());
  EXPECT_FALSE(decode("").ok());
  EXPECT_FALSE(decode("[]").ok());
  EXPECT_FALSE(decode(std::string(kAnnouncementBytesMax + 1, ' ')).ok());
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(decode(whole.substr(0, size)).ok()) << size;
  }
  struct Row {
    std::string from;
    std::string to;
    std::string named;
  };
  for (const Row& row : std::vector<Row>{
           {R"("role":"router")", R"("role":"king")", "role"},
           {R"("block_size":16)", R"("block_size":-16)", "block_size"},
           {R"("block_size":16)", R"("block_size":4294967296)", "block_size"},
           {R"("instance":"0123456789abcdef")", R"("instance":"10123456789abcdef")", "instance"},
           {R"("instance":"0123456789abcdef")", R"("instance":"-1")", "instance"},
           {R"("leaving":false)", R"("leaving":"no")", "leaving"},
           {R"("revision":"0")", R"("revision":0)", "revision"},
           {R"("revision":"0")", R"("revision":")" + std::string(600, 'r') + "\"", "revision"}}) {
    std::string text = whole;
    const auto at = text.find(row.from);
    ASSERT_NE(at, std::string::npos) << row.from;
    const auto read = decode(text.replace(at, row.from.size(), row.to));
    ASSERT_FALSE(read.ok()) << row.to;
    EXPECT_NE(read.error().message.find('"' + row.named + '"'), std::string::npos)
        << read.error().message;
  }
}

TEST(Announcement, LaterReleaseMayAddFields) {
  std::string text = encode(mine());
  text.replace(text.size() - 1, 1, R"(,"later":{"deep":[1,2]}})");
  const auto read = decode(text);
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(*read, mine());
}

TEST(Announcement, ProofNeedsItsKeySubjectAndText) {
  const std::string text = encode(mine(), "s", sealer());
  EXPECT_TRUE(is_proven(text, "s", sealer()));
  EXPECT_EQ(*decode(text), mine());
  EXPECT_FALSE(is_proven(text, "other", sealer()));
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::string damaged = text;
    damaged[i] = static_cast<char>(damaged[i] ^ 1);
    EXPECT_FALSE(is_proven(damaged, "s", sealer())) << i;
    EXPECT_FALSE(is_proven(text.substr(0, i), "s", sealer())) << i;
  }
  contract::IdentityKey key = contract::development_identity_key();
  ++key.bytes[0];
  EXPECT_FALSE(
      is_proven(text, "s", {key, {.scope = "default/default", .revision = {}, .fingerprint = {}}}));
  EXPECT_FALSE(is_proven(encode(mine()), "s", sealer()));
}

TEST(Announcement, OfAnEarlierReleaseIsReadAndDoesNotFit) {
  Announcement early = other();
  early.frames = {0, 0};
  std::string text = encode(early);
  const std::string number = R"(,"number":"0000000000000000")";
  text.erase(text.find(number), number.size());
  const auto read = decode(text);
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(why_unfit(mine(), *read, Proof::No)->difference, Difference::FrameVersions);
}

TEST(KeyCheck, IsAnotherForAnotherKeyAndNotTheKey) {
  contract::IdentityKey key = contract::development_identity_key();
  const std::string check = key_check_of(key);
  EXPECT_EQ(check.size(), 16U);
  key.bytes[31] ^= 1U;
  EXPECT_NE(key_check_of(key), check);
}

TEST(Fitness, NamesWhatDiffersWithBothValues) {
  EXPECT_FALSE(why_unfit(mine(), other(), Proof::Yes));
  struct Row {
    Difference difference;
    void (*change)(Announcement&);
    std::string theirs;
    std::string ours;
  };
  for (const Row& row : std::vector<Row>{
           {Difference::Scope, [](Announcement& a) { a.scope = "other/team"; }, "other/team",
            "default/default"},
           {Difference::Revision, [](Announcement& a) { a.revision = "9"; }, "9", "0"},
           {Difference::IdentityKey, [](Announcement& a) { a.key_check = "ffff"; }, "ffff",
            mine().key_check},
           {Difference::Model, [](Announcement& a) { a.model_digest = "bbbb"; }, "bbbb", "aaaa"},
           {Difference::ServedModel, [](Announcement& a) { a.served_model = ""; }, "not set",
            "qwen"},
           {Difference::FrameVersions,
            [](Announcement& a) {
              a.frames = {3, 4};
            },
            "3 to 4", "1 to 2"},
           {Difference::BlockSize, [](Announcement& a) { a.block_size = 32; }, "32", "16"}}) {
    Announcement theirs = other();
    row.change(theirs);
    const auto unfit = why_unfit(mine(), theirs, Proof::Yes);
    ASSERT_TRUE(unfit) << name_of(row.difference);
    EXPECT_EQ(unfit->difference, row.difference);
    EXPECT_NE(unfit->reason.find(row.theirs), std::string::npos) << unfit->reason;
    EXPECT_NE(unfit->reason.find(row.ours), std::string::npos) << unfit->reason;
  }
}

TEST(Fitness, TakesAnUnknownBlockSizeAndACommonFrameVersion) {
  Announcement theirs = other();
  theirs.block_size = 0;
  theirs.frames = {2, 9};
  EXPECT_FALSE(why_unfit(mine(), theirs, Proof::Yes));
  theirs.frames = {0, 1};
  EXPECT_FALSE(why_unfit(mine(), theirs, Proof::Yes));
}

TEST(Members, AreReportedOnJoinAndOnSilence) {
  Members members(mine());
  const auto joined = hear(members, other(), kStart);
  ASSERT_TRUE(joined);
  EXPECT_EQ(joined->kind, Kind::Joined);
  EXPECT_EQ(joined->member.told.name, "agent-7");
  EXPECT_FALSE(hear(members, other(), kStart + seconds(2)));
  EXPECT_TRUE(members.expire(kStart + seconds(2) + seconds(6) - Duration(1)).empty());
  const auto silent = members.expire(kStart + seconds(8));
  ASSERT_EQ(silent.size(), 1U);
  EXPECT_EQ(silent[0].kind, Kind::Silent);
  EXPECT_TRUE(members.all().empty());
}

TEST(Members, ThatSayThatTheyLeaveAreGoneAtOnce) {
  Members members(mine());
  hear(members, other(), kStart);
  Announcement bye = other();
  bye.leaving = true;
  const auto left = hear(members, bye, kStart);
  ASSERT_TRUE(left);
  EXPECT_EQ(left->kind, Kind::Left);
  EXPECT_TRUE(members.all().empty());
  EXPECT_FALSE(hear(members, bye, kStart));
}

TEST(Members, DoNotCountOneself) {
  Members members(mine());
  EXPECT_FALSE(hear(members, mine(), kStart));
  EXPECT_TRUE(members.all().empty());
}

TEST(Members, UnfitMembersAreNamedCountedAndReportedOnChange) {
  Members members(mine());
  Announcement theirs = other();
  theirs.block_size = 32;
  EXPECT_TRUE(hear(members, theirs, kStart)->member.unfit);
  EXPECT_FALSE(hear(members, theirs, kStart));
  EXPECT_EQ(members.unfit_counts().at(static_cast<std::size_t>(Difference::BlockSize)), 1U);
  EXPECT_EQ(members.fit_counts().at(static_cast<std::size_t>(Role::Agent)), 0U);
  theirs.revision = "2";
  const auto worse = hear(members, theirs, kStart);
  ASSERT_TRUE(worse);
  EXPECT_EQ(worse->kind, Kind::Changed);
  EXPECT_EQ(worse->member.unfit->difference, Difference::Revision);
  const auto well = hear(members, other(), kStart);
  ASSERT_TRUE(well);
  EXPECT_FALSE(well->member.unfit);
  EXPECT_EQ(members.fit_counts().at(static_cast<std::size_t>(Role::Agent)), 1U);
}

TEST(Members, OwnChangesCompareAllMembersAgain) {
  Members members(mine());
  hear(members, other(), kStart);
  Announcement changed = mine();
  changed.block_size = 64;
  const auto changes = members.set_mine(changed);
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(changes[0].member.unfit->difference, Difference::BlockSize);
  EXPECT_TRUE(members.set_mine(changed).empty());
}

TEST(Members, MembersAboveTheLimitAreCountedAndDropped) {
  Members members(mine(), {.members_max = 2});
  for (std::uint64_t i = 1; i <= 1000; ++i) hear(members, other(i), kStart);
  EXPECT_EQ(members.all().size(), 2U);
  EXPECT_EQ(members.refused_total(), 998U);
  members.expire(kStart + seconds(6));
  EXPECT_TRUE(hear(members, other(999), kStart + seconds(7)));
}

TEST(Members, UnprovenMembersAreFewAndReplaceNoOther) {
  Members members(mine(), {.members_max = 4, .unproven_max = 2});
  for (std::uint64_t i = 1; i <= 1'000; ++i) members.hear(other(i), Proof::No, kStart);
  EXPECT_EQ(members.all().size(), 2U);
  EXPECT_EQ(members.unproven_total(), 998U);
  for (std::uint64_t i = 2'000; i < 2'004; ++i) EXPECT_TRUE(hear(members, other(i), kStart));
  EXPECT_EQ(members.fit_counts().at(static_cast<std::size_t>(Role::Agent)), 4U);
  EXPECT_EQ(members.unfit_counts().at(static_cast<std::size_t>(Difference::Proof)), 2U);
}

TEST(Members, UnprovenAnnouncementsChangeNoMember) {
  Members members(mine());
  hear(members, other(), kStart);
  Announcement forged = other();
  forged.block_size = 32;
  forged.number = ~0ULL;
  EXPECT_FALSE(members.hear(forged, Proof::No, kStart));
  forged.leaving = true;
  EXPECT_FALSE(members.hear(forged, Proof::No, kStart));
  EXPECT_EQ(members.unproven_total(), 2U);
  EXPECT_FALSE(members.all().at(7).unfit);
  // The reverse: a proven process replaces an unproven one.
  members.hear(other(8), Proof::No, kStart);
  ASSERT_TRUE(hear(members, other(8), kStart));
  EXPECT_FALSE(members.all().at(8).unfit);
}

TEST(Members, AreNotBroughtBackOrChangedByWhatWasRecorded) {
  Members members(mine());
  Announcement early = other();
  early.number = 1'000'001;
  early.generation = 5;
  members.hear(early, Proof::Yes, kStart);
  Announcement late = early;
  late.number += 1;
  late.generation = 4;
  members.hear(late, Proof::Yes, kStart);
  EXPECT_FALSE(members.hear(early, Proof::Yes, kStart));
  EXPECT_EQ(members.all().at(7).told.generation, 4U);
  EXPECT_EQ(members.repeated_total(), 1U);
  // It is killed and falls silent. Another one announces that it leaves.
  ASSERT_EQ(members.expire(kStart + seconds(6)).size(), 1U);
  EXPECT_FALSE(members.hear(late, Proof::Yes, kStart + seconds(7)));
  Announcement leaving = other(8);
  leaving.number = 2'000'000;
  members.hear(leaving, Proof::Yes, kStart + seconds(7));
  leaving.leaving = true;
  leaving.number += 1;
  EXPECT_TRUE(members.hear(leaving, Proof::Yes, kStart + seconds(7)));
  leaving.leaving = false;
  EXPECT_FALSE(members.hear(leaving, Proof::Yes, kStart + seconds(7)));
  EXPECT_TRUE(members.all().empty());
  late.number += 1;
  EXPECT_TRUE(members.hear(late, Proof::Yes, kStart + seconds(8))) << "it was only silent";
}

TEST(Members, AreValidJsonWithAnyName) {
  Members members(mine());
  Announcement theirs = other();
  theirs.name = "\"},{\x01";
  theirs.revision = "9";
  hear(members, theirs, kStart);
  hear(members, other(8), kStart);
  const auto shown = json::Document::parse(members.json(kStart + seconds(1)));
  ASSERT_TRUE(shown.ok()) << shown.error().message;
  ASSERT_EQ(shown->root().size(), 2U);
  const json::Value first = *shown->root().begin();
  EXPECT_EQ(first.find("name")->string(), theirs.name);
  EXPECT_EQ(first.find("fits")->boolean(), false);
  EXPECT_EQ(first.find("difference")->string(), "revision");
  EXPECT_EQ(first.find("heard_ms")->integer(), 1000);
}

}  // namespace
}  // namespace sightline::membership
