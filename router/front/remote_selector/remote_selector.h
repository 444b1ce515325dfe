// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/base/published.h"
#include "common/hosts/lookup.h"
#include "common/http/client.h"
#include "common/runtime/io_pool.h"
#include "common/runtime/metrics.h"
#include "common/runtime/task.h"
#include "common/runtime/token_file.h"

#include "router/front/remote_selector/caller.h"
#include "router/front/remote_selector/holdings.h"
#include "router/front/remote_selector/router_table.h"
#include "router/front/selection/selector.h"

namespace sightline::remote_selector {

// The router role in other processes, asked over the selection API: the same answers as of the one
// in this process. A question goes to this frontend's first router (RouterTable); where that does
// not answer, or has no worker to name, to the next, as a later attempt of the same reservation,
// until one does, or all have refused, or ask_time has passed. First tokens and ends are noted and
// sent soon after, several at once. All that is held is sent every renew_interval, and soon after a
// router failed: its reservations are then held at the next. That list repairs a lost note.
// It runs on the pool's first I/O thread between start() and stop().
// Thread safety: the methods of Selector on I/O threads, but for end() and first_token() from any;
// start() and stop() from main; the rest from any thread.
class RemoteSelector : public selection::Selector {
 public:
  struct Options {
    std::vector<http::ServerAddress> routers;  // a name stands for each of its addresses
    std::string instance;                      // of this process, as in leases::Name
    std::string identity;                      // what its block keys depend on
    Duration poll_interval = std::chrono::seconds(1);
    Duration renew_interval = std::chrono::seconds(5);
    Duration call_time = std::chrono::milliseconds(400);  // of one router
    Duration ask_time = std::chrono::milliseconds(800);   // of a question, at all of them
    // More of it at a router that has been silent for less than that: it may be slow, not gone.
    Duration patience = std::chrono::seconds(5);
  };
  // All outlive it. Stop the names before the pool is destroyed.
  struct Around {
    IoPool& pool;
    hosts::Lookup& names;
    runtime::TokenFile* tokens;  // null: none are asked for
    runtime::Metrics& metrics;
    const Clock& clock;
    http::ClientOptions connections = kept_connections();
  };
  // A router keeps a connection that nothing comes on for 75 s.
  static http::ClientOptions kept_connections() {
    return {.idle_age_max = std::chrono::seconds(60)};
  }
  RemoteSelector(Options options, const Around& around);
  ~RemoteSelector() override;  // as stop()
  RemoteSelector(const RemoteSelector&) = delete;
  RemoteSelector& operator=(const RemoteSelector&) = delete;

  void start();
  // Tells what is still to be told, and waits for what runs: about ask_time at most. Idempotent.
  void stop();

  // Errors: as the router's own; Unavailable with the reason where no router answers; OutOfDate as
  // Selector says, when served() tells another block size, or does not within ask_time.
  [[nodiscard]] Task<Result<selection::Selection>> select(
      const selection::Inquiry& inquiry) override;
  void first_token(selection::ReservationId reservation) override;
  void end(selection::ReservationId reservation, const selection::Ending& ending) override;
  [[nodiscard]] std::shared_ptr<fleet::LifeSign> life(
      selection::ReservationId reservation) override;
  [[nodiscard]] Task<Result<selection::Explanation>> explain(
      const selection::Inquiry& inquiry) override;

  // What the workers serve, as a router told last; of none yet: nothing is served.
  [[nodiscard]] std::shared_ptr<const fleet::Served> served() const { return served_.read(); }
  // Unavailable, with each router's trouble, if none can be asked or none has said what is served.
  [[nodiscard]] Result<Done> check() const;
  // Before each scrape.
  void refresh_metrics();

  [[nodiscard]] const Holdings& holdings() const { return holdings_; }

