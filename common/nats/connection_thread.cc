// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include <algorithm>
#include <iterator>
#include <utility>

#include "common/base/log.h"
#include "common/contract/metrics_replicas.h"
#include "common/nats/connection_state.h"

namespace sightline::nats {
namespace {

using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;

constexpr Duration kBackOffMin = 50ms;
constexpr Duration kBackOffMax = 2s;
constexpr Duration kFlushTime = 2s;                // for a server to confirm subscriptions.
constexpr Duration kLastFlushTime = 200ms;         // for a server to take the last messages.
constexpr Duration kSteadyAfter = 2s;              // after this time the back-off is reset.
constexpr Duration kIdle = std::chrono::hours(1);  // the longest single wait.
constexpr Duration kLogPause = 10s;                // between two log lines of a connection

}  // namespace

Connection::State::State(ConnectionOptions wanted_options, std::vector<contract::NatsServer> to_try,
                         runtime::Metrics& metrics, const Clock& the_clock)
    : options(std::move(wanted_options)),
      servers(std::move(to_try)),
      clock(the_clock),
      kind(name_of(options.sending)),
      connected_gauge(metrics.gauge(contract::kNatsConnected, {kind})),
      connects(metrics.counter(contract::kNatsConnectsTotal, {kind})),
      messages_in(metrics.counter(contract::kNatsMessagesTotal, {kind, "in"})),
      messages_out(metrics.counter(contract::kNatsMessagesTotal, {kind, "out"})),
      bytes_in(metrics.counter(contract::kNatsBytesTotal, {kind, "in"})),
      bytes_out(metrics.counter(contract::kNatsBytesTotal, {kind, "out"})),
      away(metrics.counter(contract::kNatsDroppedTotal, {kind, "not-connected"})),
      too_large(metrics.counter(contract::kNatsDroppedTotal, {kind, "too-large"})),
      full(metrics.counter(contract::kNatsDroppedTotal, {kind, "waiting-full"})),
      bad_subject(metrics.counter(contract::kNatsDroppedTotal, {kind, "subject"})),
      inbox_full(metrics.counter(contract::kNatsDroppedTotal, {kind, "inbox-full"})),
      slow(metrics.counter(contract::kNatsDroppedTotal, {kind, "slow-consumer"})),
      refused(metrics.counter(contract::kNatsDroppedTotal, {kind, "not-permitted"})),
      // Seeded by time, so processes that start together do not reconnect together.
      rng(static_cast<std::uint64_t>(the_clock.now().time_since_epoch().count()) ^
          static_cast<std::uint64_t>(the_clock.wall().time_since_epoch().count())),
      away_since(the_clock.now()) {}

void Connection::State::run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    // Without memory the connection ends. Its readers get Disconnected, and request what they
    // missed on the next connection.
    if (!run_step([&] { run_once(stop); })) {
      while (!run_step([this] { end("the system has no memory"); })) {
      }
    }
    if (stop.stop_requested()) return;
    back_off = std::max(back_off, kBackOffMin);
    // Jitter, so many processes do not reconnect at the same moment.
    const Duration jittered = back_off / 2 + rng.below(1'000) * (back_off / 1'000);
    back_off = std::min(2 * back_off, kBackOffMax);
    pause(stop, jittered);
  }
}

void Connection::State::pause(const std::stop_token& stop, Duration time) {
  const MutexLock lock(mutex);
  changed.wait_until(mutex, stop, system_clock().now() + time, [] { return false; });
}

// Runs from the attempt to connect to the end of the connection.
void Connection::State::run_once(const std::stop_token& stop) {
  told.clear();
  asked.clear();
  auto link = connect();
  if (!link.ok()) return note_trouble(link.error().message);
  const auto confirmed = ask_all(**link);
  if (!confirmed.ok()) return note_trouble(confirmed.error().message);
  const Instant since = clock.now();
  connects.add();
  connected_gauge.set(1);
  log(LogLevel::Info, "connected to NATS", {{"connection", kind}, {"name", options.name}});
  const std::string reason = serve(stop, **link);
  link->reset();  // no callback runs after this
  if (clock.now() - since >= kSteadyAfter) back_off = kBackOffMin;
  end(reason);
  if (!stop.stop_requested()) warn("not connected to NATS", reason);
}

Result<std::unique_ptr<Link>> Connection::State::connect() {
  {
    const MutexLock lock(mutex);
    closed.reset();
  }
  LinkOptions wanted_link;
  wanted_link.server = servers[next_server];
  // Each attempt takes the next server.
  next_server = (next_server + 1) % servers.size();
  wanted_link.settings = options.settings;
  wanted_link.name = options.name;
  wanted_link.sends_at_once = options.sending == Sending::AtOnce;
  LinkCallbacks callbacks;
  callbacks.closed = [this](const std::string& reason) {
    {
      const MutexLock lock(mutex);
      closed = reason;
    }
    changed.notify_all();
  };
  callbacks.refused = [this](const std::string& subject, const std::string& reason) {
    refused.add();
    warn("the NATS server refused a subject", reason);
    missed(subject, {0, reason});
  };
  callbacks.publish_refused = [this](const std::string& reason) {
    refused.add();
    warn("the NATS server refused a subject", reason);
  };
  return Link::connect(wanted_link, std::move(callbacks));
}

Result<Done> Connection::State::ask(Link& link, const std::string& subject) {
  // A subject has one subscription, even if several inboxes read it.
  if (!asked.insert(subject).second) return Done{};
  Listener listener;
  listener.message = [this, subject](std::string from, std::string reply, std::string payload) {
    heard(subject, {std::move(from), std::move(reply), std::move(payload)});
  };
  listener.lost = [this, subject](std::uint64_t messages) {
    slow.add(static_cast<double>(messages));
    missed(subject, {messages, "the NATS client's queue is full"});
  };
  return link.subscribe(subject, std::move(listener));
}

