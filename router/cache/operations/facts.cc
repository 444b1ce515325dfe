// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/cache/operations/facts.h"

namespace sightline::operations {

std::string_view reason_of(FeedHealth health) {
  switch (health) {
    case FeedHealth::Waiting:
      return "waiting for the first event connection";
    case FeedHealth::AddressInUse:
      return "another engine or process uses the address of its events: give each its own address";
    case FeedHealth::NameUnknown:
      return "the host name of its events is not known";
    case FeedHealth::NameUnanswered:
      return "no name server answers for the host name of its events";
    case FeedHealth::Disconnected:
      return "event connection lost";
    case FeedHealth::Replaying:
      return "replaying events";
    case FeedHealth::OtherRank:
      return "its KV events come from another data-parallel rank: check the port of its events "
             "endpoint";
    case FeedHealth::Verified:
      return "";
    case FeedHealth::ToldBadly:
      return "its agent has not proved that it has all KV events";
  }
  return "";
}

std::string_view reason_of(const CacheFacts& facts) {
  if (facts.health == FeedHealth::ToldBadly && !facts.reason.empty()) return facts.reason;
  return reason_of(facts.health);
}

}  // namespace sightline::operations
