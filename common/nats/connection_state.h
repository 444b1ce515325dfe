// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/mutex.h"
#include "common/base/rng.h"
#include "common/nats/connection.h"
#include "common/nats/link.h"
#include "common/runtime/worker_thread.h"

// The state that the callers of a Connection share with its thread. For connection.cc and
// connection_thread.cc only.
namespace sightline::nats {

// The readers of one subject.
using Inboxes = std::vector<std::shared_ptr<Inbox>>;

// A subscription whose inbox gets Connected when the server confirms it.
struct Added {
  std::string subject;
  std::shared_ptr<Inbox> inbox;
};

// A message that waits for its turn.
struct Outgoing {
  std::string subject;
  std::string payload;
};

struct Connection::State {
  State(ConnectionOptions wanted, std::vector<contract::NatsServer> to_try,
        runtime::Metrics& metrics, const Clock& the_clock);

  // Up to note_trouble() these run on the connection's thread. run() connects and serves until the
  // stop. It pauses after each end, with a growing back-off.
  void run(const std::stop_token& stop);
  // One attempt to connect, and the connection up to its end.
  void run_once(const std::stop_token& stop);
  // Waits for this time, or until the stop.
  void pause(const std::stop_token& stop, Duration time);
  // Connects to the next server of the list.
  Result<std::unique_ptr<Link>> connect();
  // Subscribes to a subject, once for each link.
  Result<Done> ask(Link& link, const std::string& subject);
  // For a new link: subscribes to all subjects, waits for the server's answer, and puts Connected
  // into the inboxes.
  Result<Done> ask_all(Link& link);
  // Subscribes and unsubscribes what changed since the last call.
  Result<Done> ask_changes(Link& link);
  // Sends and subscribes until the link ends or the stop comes. Returns the reason.
  std::string serve(const std::stop_token& stop, Link& link);
  // Sends what was published before the stop.
  void say_last_words(Link& link);
  // Fails with the first message that the link does not take.
  Result<Done> send(Link& link, std::deque<Outgoing> batch);
  // Records the end. Counts the unsent messages as dropped, and puts Disconnected into all inboxes.
  void end(const std::string& reason);
  // Records and logs why there is no connection.
  void note_trouble(const std::string& reason);

  // These run on threads of NATS, and warn() also on the connection's thread.
  // Puts the message into all inboxes of the subject.
  void heard(const std::string& subject, Message message);
  // Puts the loss into the inboxes of the subject. Unknown subject: into all inboxes.
  void missed(const std::string& subject, const Lost& lost);
  // Logs a message with its reason. Drops it if the last one was logged a moment ago.
  void warn(std::string_view message, const std::string& reason);

  // Counts a dropped message. Returns false, for publish().
  bool drop(const runtime::Counter& counter) const {
    counter.add();
    return false;
  }

  const ConnectionOptions options;
  const std::vector<contract::NatsServer> servers;
  const Clock& clock;
  // The `connection` label of the metrics: a word for options.sending.
  const std::string kind;
  runtime::Gauge connected_gauge;
  runtime::Counter connects, messages_in, messages_out, bytes_in, bytes_out;
  runtime::Counter away, too_large, full, bad_subject, inbox_full, slow, refused;

  // Only the thread uses these.
  std::size_t next_server = 0;
  // The pause before the next attempt. Zero: the shortest.
  Duration back_off{};
  Rng rng;
  // The inboxes that know that this link is connected.
  std::set<Inbox*> told;
  // The subjects subscribed to on this link.
  std::set<std::string> asked;

  mutable Mutex mutex;
  StopCondVar changed;
  // The inboxes of each subject.
  std::map<std::string, Inboxes> wanted SL_GUARDED_BY(mutex);
  // The subscriptions that the thread has not sent.
  std::vector<Added> added SL_GUARDED_BY(mutex);
  // The subjects whose last inbox unsubscribed.
  std::vector<std::string> given_up SL_GUARDED_BY(mutex);
  // The published messages that the thread has not taken, and their bytes.
  std::deque<Outgoing> waiting SL_GUARDED_BY(mutex);
  std::size_t waiting_bytes SL_GUARDED_BY(mutex) = 0;
  // Why the link ended.
  std::optional<std::string> closed SL_GUARDED_BY(mutex);
  // The server has confirmed all subscriptions.
  bool is_connected SL_GUARDED_BY(mutex) = false;
  // When the last connection ended, or when this object was made.
  Instant away_since SL_GUARDED_BY(mutex);
  // Why there is no connection. Empty while connected.
  std::string trouble SL_GUARDED_BY(mutex) = "not yet connected";
  // The largest payload that the server takes. At first: the default of NATS.
  std::size_t payload_max SL_GUARDED_BY(mutex) = std::size_t{1} << 20U;
  // When warn() may log again.
  Instant next_warning SL_GUARDED_BY(mutex){};

  // Last, because the thread uses all members above.
  std::optional<WorkerThread> thread;
};

}  // namespace sightline::nats
