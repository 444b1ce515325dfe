// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/hosts/lookup.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <string_view>
#include <utility>

#include "common/base/log.h"
#include "common/base/mutex.h"
#include "common/contract/metrics_process.h"
#include "common/contract/metrics_requests.h"
#include "common/hosts/servers.h"

namespace sightline::hosts {
namespace {

struct Name {
  Resolved found;
  std::optional<Instant> asked_at;  // since when a look-up is active
  std::optional<Instant> found_at;  // nothing: no fresh addresses are known
  Instant retry_at = Instant::min();
  Duration backoff{0};  // the pause after the last failure
  Instant used_at = Instant::min();
  std::vector<Lookup::Done> waiting;
};

std::string_view outcome_of(LookupFailure trouble) {
  switch (trouble) {
    case LookupFailure::None:
      return "found";
    case LookupFailure::Unknown:
      return "unknown";
    case LookupFailure::Unanswered:
      return "unanswered";
  }
  return "unanswered";
}

// Logs only the first failure in a row, and the end of the row.
void log_change(const std::string& name, LookupFailure before, const Resolved& now) {
  if (before == now.trouble) return;
  const LogField host{"host", name};
  if (now.trouble == LookupFailure::None) {
    log(LogLevel::Info, "a host name has addresses again", {host});
  } else if (now.trouble == LookupFailure::Unknown) {
    log(LogLevel::Warn, "a host name is not known", {host});
  } else {
    log(LogLevel::Warn, "no name server answers for a host name",
        {host, {"last_addresses_used", !now.addresses.empty()}});
  }
}

}  // namespace

// Shared with the callbacks of active look-ups, which may outlive the Lookup.
struct Lookup::State : std::enable_shared_from_this<Lookup::State> {
  State(const Options& with, const Clock& time, runtime::Metrics* counts)
      : options(with), clock(time), metrics(counts) {}

  const Options options;
  const Clock& clock;
  runtime::Metrics* const metrics;
  std::optional<Servers> servers;  // ends before the members below
  Ask ask;

  Mutex mutex;
  std::map<std::string, Name, std::less<>> names SL_GUARDED_BY(mutex);
  std::size_t waiting SL_GUARDED_BY(mutex) = 0;  // the callbacks of all names
  bool stopped SL_GUARDED_BY(mutex) = false;

  LookupState find(const std::string& name, Done later, Duration age_max);
  Name* entry_of(const std::string& name) SL_REQUIRES(mutex);
  void finish(const std::string& name, Resolved found);
  void take_in(Name& name, Resolved found) const;
  void count_limit(std::string_view limit) const {
    if (metrics != nullptr) metrics->counter(contract::kLimitHitsTotal, {limit}).add();
  }
};

// The entry of the name, or room for one. Null: active look-ups take all the room. They must stay,
// because callers wait for them.
Name* Lookup::State::entry_of(const std::string& name) {
  const auto known = names.find(name);
  if (known != names.end()) return &known->second;
  if (names.size() >= options.names_max) {
    auto oldest = names.end();
    for (auto it = names.begin(); it != names.end(); ++it) {
      if (it->second.asked_at) continue;
      if (oldest == names.end() || it->second.used_at < oldest->second.used_at) oldest = it;
    }
    if (oldest == names.end()) return nullptr;
    names.erase(oldest);
  }
  return &names[name];
}

Lookup::LookupState Lookup::State::find(const std::string& name, Done later, Duration age_max) {
  const auto now = clock.now();
  LookupState answer;
  bool is_first = false;
  std::string_view limit;
  {
    const MutexLock lock(mutex);
    Name* const entry = stopped ? nullptr : entry_of(name);
    if (entry == nullptr) {
      if (!stopped) limit = "names-max";
    } else {
      entry->used_at = now;
      const Duration age = std::min(age_max, options.good_age_max);
      const bool is_good = entry->found_at && now - *entry->found_at < age;
      // Fresh enough, or a failure that must not be retried yet.
      if (!entry->asked_at && (is_good || now < entry->retry_at)) {
        return {entry->found};
      }
      answer.found = entry->found;
      if (waiting >= options.waiting_max) {
        limit = "name-waiters-max";
      } else {
        is_first = !entry->asked_at;
        if (is_first) entry->asked_at = now;
        answer.asked_at = entry->asked_at;
        entry->waiting.push_back(std::move(later));
        ++waiting;
      }
    }
  }
  // Outside of the lock, because metrics have locks of their own.
  if (!limit.empty()) count_limit(limit);
  if (!answer.asked_at) answer.found.trouble = LookupFailure::Unanswered;
  if (is_first) {
    // Weak: the look-up may end after this object.
    ask(name, [weak = weak_from_this(), name](const Resolved& found) {
      if (const auto self = weak.lock()) self->finish(name, found);
    });
  }
  return answer;
}

void Lookup::State::take_in(Name& name, Resolved found) const {
  const auto now = clock.now();
  name.asked_at.reset();
  if (found.trouble == LookupFailure::None) {
    name.found_at = now;
    name.backoff = Duration::zero();
    name.found = std::move(found);
    return;
  }
  name.backoff = name.backoff == Duration::zero()
                     ? options.retry_after
                     : std::min(name.backoff * 2, options.retry_after_max);
  name.retry_at = now + name.backoff;
  name.found_at.reset();
  name.found.trouble = found.trouble;
  // The old addresses may belong to another machine.
  if (found.trouble == LookupFailure::Unknown) name.found.addresses.clear();
}

void Lookup::State::finish(const std::string& name, Resolved found) {
  if (metrics != nullptr) {
    metrics->counter(contract::kNameLookupsTotal, {outcome_of(found.trouble)}).add();
  }
  Resolved now;
  LookupFailure before = LookupFailure::None;
  std::vector<Done> callbacks;
  {
    const MutexLock lock(mutex);
    const auto entry = names.find(name);
    if (stopped || entry == names.end()) return;
    before = entry->second.found.trouble;
    take_in(entry->second, std::move(found));
    now = entry->second.found;
    callbacks.swap(entry->second.waiting);
    waiting -= callbacks.size();
  }
  log_change(name, before, now);
  // Outside of the lock: a callback may call find().
  for (const auto& callback : callbacks) callback(now);
}

Lookup::Lookup(const Clock& clock, runtime::Metrics* metrics)
    : state_(std::make_shared<State>(Options{}, clock, metrics)) {
  state_->servers.emplace();
  state_->ask = [state = state_.get()](const std::string& name, Done done) {
    state->servers->ask(name, std::move(done));
  };
}

Lookup::Lookup(const Options& options, Ask ask, const Clock& clock, runtime::Metrics* metrics)
    : state_(std::make_shared<State>(options, clock, metrics)) {
  state_->ask = std::move(ask);
}

Lookup::~Lookup() { stop(); }

Lookup::LookupState Lookup::find(const std::string& name, Done later, Duration age_max) {
  asio::error_code code;
  const auto numeric = asio::ip::make_address(name, code);
  if (!code) return {{{numeric}, LookupFailure::None}};
  return state_->find(name, std::move(later), age_max);
}

void Lookup::stop() {
  std::vector<Done> dropped;
  {
    const MutexLock lock(state_->mutex);
    state_->stopped = true;
    for (auto& [name, entry] : state_->names) {
      std::move(entry.waiting.begin(), entry.waiting.end(), std::back_inserter(dropped));
      entry.waiting.clear();
    }
  }
  // Outside of the lock: it waits for callbacks that may need it.
  if (state_->servers) state_->servers->stop();
}

}  // namespace sightline::hosts
