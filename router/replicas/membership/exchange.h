// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/clock.h"

#include "router/replicas/membership/announcement.h"
#include "router/replicas/membership/members.h"

namespace sightline::membership {

struct ExchangeOptions {
  // Between announcements; also after each connection, and soon after somebody joins.
  Duration interval = std::chrono::seconds(2);
  // Least time between two, however many join at once.
  Duration pause = std::chrono::milliseconds(200);
  // Changes that are told from one look for silent members to the next, half an interval. Whoever
  // may write to the subject may make up members, and the log is not theirs to fill.
  std::uint32_t changes_max = 32;
  // Announcements without a proof that are read in a second; further ones cost no more than that.
  std::uint32_t unproven_max = 32;
  MembersOptions members = {};
};

// When to announce oneself, and what the announcements of others change. Messages and time in;
// announcements and news out. Whoever owns it calls turn() at due() and after every other call.
// Thread safety: none.
class Exchange {
 public:
  // The subject that an announcement belongs on.
  using SubjectOf = std::function<std::string(const Announcement&)>;

  // The sealer outlives it: of the key and scope, and of no revision, so that all who share the key
  // prove it to each other.
  Exchange(Announcement mine, SubjectOf subject_of, const envelope::Sealer& sealer,
           ExchangeOptions options = {});

  // What is announced is another; role, instance, scope and revision stay as they are.
  void set_mine(Announcement mine, Instant now);
  // What is published from now on is heard by the others.
  void connected(Instant now);
  // A message on any revision's subject of members.
  void hear(std::string_view subject, std::string_view payload, Instant now);

  struct Turn {
    // To be published on the subject; where that fails, the next one will do.
    std::optional<std::string> announcement;
    std::vector<MemberChange> changes;   // to be told, in this order
    std::uint64_t changes_left_out = 0;  // beyond changes_max, until the last look
  };
  Turn turn(Instant now);
  [[nodiscard]] Instant due() const;

  // The last announcement of a process that ends.
  [[nodiscard]] std::string farewell();

  [[nodiscard]] const Members& members() const { return members_; }
  // Announcements that could not be read, or came on a subject that is not theirs.
  [[nodiscard]] std::uint64_t malformed_total() const { return malformed_; }
  // Announcements without a proof that were not read, or not kept.
  [[nodiscard]] std::uint64_t unproven_total() const { return unread_ + members_.unproven_total(); }

 private:
  [[nodiscard]] bool may_read_unproven(Instant now);
  [[nodiscard]] std::string announce(Announcement announcement);
  void note(MemberChange change);
  void hurry(Instant now);

  const SubjectOf subject_of_;
  const envelope::Sealer& sealer_;
  const ExchangeOptions options_;
  Members members_;
  Instant next_announcement_{};  // the first turn announces
  std::optional<Instant> last_announcement_;
  Instant next_look_{};  // for those that fell silent
  std::vector<MemberChange> changes_;
  std::uint32_t told_ = 0;  // since the last look
  std::uint64_t left_out_ = 0;
  std::uint64_t malformed_ = 0;
  std::uint64_t number_ = 0;  // of our last announcement
  Instant second_{};          // in which those without a proof are counted
  std::uint32_t unproven_ = 0;
  std::uint64_t unread_ = 0;
};

}  // namespace sightline::membership