// For a new link: subscribes to all subjects, then notifies the inboxes.
Result<Done> Connection::State::ask_all(Link& link) {
  std::map<std::string, Inboxes> all;
  {
    const MutexLock lock(mutex);
    all = wanted;
    added.clear();
    given_up.clear();
  }
  for (const auto& [subject, inboxes] : all) SL_TRY(ask(link, subject));
  // Only confirmed subscriptions may count as connected, or messages would be missed silently.
  SL_TRY(link.flush(kFlushTime));
  {
    const MutexLock lock(mutex);
    is_connected = true;
    trouble.clear();
    payload_max = link.payload_max();
  }
  for (const auto& [subject, inboxes] : all) {
    for (const auto& inbox : inboxes) {
      // Once for each inbox, even if it reads several subjects.
      if (told.insert(inbox.get()).second) inbox->put(Connected{});
    }
  }
  return Done{};
}

Result<Done> Connection::State::ask_changes(Link& link) {
  std::vector<Added> news;
  std::vector<std::string> gone;
  {
    const MutexLock lock(mutex);
    std::copy_if(given_up.begin(), given_up.end(), std::back_inserter(gone),
                 [this](const std::string& subject)
                     SL_REQUIRES(mutex) { return !wanted.contains(subject); });
    given_up.clear();
    news.swap(added);
  }
  for (const std::string& subject : gone) {
    if (asked.erase(subject) > 0) link.unsubscribe(subject);
  }
  if (news.empty()) return Done{};
  for (const Added& one : news) SL_TRY(ask(link, one.subject));
  SL_TRY(link.flush(kFlushTime));
  for (const Added& one : news) {
    const bool is_first = told.insert(one.inbox.get()).second;
    one.inbox->put(Connected{is_first ? std::string() : one.subject});
  }
  return Done{};
}

// Sends and subscribes until the link ends. Returns the reason.
std::string Connection::State::serve(const std::stop_token& stop, Link& link) {
  while (!stop.stop_requested()) {
    std::deque<Outgoing> batch;
    {
      const MutexLock lock(mutex);
      changed.wait_until(mutex, stop, system_clock().now() + kIdle, [this]() SL_REQUIRES(mutex) {
        return closed || !waiting.empty() || !added.empty() || !given_up.empty();
      });
      if (closed) return *closed;
      batch.swap(waiting);
      waiting_bytes = 0;
    }
    // Subscribes first, so no answer to these messages is missed.
    for (const auto& done : {ask_changes(link), send(link, std::move(batch))}) {
      if (!done.ok()) return done.error().message;
    }
  }
  say_last_words(link);
  return "stopped";
}

// Sends what was published before the stop. A process that ends announces it this way.
void Connection::State::say_last_words(Link& link) {
  std::deque<Outgoing> batch;
  {
    const MutexLock lock(mutex);
    batch.swap(waiting);
    waiting_bytes = 0;
  }
  if (batch.empty() || !send(link, std::move(batch)).ok()) return;
  static_cast<void>(link.flush(kLastFlushTime));
}

Result<Done> Connection::State::send(Link& link, std::deque<Outgoing> batch) {
  for (const Outgoing& one : batch) {
    SL_TRY(link.publish(one.subject, one.payload));
    messages_out.add();
    bytes_out.add(static_cast<double>(one.payload.size()));
  }
  return Done{};
}

void Connection::State::end(const std::string& reason) {
  std::set<std::shared_ptr<Inbox>> inboxes;
  std::size_t unsent = 0;
  {
    const MutexLock lock(mutex);
    is_connected = false;
    away_since = clock.now();
    trouble = reason;
    unsent = waiting.size();
    waiting.clear();
    waiting_bytes = 0;
    for (const auto& [subject, of_subject] : wanted) {
      inboxes.insert(of_subject.begin(), of_subject.end());
    }
  }
  // Messages that were accepted but not sent count as dropped.
  away.add(static_cast<double>(unsent));
  connected_gauge.set(0);
  for (const auto& inbox : inboxes) inbox->put(Disconnected{reason});
}

void Connection::State::note_trouble(const std::string& reason) {
  {
    const MutexLock lock(mutex);
    trouble = reason;
  }
  warn("not connected to NATS", reason);
}

void Connection::State::heard(const std::string& subject, Message message) {
  messages_in.add();
  bytes_in.add(static_cast<double>(message.payload.size()));
  Inboxes inboxes;
  {
    const MutexLock lock(mutex);
    const auto found = wanted.find(subject);
    if (found != wanted.end()) inboxes = found->second;
  }
  for (const auto& inbox : inboxes) {
    if (!inbox->put(message)) inbox_full.add();
  }
}

void Connection::State::missed(const std::string& subject, const Lost& lost) {
  std::set<std::shared_ptr<Inbox>> inboxes;
  {
    const MutexLock lock(mutex);
    // Without the exact subject, every inbox may miss messages.
    const bool is_known = wanted.contains(subject);
    for (const auto& [other, of_subject] : wanted) {
      if (!is_known || other == subject) inboxes.insert(of_subject.begin(), of_subject.end());
    }
  }
  for (const auto& inbox : inboxes) inbox->put(lost);
}

void Connection::State::warn(std::string_view message, const std::string& reason) {
  {
    const MutexLock lock(mutex);
    // A server that refuses every subject would fill the log.
    if (clock.now() < next_warning) return;
    next_warning = clock.now() + kLogPause;
  }
  log(LogLevel::Warn, message, {{"connection", kind}, {"reason", reason}});
}

}  // namespace sightline::nats