 private:
  // Something that runs on the pool and uses this object.
  class Running;
  // What is known of the talk with a router; on the first I/O thread only.
  struct Peer {
    bool is_talking = false;
    bool poll_due = true;
    bool list_due = false;
    std::vector<std::string> alive;  // workers to be told of
    std::string tag;                 // of what it told last
  };
  struct Asked {
    std::string target;
    std::function<std::string(std::uint32_t attempt)> body;
    // Takes the body of a 200. Errors: it makes no sense, and another router is to be asked.
    std::function<Result<Done>(std::string, const Holdings::Place&)> take;
    std::size_t answer_bytes_max = Caller::kShortAnswerBytesMax;
  };

  // Until one answer is taken; questions as in select().
  Task<Result<Done>> ask(const Asked& asked);
  // Why no router has answered a question with a 200.
  struct Troubles {
    std::optional<Error> refused;  // by a router that has no worker to name: another may have
    std::string other;             // in words
    bool is_out_of_date = false;   // what the question rests on, as a router says
    std::string failed;            // why the last one that failed did
    std::optional<Router> slow;    // of those that were silent, the one that answered last
    Instant slow_until{};          // when it last did
  };
  struct Turn {
    const Router& router;
    std::uint32_t attempt = 0;
    Duration time_max{};
  };
  // How the question ends by this router's answer; nothing: another router may be asked.
  Task<std::optional<Result<Done>>> ask_one(const Asked& asked, const Turn& turn,
                                            Troubles& troubles);
  struct From {
    const Router& router;
    Holdings::Place place;
  };
  // How the question ends by this answer; nothing: another router may be asked.
  std::optional<Result<Done>> take(const Asked& asked, const From& from,
                                   Result<Caller::Answer> answer, Troubles& troubles);
  // What an answer says that is not taken. The router's own word, or nothing: another may be asked.
  std::optional<Error> refusal_of(const Router& router, const Caller::Answer& answer,
                                  Troubles& troubles);
  void mismatched(const Router& router, const std::string& message);
  // Until served() tells another block size, or the end.
  Task<void> await_news(std::uint32_t block_size, Instant end);
  // With Timeout it did not answer in time.
  void failed(const Router& router, const std::string& reason,
              ErrorCode code = ErrorCode::Unavailable);

  Task<void> drive();
  void take_turn(Instant now);
  void resolve();
  // The addresses of a router's name; as they were where nothing newer is known.
  const std::vector<http::ServerAddress>& find(std::size_t router);
  void move_held();
  void talk_if_due(const Router& router);
  Task<void> talk(Router router);
  Task<bool> poll(const Router& router);
  void log_state(const Router& router, const selection_json::Told& told) const;
  Task<bool> tell_notes(const Router& router);
  Task<bool> tell_list(const Router& router);
  enum class Put : std::uint8_t { Taken, Refused, Failed };
  // Refused: the router is well, and cannot read it.
  Task<Put> put(const Router& router, Caller::Question question);
  Task<void> tell_last_notes();
  void publish_served();
  void wake();
  void is_done();

  const Options options_;
  const Around around_;
  RouterTable table_;
  Holdings holdings_;
  Caller caller_;
  Published<fleet::Served> served_{std::make_shared<const fleet::Served>()};

  // On the first I/O thread only.
  std::map<std::uint64_t, Peer> peers_;                  // by the router's id
  std::vector<std::vector<http::ServerAddress>> found_;  // by the place in Options::routers
  Gate turn_;
  Instant poll_at_{};
  Instant asked_again_at_{};  // on must_poll_
  Instant list_at_{};
  Instant alive_at_{};
  bool is_stopping_ = false;

  std::atomic<bool> is_told_ = false;  // what is served
  std::atomic<bool> is_woken_ = false;
  std::atomic<bool> must_move_ = false;               // a router has failed
  std::atomic<bool> must_poll_ = false;               // what is known of the workers is out of date
  std::atomic<Instant> told_mismatch_at_{Instant{}};  // in the log
  std::uint64_t dropped_told_ = 0;                    // of the notes; scrapes come one by one
  Mutex mutex_;
  CondVar idle_;
  std::size_t running_ SL_GUARDED_BY(mutex_) = 0;
  bool is_started_ SL_GUARDED_BY(mutex_) = false;
};

}  // namespace sightline::remote_selector
