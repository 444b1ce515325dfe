// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
//
// Messages about reservations after their creation.
#include <memory>
#include <utility>

#include "common/contract/metrics_requests.h"
#include "common/contract/metrics_selection.h"

#include "router/front/selection_api/answers.h"
#include "router/front/selection_api/selection_api.h"
#include "router/front/selection_json/renewal.h"

namespace sightline::selection_api {
namespace {

using State = leases::LeaseBook::NameState::State;
using Outcome = leases::LeaseBook::Added::Outcome;

// Follows NAME/.
constexpr std::string_view kPrefillComplete = "prefill_complete";

}  // namespace

// A release may arrive twice, or before its reservation. Both are no error.
http::Response SelectionApi::reservation(const http::Request& request, std::string_view rest) {
  const bool is_first_token = request.method == "POST" && rest.size() > kPrefillComplete.size() &&
                              rest.ends_with(kPrefillComplete);
  if (!is_first_token && request.method != "DELETE") {
    return refused(client_error(ErrorCode::NotFound, "no such path or method"));
  }
  if (is_first_token) rest.remove_suffix(kPrefillComplete.size() + 1);
  const auto named = leases::parse_name(rest);
  if (!named) {
    return refused(client_error(ErrorCode::InvalidArgument,
                                "the name of a reservation must be INSTANCE.NUMBER.ATTEMPT",
                                "reservation"));
  }
  if (is_first_token) {
    if (first_token(*named)) return json_response(200, "{}");
    return refused(client_error(ErrorCode::NotFound, "no such reservation", "reservation"));
  }
  selection::Ending ending;
  if (!request.body.empty()) {
    HeldBytes memory = memory_for(request.body);
    auto read = selection_json::read_ending(request.body, &memory);
    if (!read.ok()) return refused(read.error());
    ending = std::move(*read);
  }
  release(*named, ending);
  return json_response(200, "{}");
}

http::Response SelectionApi::note(const http::Request& request) {
  HeldBytes memory = memory_for(request.body);
  const auto notes = selection_json::read_notes(request.body, &memory);
  if (!notes.ok()) return refused(notes.error());
  const auto fleet = sources_.fleet.snapshot();
  // Answers of these workers still arrive. This proves that the workers are alive.
  for (const std::string& name : notes->alive) {
    const auto worker = fleet->find(name);
    if (worker != nullptr) worker->life->raise();
  }
  for (const selection_json::Note& told : notes->notes) {
    const leases::Name named{notes->instance, told.number, told.attempt};
    if (told.ending) {
      release(named, *told.ending);
    } else {
      first_token(named);
    }
  }
  return json_response(200, "{}");
}

// A reservation without a worker or without room is on the next list again.
http::Response SelectionApi::renew(const http::Request& request) {
  HeldBytes memory = memory_for(request.body);
  const auto list = selection_json::read_renewal(request.body, &memory);
  if (!list.ok()) return refused(list.error());
  std::vector<leases::LeaseBook::Listed> open;
  open.reserve(list->open.size());
  for (const auto& held : list->open) open.push_back({held.number, held.attempt});
  leases::LeaseBook::Renewed renewed;
  {
    const MutexLock lock(mutex_);
    renewed = book_.renew({list->instance, list->from, list->up_to, open}, sources_.clock.now());
  }
  end(renewed.ended, {}, "not-listed");
  std::vector<leases::Name> taken;
  for (const std::size_t place : renewed.missing) {
    const selection_json::OpenReservation& held = list->open[place];
    const leases::Name named{list->instance, held.number, held.attempt};
    // An open question has no load yet.
    if (held.is_booked && adopt(named, held.work)) taken.push_back(named);
  }
  if (!taken.empty()) {
    sources_.metrics.counter(contract::kReservationsAdoptedTotal)
        .add(static_cast<double>(taken.size()));
    if (options_.on_taken) options_.on_taken(taken);
  }
  return json_response(200, R"({"ended":)" + std::to_string(renewed.ended.size()) +
                                R"(,"booked":)" + std::to_string(taken.size()) + "}");
}

bool SelectionApi::adopt(const leases::Name& name, const selection::Adoption& work) {
  // The selector reserves first. If the book then refuses the name, the reservation ends again.
  auto adopted = sources_.adopt(work);
  if (!adopted) return false;
  leases::LeaseBook::Added added;
  {
    const MutexLock lock(mutex_);
    added = book_.add(name, adopted->reservation, std::nullopt, sources_.clock.now());
    if (added.outcome == Outcome::Booked) reserved_.emplace(adopted->reservation, *adopted);
  }
  if (added.ended) end({*added.ended}, {}, "asked-again");
  if (added.outcome == Outcome::Booked) return true;
  sources_.selector.end(adopted->reservation, {});
  if (added.outcome == Outcome::Full) {
    sources_.metrics.counter(contract::kLimitHitsTotal, {"reservations"}).add();
  }
  return false;
}

bool SelectionApi::first_token(const leases::Name& name) {
  leases::LeaseBook::NameState found;
  {
    const MutexLock lock(mutex_);
    found = book_.find(name);
    // The message proves that the instance is alive, even if the name is unknown.
    book_.hear(name.instance, sources_.clock.now());
  }
  if (found.state != State::Open) return false;
  sources_.selector.first_token(found.lease);
  return true;
}

void SelectionApi::release(const leases::Name& name, const selection::Ending& ending) {
  std::optional<leases::LeaseId> lease;
  {
    const MutexLock lock(mutex_);
    lease = book_.release(name, sources_.clock.now());
  }
  if (lease) end({*lease}, ending, "told");
}

void SelectionApi::supersede(const leases::Name& name) {
  std::optional<leases::LeaseId> lease;
  {
    const MutexLock lock(mutex_);
    lease = book_.supersede(name);
  }
  if (lease) end({*lease}, {}, "superseded");
}

bool SelectionApi::stands(const leases::Name& name) const {
  const MutexLock lock(mutex_);
  // A released name counts as standing as well: its end was reported here.
  return book_.find(name).state != State::Free;
}

void SelectionApi::sweep() {
  Ended ended;
  {
    const MutexLock lock(mutex_);
    ended = book_.expire(sources_.clock.now());
  }
  end(ended, {}, "expired");
  sources_.metrics.gauge(contract::kReservationsOpen).set(static_cast<double>(reservations()));
}

std::size_t SelectionApi::reservations() const {
  const MutexLock lock(mutex_);
  return book_.open();
}

void SelectionApi::end(const Ended& leases, const selection::Ending& ending, std::string_view why) {
  if (leases.empty()) return;
  {
    const MutexLock lock(mutex_);
    for (const leases::LeaseId lease : leases) reserved_.erase(lease);
  }
  // The selector is called without the lock, because it has locks of its own.
  for (const leases::LeaseId lease : leases) sources_.selector.end(lease, ending);
  sources_.metrics.counter(contract::kReservationsEndedTotal, {why})
      .add(static_cast<double>(leases.size()));
}

}  // namespace sightline::selection_api
