// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
//
// The messages between a frontend and its routers besides questions and answers.
#include <algorithm>
#include <set>
#include <utility>

#include "common/base/log.h"
#include "common/contract/metrics_requests.h"
#include "common/contract/metrics_selection.h"

#include "router/front/remote_selector/remote_selector.h"
#include "router/front/remote_selector/running.h"
#include "router/front/selection_json/endings.h"
#include "router/front/selection_json/renewal.h"
#include "router/front/selection_json/workers_report.h"

namespace sightline::remote_selector {
namespace {

// The interval for reports about workers whose answers still arrive. It is shorter than the
// interval of a router's probes.
constexpr std::chrono::seconds kAliveInterval{1};
// The least interval between extra polls. Each request may find that the report is out of date.
constexpr std::chrono::milliseconds kAskAgainInterval{50};
// The time limit for a list. A router may need long to reserve the whole list.
constexpr std::chrono::seconds kListTime{2};
// Of one name.
constexpr std::size_t kAddressesMax = 64;
// The age at which addresses are looked up again, together with a poll. A roll-out replaces all
// routers within seconds.
constexpr std::chrono::milliseconds kAddressesAge{500};

void log_standings(RouterTable& table) {
  for (const auto& standing : table.take_standings()) {
    log(standing.is_behind ? LogLevel::Warn : LogLevel::Info,
        standing.is_behind
            ? "router knows the blocks of too few ranks: other routers are asked first"
            : "router knows the blocks of enough ranks again",
        {{"router", standing.router},
         {"ranks_known", standing.known},
         {"known_elsewhere", standing.most},
         {"reason", standing.stale}});
  }
}

}  // namespace

void RemoteSelector::start() {
  {
    const MutexLock lock(mutex_);
    is_started_ = true;
    ++running_;
  }
  spawn(deps_.pool.context(0).get_executor(), drive());
}

void RemoteSelector::stop() {
  {
    const MutexLock lock(mutex_);
    if (!std::exchange(is_started_, false)) return;
  }
  // Without the pool nothing runs that could wait or notify.
  if (!deps_.pool.running()) return;
  auto say = [](RemoteSelector& self) -> Task<void> {
    self.is_stopping_ = true;
    self.turn_.open();
    co_return;
  };
  spawn(deps_.pool.context(0).get_executor(), say(*this));
  const MutexLock lock(mutex_);
  idle_.wait(mutex_, [this]() SL_REQUIRES(mutex_) { return running_ == 0; });
}

void RemoteSelector::is_done() {
  const MutexLock lock(mutex_);
  if (--running_ == 0) idle_.notify_all();
}

void RemoteSelector::wake() {
  // One wake-up is enough until the loop has seen it.
  if (is_woken_.exchange(true) || !deps_.pool.running()) return;
  auto say = [](RemoteSelector& self, Running) -> Task<void> {
    self.turn_.open();
    co_return;
  };
  spawn(deps_.pool.context(0).get_executor(), say(*this, Running(*this)));
}

// start() has counted this task.
Task<void> RemoteSelector::drive() {
  Deadline next(deps_.pool.deadlines(0), [this] { turn_.open(); });
  while (!is_stopping_) {
    turn_.close();
    // Reset before the turn. A later wake-up then starts another turn.
    is_woken_ = false;
    const Instant now = deps_.clock.now();
    take_turn(now);
    const Instant polls_at = must_poll_ ? std::min(poll_at_, asked_again_at_) : poll_at_;
    next.set(std::min({polls_at, list_at_, alive_at_}) - now);
    co_await turn_.wait();
  }
  co_await tell_last_notes();
  is_done();
}

void RemoteSelector::take_turn(Instant now) {
  bool polls = now >= poll_at_;
  if (now >= asked_again_at_ && must_poll_.exchange(false)) {
    polls = true;
    asked_again_at_ = now + kAskAgainInterval;
  }
  if (polls) poll_at_ = now + options_.poll_interval;
  if (polls) resolve();
  // A router that does not answer must not take the room of notes for other routers.
  if (polls) holdings_.drop_old_notes(now);
  if (must_move_.exchange(false)) move_held();
  const bool lists = now >= list_at_;
  if (lists) list_at_ = now + options_.renew_interval;
  std::vector<std::string> alive;
  if (now >= alive_at_) {
    alive_at_ = now + kAliveInterval;
    alive = holdings_.take_alive();
  }
  for (const Router& router : table_.all()) {
    Peer& peer = peers_[router.id];
    peer.poll_due = peer.poll_due || polls;
    peer.list_due = peer.list_due || lists;
    if (!alive.empty()) peer.alive = alive;
    talk_if_due(router);
  }
}

const std::vector<http::ServerAddress>& RemoteSelector::find(std::size_t router) {
  const http::ServerAddress& named = options_.routers[router];
  std::vector<http::ServerAddress>& found = found_[router];
  const auto answer = deps_.names.find(
      named.host, [this](const hosts::Resolved&) { wake(); }, kAddressesAge);
  // A failed look-up keeps the old addresses. Routers must not vanish because of the name service.
  if (answer.found.addresses.empty() && answer.asked_at) return found;
  found.clear();
  for (const auto& address : answer.found.addresses) {
    if (found.size() == kAddressesMax) {
      deps_.metrics.counter(contract::kLimitHitsTotal, {"routers"}).add();
      break;
    }
    found.push_back({address.to_string(), named.port});
  }
  return found;
}

// A name without addresses does not delay the other names.
void RemoteSelector::resolve() {
  std::vector<http::ServerAddress> addresses;
  for (std::size_t i = 0; i < options_.routers.size(); ++i) {
    const auto& found = find(i);
    addresses.insert(addresses.end(), found.begin(), found.end());
  }
  table_.set(addresses);
  std::set<std::uint64_t> ids;
  for (const Router& router : table_.all()) ids.insert(router.id);
  // A running exchange still uses its entry.
  std::erase_if(peers_, [&](const auto& peer) {
    return !ids.contains(peer.first) && !peer.second.is_talking;
  });
  holdings_.drop_notes([&](std::uint64_t router) { return router == 0 || ids.contains(router); });
  move_held();
}

// Moves the reservations of routers that do not answer to the first router that answers.
void RemoteSelector::move_held() {
  const auto order = table_.order();
  if (order.empty() || !table_.answers(order.front().id)) return;
  const std::uint64_t home = order.front().id;
  const auto counts = [this](std::uint64_t router) { return table_.answers(router); };
  const std::size_t moved = holdings_.move(counts, home);
  if (moved == 0) return;
  deps_.metrics.counter(contract::kReservationsMovedTotal).add(static_cast<double>(moved));
  peers_[home].list_due = true;
}

void RemoteSelector::talk_if_due(const Router& router) {
  Peer& peer = peers_[router.id];
  if (peer.is_talking) return;
  const bool tells = peer.list_due || !peer.alive.empty() || holdings_.has_notes(router.id);
  if (!peer.poll_due && !(tells && table_.answers(router.id))) return;
  peer.is_talking = true;
  {
    const MutexLock lock(mutex_);
    ++running_;
  }
  spawn(deps_.pool.context(0).get_executor(), talk(router));
}

// talk_if_due() has counted this task. It sends one thing after the other, and so a router receives
// the events of a reservation in their order. Notes precede the list, because the list would make
// them void.
Task<void> RemoteSelector::talk(Router router) {
  bool goes_on = true;
  while (goes_on && !is_stopping_) {
    Peer& peer = peers_[router.id];
    if (peer.poll_due) {
      goes_on = co_await poll(router);
      continue;
    }
    if (!table_.answers(router.id)) break;
    if (!peer.alive.empty() || holdings_.has_notes(router.id)) {
      goes_on = co_await tell_notes(router);
    } else if (peer.list_due) {
      goes_on = co_await tell_list(router);
    } else {
      break;
    }
  }
  peers_[router.id].is_talking = false;
  is_done();
}

Task<bool> RemoteSelector::poll(const Router& router) {
  Caller::RouterRequest question{.method = "GET", .target = "/served"};
  question.answer_bytes_max = Caller::kLongAnswerBytesMax;
  question.known_tag = peers_[router.id].tag;
  const auto answer = co_await caller_.call(router.address, question, options_.call_time);
  Peer& peer = peers_[router.id];
  peer.poll_due = false;
  if (!answer.ok()) {
    failed(router, answer.error().message, answer.error().code);
    co_return false;
  }
  const bool is_known = answer->status == 304 && !question.known_tag.empty();
  // A router that failed meanwhile may have restarted. It must send the whole report again.
  if (is_known && table_.answers(router.id)) co_return true;
  peer.tag.clear();
  if (is_known) {
    // It is back. The next poll gets the whole report, without a tag.
    peer.poll_due = true;
    co_return true;
  }
  if (answer->status == 401) {
    failed(router, "rejected the token of this frontend (selection.token_file)");
    co_return false;
  }
  const auto told = answer->status == 200
                        ? selection_json::read_told(answer->body)
                        : Result<selection_json::WorkersReport>(
                              Error{ErrorCode::Unavailable, {}, true, "status", "", ""});
  if (!told.ok()) {
    failed(router, answer->status == 200
                       ? "sent an invalid list of models: " + told.error().message
                       : "answered with status " + std::to_string(answer->status));
    co_return false;
  }
  peer.tag = answer->tag;
  if (table_.answered(router.id, *told)) {
    log_state(router, *told);
    // It may still have reservations from before it failed. It may lack those of other routers that
    // failed.
    peer.list_due = true;
    move_held();
  }
  log_standings(table_);
  publish_served();
  co_return true;
}

void RemoteSelector::log_state(const Router& router,
                               const selection_json::WorkersReport& told) const {
  if (!table_.answers(router.id)) {
    log(LogLevel::Warn, "router is not used: its block keys differ from those of this frontend",
        {{"router", router.name}, {"its_keys", told.identity}, {"our_keys", options_.identity}});
  } else if (!told.not_ready.empty()) {
    log(LogLevel::Warn, "router is not ready: other routers are asked first",
        {{"router", router.name}, {"reason", told.not_ready}});
  } else {
    log(LogLevel::Info, "router found", {{"router", router.name}});
  }
}

void RemoteSelector::publish_served() {
  auto served = table_.served();
  const bool is_told = served != nullptr;
  if (served != nullptr && *served != *served_.read()) served_.publish(std::move(served));
  if (is_told) is_told_ = true;
}

Task<bool> RemoteSelector::tell_notes(const Router& router) {
  selection_json::Notes notes{.instance = options_.instance, .notes = {}, .alive = {}};
  auto taken = holdings_.take_notes(router.id, selection_json::kNotesMax, deps_.clock.now());
  for (const auto& noted : taken) notes.notes.push_back(noted.note);
  notes.alive = std::exchange(peers_[router.id].alive, {});
  Caller::RouterRequest question{.method = "POST", .target = "/reservations"};
  question.body = selection_json::write_notes(notes);
  const Put done = co_await put(router, std::move(question));
  // The next list repairs this.
  if (done == Put::Refused) holdings_.count_dropped(taken.size());
  if (done == Put::Failed) holdings_.put_back(router.id, std::move(taken));
  co_return done != Put::Failed;
}

Task<bool> RemoteSelector::tell_list(const Router& router) {
  peers_[router.id].list_due = false;
  for (const auto& part : holdings_.list_for(router.id)) {
    Caller::RouterRequest question{.method = "PUT", .target = "/reservations"};
    question.body = selection_json::write_renewal(part);
    const Put done = co_await put(router, std::move(question));
    if (done == Put::Failed) co_return false;
  }
  co_return true;
}

Task<RemoteSelector::Put> RemoteSelector::put(const Router& router,
                                              Caller::RouterRequest question) {
  // A list may be long. Notes are few.
  const Duration time = question.method == "PUT" ? Duration(kListTime) : options_.call_time;
  const auto answer = co_await caller_.call(router.address, question, time);
  if (answer.ok() && answer->status == 200) co_return Put::Taken;
  // The router works, but cannot read this message. It has not failed.
  if (answer.ok() && answer->status == 400) {
    log(LogLevel::Error, "a router rejected a message about reservations",
        {{"router", router.name}, {"reason", selection_json::error_message(answer->body)}});
    co_return Put::Refused;
  }
  if (answer.ok()) {
    failed(router, "answered with status " + std::to_string(answer->status));
  } else {
    failed(router, answer.error().message, answer.error().code);
  }
  co_return Put::Failed;
}

// The process ends. The ends of its requests must reach the routers.
Task<void> RemoteSelector::tell_last_notes() {
  for (const Router& router : table_.all()) {
    while (table_.answers(router.id) && holdings_.has_notes(router.id)) {
      const bool is_told = co_await tell_notes(router);
      if (!is_told) break;
    }
  }
}

}  // namespace sightline::remote_selector
