// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/cache/operations/facts.h"

namespace sightline::operations {

std::string_view reason_of(FeedHealth health) {
  switch (health) {
    case FeedHealth::Waiting:
      return "waiting for the first event connection";
    case FeedHealth::AddressInUse:
      return "its events' address is in use by another engine or process: give each its own";
    case FeedHealth::NameUnknown:
      return "the host name of its events is not known";
    case FeedHealth::NameUnanswered:
      return "no name server answers for the host name of its events";
    case FeedHealth::Disconnected:
      return "event connection lost";
    case FeedHealth::Replaying:
      return "replaying events";
    case FeedHealth::OtherRank:
      return "its events are those of another data-parallel rank: check where its port leads to";
    case FeedHealth::Verified:
      return "";
    case FeedHealth::ToldBadly:
      return "what its agent tells is not proved";
  }
  return "";
}

std::string_view reason_of(const CacheFacts& facts) {
  if (facts.health == FeedHealth::ToldBadly && !facts.reason.empty()) return facts.reason;
  return reason_of(facts.health);
}

}  // namespace sightline::operations
