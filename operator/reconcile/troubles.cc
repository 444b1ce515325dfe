// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/reconcile/troubles.h"

namespace sightline::reconcile {

using client::Failure;
using client::Reason;

namespace {

// The words of the admission plugin ResourceQuota, whose Status has only the reason Forbidden.
constexpr std::string_view kQuotaWords = "exceeded quota";

}  // namespace

judge::Trouble trouble_of(const Failure& failure, std::string_view otherwise,
                          const std::string& what) {
  std::string reason(otherwise);
  if (has_cause(failure, client::kNameTaken)) reason = client::kNameTaken;
  if (failure.message.find(kQuotaWords) != std::string::npos) reason = "QuotaExceeded";
  const std::string place = what.empty() ? "" : what + ": ";
  return {.reason = std::move(reason), .message = place + failure.message};
}

bool is_for_people(const Failure& failure) {
  if (has_cause(failure, client::kNamespaceTerminating)) return false;
  return failure.reason == Reason::Invalid || failure.reason == Reason::Forbidden ||
         failure.reason == Reason::BadRequest || failure.reason == Reason::NotFound;
}

bool ends_everything(const Failure& failure) {
  return failure.reason == Reason::NotLeading || failure.reason == Reason::Cancelled ||
         failure.reason == Reason::Unauthorized ||
         has_cause(failure, client::kNamespaceTerminating);
}

}  // namespace sightline::reconcile
