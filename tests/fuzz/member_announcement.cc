// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
//
// Decodes what any process may publish on the subject of members, and compares, stores and shows
// it.
#include <string>

#include "common/base/check.h"
#include "common/base/json.h"

#include "router/replicas/membership/members.h"
#include "tests/fuzz/target.h"

namespace sightline::fuzz {
namespace {

using membership::Announcement;

Announcement ours() {
  Announcement a;
  a.instance = 1;
  a.scope = "default/default";
  a.revision = "0";
  return a;
}

const envelope::Sealer& sealer() {
  static const envelope::Sealer sealer(contract::development_identity_key(), {});
  return sealer;
}

}  // namespace

void run(ByteView input) {
  const auto read = membership::decode(text_of(input));
  if (!read.ok()) {
    SL_CHECK(read.error().blame == Blame::Worker);
    return;
  }
  // A forwarded announcement is no larger than an accepted one, and decodes to the same value.
  const std::string told = membership::encode(*read);
  SL_CHECK(told.size() <= membership::kAnnouncementBytesMax);
  const auto again = membership::decode(told);
  SL_CHECK(again.ok() && membership::encode(*again) == told);

  SL_CHECK(!membership::is_proven(text_of(input), "s", sealer()));
  SL_CHECK(membership::is_proven(membership::encode(*read, "s", sealer()), "s", sealer()));

  membership::Members members(ours());
  const Instant now{std::chrono::hours(1)};
  const auto change = members.hear(*read, membership::Proof::No, now);
  SL_CHECK(!change || change->member.unfit);
  const bool is_known = change && change->kind == membership::MemberChange::Kind::Joined;
  SL_CHECK(is_known == (read->instance != 1 && !read->leaving));
  const auto shown = json::Document::parse(members.json(now));
  SL_CHECK(shown.ok() && shown->root().size() == (is_known ? 1U : 0U));
}

}  // namespace sightline::fuzz
