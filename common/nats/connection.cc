// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/nats/connection.h"

#include <algorithm>
#include <utility>

#include "common/nats/certificates.h"
#include "common/nats/connection_state.h"

namespace sightline::nats {
namespace {

constexpr std::size_t kSubjectBytesMax = 2048;  // well below a server's limit for one line

bool can_be_subject(std::string_view subject) {
  return !subject.empty() && subject.size() <= kSubjectBytesMax && subject.front() != '.' &&
         subject.back() != '.' && subject.find("..") == std::string_view::npos &&
         std::none_of(subject.begin(), subject.end(),
                      [](char c) { return c <= ' ' || c == 127 || c == '*' || c == '>'; });
}

}  // namespace

Result<std::unique_ptr<Connection>> Connection::create(ConnectionOptions options,
                                                       runtime::Metrics& metrics,
                                                       const Clock& clock) {
  SL_TRY(contract::check_nats(options.settings));
  auto servers = SL_TRY(contract::nats_servers(options.settings.urls));
  watch_certificates(options.settings, metrics);
  auto state = std::make_unique<State>(std::move(options), std::move(servers), metrics, clock);
  State* of_thread = state.get();
  auto connection = std::make_unique<Connection>(std::move(state));
  // Last, because the thread uses the whole state.
  of_thread->thread.emplace("nats",
                            [of_thread](const std::stop_token& stop) { of_thread->run(stop); });
  return connection;
}

Connection::Connection(std::unique_ptr<State> state) : state_(std::move(state)) {}
Connection::~Connection() = default;

void Connection::subscribe(const std::string& subject, std::shared_ptr<Inbox> inbox) {
  {
    const MutexLock lock(state_->mutex);
    Inboxes& inboxes = state_->wanted[subject];
    if (std::find(inboxes.begin(), inboxes.end(), inbox) != inboxes.end()) return;
    inboxes.push_back(inbox);
    // The thread sends the subscription: a caller must not wait for the network.
    state_->added.push_back({subject, std::move(inbox)});
  }
  state_->changed.notify_all();
}

void Connection::unsubscribe(const std::string& subject, const std::shared_ptr<Inbox>& inbox) {
  {
    const MutexLock lock(state_->mutex);
    const auto found = state_->wanted.find(subject);
    if (found == state_->wanted.end()) return;
    std::erase(found->second, inbox);
    std::erase_if(state_->added,
                  [&](const Added& one) { return one.subject == subject && one.inbox == inbox; });
    if (found->second.empty()) {
      state_->wanted.erase(found);
      // The thread unsubscribes only if no inbox has subscribed again by then.
      state_->given_up.push_back(subject);
    }
  }
  state_->changed.notify_all();
}

bool Connection::publish(std::string_view subject, std::string_view payload) {
  State& state = *state_;
  if (!can_be_subject(subject)) return state.drop(state.bad_subject);
  {
    const MutexLock lock(state.mutex);
    if (!state.is_connected) return state.drop(state.away);
    if (payload.size() > state.payload_max) return state.drop(state.too_large);
    const std::size_t bytes = subject.size() + payload.size();
    if (state.waiting.size() >= kWaitingMessagesMax ||
        bytes > kWaitingBytesMax - state.waiting_bytes) {
      return state.drop(state.full);
    }
    state.waiting_bytes += bytes;
    state.waiting.push_back({std::string(subject), std::string(payload)});
  }
  state.changed.notify_all();
  return true;
}

std::size_t Connection::payload_max() const {
  const MutexLock lock(state_->mutex);
  return state_->payload_max;
}

bool Connection::connected() const {
  const MutexLock lock(state_->mutex);
  return state_->is_connected;
}

std::optional<Instant> Connection::away_since() const {
  const MutexLock lock(state_->mutex);
  if (state_->is_connected) return std::nullopt;
  return state_->away_since;
}

std::string Connection::trouble() const {
  const MutexLock lock(state_->mutex);
  return state_->trouble;
}

}  // namespace sightline::nats
