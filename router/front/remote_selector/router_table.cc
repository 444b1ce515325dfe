// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/front/remote_selector/router_table.h"

#include <algorithm>
#include <set>
#include <utility>

namespace sightline::remote_selector {
namespace {

// FNV-1a with a final mix. Names often differ only in their last digit, and all bits must differ
// then.
std::uint64_t rank_of(std::string_view instance, std::string_view router) {
  std::uint64_t digest = 0xcbf29ce484222325ULL;
  for (const std::string_view text : {instance, router}) {
    for (const char c : text) {
      digest = (digest ^ static_cast<std::uint8_t>(c)) * 0x100000001b3ULL;
    }
  }
  digest = (digest ^ (digest >> 33U)) * 0xff51afd7ed558ccdULL;
  return digest ^ (digest >> 33U);
}

std::string text_of(const http::ServerAddress& address) {
  const bool is_v6 = address.host.find(':') != std::string::npos;
  return (is_v6 ? "[" + address.host + "]" : address.host) + ":" + std::to_string(address.port);
}

// A router is behind if it knows the blocks of fewer than three quarters of the ranks that another
// one knows. Each router sees a change of the workers at a slightly different time.
bool is_behind_of(std::uint32_t most, std::uint32_t known) { return known < most - most / 4; }

// More entries than any log needs. They are taken at every poll.
constexpr std::size_t kStandingsMax = 1'024;

Error nobody(const std::string& why) {
  return {ErrorCode::Unavailable, Blame::Internal, true, "no router is available: " + why, "", ""};
}

}  // namespace

std::string_view name_of(RouterState state) {
  constexpr std::array<std::string_view, kRouterStates> kNames = {"unheard", "well",   "behind",
                                                                  "unready", "failed", "unfit"};
  return kNames[static_cast<std::size_t>(state)];
}

RouterTable::RouterTable(std::string instance, std::string identity)
    : instance_(std::move(instance)), identity_(std::move(identity)) {}

RouterTable::Entry* RouterTable::find(std::uint64_t id) {
  for (Entry& entry : entries_) {
    if (entry.router.id == id) return &entry;
  }
  return nullptr;
}

void RouterTable::set(const std::vector<http::ServerAddress>& addresses) {
  // A name may be resolved to the same address twice. The set has each address once.
  const std::set<http::ServerAddress> wanted(addresses.begin(), addresses.end());
  const MutexLock lock(mutex_);
  // An address that comes back later gets a new id.
  std::erase_if(entries_, [&](const Entry& e) { return !wanted.contains(e.router.address); });
  for (const http::ServerAddress& address : wanted) {
    const bool is_there = std::any_of(entries_.begin(), entries_.end(), [&](const Entry& entry) {
      return entry.router.address == address;
    });
    if (is_there) continue;
    Entry entry;
    entry.router = {next_id_++, address, text_of(address)};
    entry.rank = rank_of(instance_, entry.router.name);
    entries_.push_back(std::move(entry));
  }
  std::sort(entries_.begin(), entries_.end(),
            [](const Entry& a, const Entry& b) { return a.rank < b.rank; });
  compare();
}

// Only Well routers count. The state of a router that does not answer is unknown.
void RouterTable::compare() {
  std::uint32_t most = 0;
  bool is_any_fresh = false;
  for (const Entry& entry : entries_) {
    if (entry.state != RouterState::Well) continue;
    most = std::max(most, entry.known.value_or(0));
    is_any_fresh |= entry.stale.empty();
  }
  for (Entry& entry : entries_) {
    const bool is_old = is_any_fresh && !entry.stale.empty();
    const bool knows_less = entry.known && is_behind_of(most, *entry.known);
    const bool is_behind = entry.state == RouterState::Well && (is_old || knows_less);
    const bool is_news = std::exchange(entry.is_behind, is_behind) != is_behind;
    if (!is_news || standings_.size() >= kStandingsMax) continue;
    standings_.push_back(
        {entry.router.name, is_behind, entry.known.value_or(0), most, entry.stale});
  }
}

std::vector<RouterTable::Standing> RouterTable::take_standings() {
  const MutexLock lock(mutex_);
  return std::exchange(standings_, {});
}

std::vector<Router> RouterTable::order() const {
  std::vector<Router> routers;
  const MutexLock lock(mutex_);
  routers.reserve(entries_.size());
  for (const auto state : {RouterState::Well, RouterState::Behind, RouterState::Unready,
                           RouterState::Unheard, RouterState::Failed}) {
    for (const Entry& entry : entries_) {
      if (entry.standing() == state) routers.push_back(entry.router);
    }
  }
  return routers;
}

std::vector<Router> RouterTable::all() const {
  std::vector<Router> routers;
  const MutexLock lock(mutex_);
  for (const Entry& entry : entries_) routers.push_back(entry.router);
  return routers;
}

bool RouterTable::answers(std::uint64_t id) const {
  const MutexLock lock(mutex_);
  return std::any_of(entries_.begin(), entries_.end(),
                     [id](const Entry& entry) { return entry.router.id == id && answers(entry); });
}

std::optional<Instant> RouterTable::answered_until(std::uint64_t id, Instant now) const {
  const MutexLock lock(mutex_);
  for (const Entry& entry : entries_) {
    if (entry.router.id == id) return answers(entry) ? now : entry.silent_since;
  }
  return std::nullopt;
}

bool RouterTable::answered(std::uint64_t id, const selection_json::WorkersReport& told) {
  auto served = std::make_shared<const fleet::Served>(told.served);
  const bool fits = told.identity == identity_;
  const MutexLock lock(mutex_);
  Entry* const entry = find(id);
  if (entry == nullptr) return false;
  entry->served = fits ? std::move(served) : nullptr;
  // An answer without this number does not make a router fall behind.
  entry->known = told.known;
  entry->stale = told.stale;
  entry->silent_since.reset();
  RouterState state = RouterState::Well;
  entry->trouble.clear();
  if (!fits) {
    state = RouterState::Unfit;
    entry->trouble = "uses block keys of `" + told.identity + "`, but this frontend those of `" +
                     identity_ + "`";
  } else if (!told.not_ready.empty()) {
    state = RouterState::Unready;
    entry->trouble = "is not ready: " + told.not_ready;
  }
  const bool is_news = std::exchange(entry->state, state) != state;
  compare();
  return is_news;
}

bool RouterTable::failed(std::uint64_t id, const std::string& reason,
                         std::optional<Instant> silent_at) {
  const MutexLock lock(mutex_);
  Entry* const entry = find(id);
  // An unfit router stays unfit until it reports matching keys.
  if (entry == nullptr || entry->state == RouterState::Unfit) return false;
  if (!silent_at) {
    entry->silent_since.reset();
    // The silence began when the router last answered, and not at the latest failure.
  } else if (answers(*entry)) {
    entry->silent_since = silent_at;
  }
  entry->trouble = reason;
  const bool is_news = std::exchange(entry->state, RouterState::Failed) != RouterState::Failed;
  compare();
  return is_news;
}

std::shared_ptr<const fleet::Served> RouterTable::served() const {
  const MutexLock lock(mutex_);
  for (const auto state : {RouterState::Well, RouterState::Behind}) {
    for (const Entry& entry : entries_) {
      if (entry.standing() == state && entry.served) return entry.served;
    }
  }
  return nullptr;
}

Result<Done> RouterTable::check(Names names) const {
  const MutexLock lock(mutex_);
  if (entries_.empty()) return nobody("the names in selection.routers have no address");
  std::string why;
  for (const Entry& entry : entries_) {
    // The standing Behind also counts as Well here.
    if (entry.state == RouterState::Well) return Done{};
    // Without their names, routers often have the same fault.
    const std::string trouble =
        names == Names::Yes ? entry.router.name + " " + entry.trouble : entry.trouble;
    if (why.find(trouble) == std::string::npos) why += (why.empty() ? "" : "; ") + trouble;
  }
  return nobody(why);
}

std::array<std::size_t, kRouterStates> RouterTable::counts() const {
  std::array<std::size_t, kRouterStates> counts{};
  const MutexLock lock(mutex_);
  for (const Entry& entry : entries_) ++counts[static_cast<std::size_t>(entry.standing())];
  return counts;
}

}  // namespace sightline::remote_selector
