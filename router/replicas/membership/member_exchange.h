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

// Times and limits of the announcements.
struct MemberExchangeOptions {
  // The pause between announcements. A connection and a new member make the next one due sooner.
  Duration interval = std::chrono::seconds(2);
  // The least pause between two announcements, for any number of new members.
  Duration pause = std::chrono::milliseconds(200);
  // The most changes that are logged between two looks for silent members. The looks are half an
  // interval apart. A process that may write to the subject can invent members, and must not fill
  // the log.
  std::uint32_t changes_max = 32;
  // The most announcements without a proof that are read in a second. Further ones cost only the
  // check of their form.
  std::uint32_t unproven_max = 32;
  MembersOptions members = {};
};

// Decides when this process announces itself, and how the announcements of others change the
// members. Input is messages and the time, output is announcements and changes. The owner calls
// turn() at due() and after every other call.
// Thread safety: one thread at a time.
class MemberExchange {
 public:
  // Returns the subject on which an announcement belongs.
  using SubjectOf = std::function<std::string(const Announcement&)>;

  // The sealer outlives this object. It has the key and the scope but no revision, so all processes
  // with the key accept each other's proofs.
  MemberExchange(Announcement mine, SubjectOf subject_of, const envelope::Sealer& sealer,
                 MemberExchangeOptions options = {});

  // Replaces our announcement. Role, instance, scope and revision stay as they are.
  void set_mine(Announcement mine, Instant now);
  // From now on others receive our announcements, so one is due.
  void connected(Instant now);
  // Takes a message from the members' subject of any revision.
  void hear(std::string_view subject, std::string_view payload, Instant now);

  // What the owner does next.
  struct Actions {
    // To publish on the members' subject. If that fails, the next one follows soon.
    std::optional<std::string> announcement;
    // To log, in this order.
    std::vector<MemberChange> changes;
    // Above changes_max, up to the last look.
    std::uint64_t changes_left_out = 0;
  };
  // Returns the due work, once.
  Actions turn(Instant now);
  // When turn() has work.
  [[nodiscard]] Instant due() const;

  // The last announcement of a process that ends.
  [[nodiscard]] std::string farewell();

  // The other processes.
  [[nodiscard]] const Members& members() const { return members_; }
  // Announcements that could not be read, or that came on a subject of another revision or scope.
  [[nodiscard]] std::uint64_t malformed_total() const { return malformed_; }
  // Announcements without a proof that were not read, or not kept.
  [[nodiscard]] std::uint64_t unproven_total() const { return unread_ + members_.unproven_total(); }

 private:
  // Counts an announcement without a proof. Returns false above the limit of a second.
  [[nodiscard]] bool spend_unproven_read(Instant now);
  [[nodiscard]] std::string announce(Announcement announcement);
  // Adds a change to the next turn, or counts it above changes_max.
  void note(MemberChange change);
  // Announces soon, but not before the least pause is over.
  void hurry(Instant now);

  const SubjectOf subject_of_;
  const envelope::Sealer& sealer_;
  const MemberExchangeOptions options_;
  Members members_;
  // The first turn announces.
  Instant next_announcement_{};
  std::optional<Instant> last_announcement_;
  Instant next_look_{};  // for silent members
  std::vector<MemberChange> changes_;
  // Since the last look.
  std::uint32_t told_ = 0;
  std::uint64_t left_out_ = 0;
  std::uint64_t malformed_ = 0;
  // Of our last announcement.
  std::uint64_t number_ = 0;
  // In which announcements without a proof are counted.
  Instant second_{};
  std::uint32_t unproven_ = 0;
  std::uint64_t unread_ = 0;
};

}  // namespace sightline::membership
