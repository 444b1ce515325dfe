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
#include <vector>

#include "common/base/mutex.h"
#include "common/base/rng.h"
#include "common/nats/connection.h"
#include "common/nats/link.h"
#include "common/runtime/worker_thread.h"

// What the callers of a Connection and its thread share. For connection.cc and
// connection_thread.cc alone.
namespace sightline::nats {

using Inboxes = std::vector<std::shared_ptr<Inbox>>;

// A subscription that its inbox is to be told of once the server has confirmed it.
struct Added {
  std::string subject;
  std::shared_ptr<Inbox> inbox;
};

struct Outgoing {
  std::string subject;
  std::string payload;
};

struct Connection::State {
  State(ConnectionOptions wanted, std::vector<contract::NatsServer> to_try,
        runtime::Metrics& metrics, const Clock& the_clock);

  // Of the thread.
  void run(const std::stop_token& stop);
  void run_once(const std::stop_token& stop);
  void pause(const std::stop_token& stop, Duration time);
  Result<std::unique_ptr<Link>> connect();
  Result<Done> ask(Link& link, const std::string& subject);
  Result<Done> ask_all(Link& link);
  Result<Done> ask_changes(Link& link);
  std::string serve(const std::stop_token& stop, Link& link);
  void say_last_words(Link& link);
  Result<Done> send(Link& link, std::deque<Outgoing> batch);
  void end(const std::string& reason);
  void note_trouble(const std::string& reason);

  // Of threads of NATS.
  void heard(const std::string& subject, Message message);
  void missed(const std::string& subject, const Lost& lost);
  void warn(const std::string& reason);

  bool drop(const runtime::Counter& counter) const {
    counter.add();
    return false;
  }

  const ConnectionOptions options;
  const std::vector<contract::NatsServer> servers;
  const Clock& clock;
  const std::string kind;
  runtime::Gauge connected_gauge;
  runtime::Counter connects, messages_in, messages_out, bytes_in, bytes_out;
  runtime::Counter away, too_large, full, bad_subject, inbox_full, slow, refused;

  // The thread's own.
  std::size_t next_server = 0;
  Duration back_off{};  // before the next attempt; zero: the shortest
  Rng rng;
  std::set<Inbox*> told;        // of this link: that it is connected
  std::set<std::string> asked;  // of this link: subscriptions made

  mutable Mutex mutex;
  StopCondVar changed;
  std::map<std::string, Inboxes> wanted SL_GUARDED_BY(mutex);
  std::vector<Added> added SL_GUARDED_BY(mutex);
  std::vector<std::string> given_up SL_GUARDED_BY(mutex);
  std::deque<Outgoing> waiting SL_GUARDED_BY(mutex);
  std::size_t waiting_bytes SL_GUARDED_BY(mutex) = 0;
  std::optional<std::string> closed SL_GUARDED_BY(mutex);  // why the link ended
  bool is_connected SL_GUARDED_BY(mutex) = false;
  Instant away_since SL_GUARDED_BY(mutex);
  std::string trouble SL_GUARDED_BY(mutex) = "not yet connected";
  std::size_t payload_max SL_GUARDED_BY(mutex) = std::size_t{1} << 20U;
  Instant next_warning SL_GUARDED_BY(mutex){};

  std::optional<WorkerThread> thread;
};

}  // namespace sightline::nats
