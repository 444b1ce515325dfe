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

// The router role in other processes, over the selection API. A question goes to this frontend's
// first router (RouterTable). If that router does not answer or has no worker, the next one is
// asked, as a later attempt of the same reservation. This ends with an answer, when all have
// refused, or after ask_time. First tokens and ends are sent in batches, soon after they occur. The
// list of all reservations is sent every renew_interval, and soon after a router failed. Its
// reservations are then held at the next router. The list also repairs lost notes.
// Runs on the pool's first I/O thread between start() and stop(). Thread safety: call select(),
// explain() and life() on I/O threads, start() and stop() on main, the others on any thread.
class RemoteSelector : public selection::Selector {
 public:
  struct Options {
    std::vector<http::ServerAddress> routers;  // a name represents each of its addresses
    std::string instance;                      // the name of this process, as in leases::Name
    std::string identity;                      // the settings that its block keys depend on
    Duration poll_interval = std::chrono::seconds(1);
    Duration renew_interval = std::chrono::seconds(5);
    Duration call_time = std::chrono::milliseconds(400);  // for one router
    Duration ask_time = std::chrono::milliseconds(800);   // for a question, at all of them
    // More time for a router that has been silent for less than this. It may be slow, not gone.
    Duration patience = std::chrono::seconds(5);
  };
  // All must live longer. Stop `names` before the pool is destroyed.
  struct Deps {
    IoPool& pool;
    hosts::Lookup& names;
    runtime::TokenFile* tokens;  // null: no token is sent
    runtime::Metrics& metrics;
    const Clock& clock;
    http::ClientOptions connections = kept_connections();
  };
  // Less than the 75 s for which a router keeps an idle connection.
  static http::ClientOptions kept_connections() {
    return {.idle_age_max = std::chrono::seconds(60)};
  }
  RemoteSelector(Options options, const Deps& deps);
  ~RemoteSelector() override;  // calls stop()
  RemoteSelector(const RemoteSelector&) = delete;
  RemoteSelector& operator=(const RemoteSelector&) = delete;

  void start();
  // Sends the last notes and waits for what still runs, at most about ask_time. Idempotent.
  void stop();

  // Errors: the router's own. Unavailable with the reason if no router answers. OutOfDate as in
  // Selector, when served() has the new block size, or after ask_time.
  [[nodiscard]] Task<Result<selection::Selection>> select(
      const selection::Inquiry& inquiry) override;
  void first_token(selection::ReservationId reservation) override;
  void end(selection::ReservationId reservation, const selection::Ending& ending) override;
  [[nodiscard]] std::shared_ptr<fleet::LifeSign> life(
      selection::ReservationId reservation) override;
  [[nodiscard]] Task<Result<selection::Explanation>> explain(
      const selection::Inquiry& inquiry) override;

  // What the workers serve, as a router last reported. Before the first report it is empty.
  [[nodiscard]] std::shared_ptr<const fleet::Served> served() const { return served_.read(); }
  // Unavailable, with each router's fault, if no router can be asked or no router has reported.
  [[nodiscard]] Result<Done> check() const;
  // Call it before each scrape.
  void refresh_metrics();

  [[nodiscard]] const Holdings& holdings() const { return holdings_; }

 private:
  // Something that runs on the pool and uses this object.
  class Running;
  // The exchange with one router. Only for the first I/O thread.
  struct Peer {
    bool is_talking = false;
    bool poll_due = true;
    bool list_due = false;
    std::vector<std::string> alive;  // workers to report
    std::string tag;                 // entity tag of its last report
  };
  struct RouterQuery {
    std::string target;
    std::function<std::string(std::uint32_t attempt)> body;
    // Reads the body of a 200. If it fails, another router is asked.
    std::function<Result<Done>(std::string, const Holdings::RouterAttempt&)> take;
    std::size_t answer_bytes_max = Caller::kShortAnswerBytesMax;
  };

  // Asks until one answer is accepted. Questions are as in select().
  Task<Result<Done>> ask(const RouterQuery& asked);
  // Why no router has answered a question with 200.
  struct Troubles {
    std::optional<Error> refused;  // by a router without a worker: others may have one
    std::string other;             // other reasons, in words.
    bool is_out_of_date = false;   // a router says that the question is out of date.
    std::string failed;            // the last failure.
    std::optional<Router> slow;    // of the silent routers, the last one that answered
    Instant slow_until{};          // the time of that answer
  };
  struct Attempt {
    const Router& router;
    std::uint32_t attempt = 0;
    Duration time_max{};
  };
  // Returns how the question ends. Nothing means that another router may be asked.
  Task<std::optional<Result<Done>>> ask_one(const RouterQuery& asked, const Attempt& turn,
                                            Troubles& troubles);
  struct From {
    const Router& router;
    Holdings::RouterAttempt place;
  };
  // As ask_one(), for an answer.
  std::optional<Result<Done>> take(const RouterQuery& asked, const From& from,
                                   Result<Caller::RouterAnswer> answer, Troubles& troubles);
  // Returns a router's error that ends the question, or nothing.
  std::optional<Error> refusal_of(const Router& router, const Caller::RouterAnswer& answer,
                                  Troubles& troubles);
  void mismatched(const Router& router, const std::string& message);
  // Waits until served() has another block size, or until the end.
  Task<void> await_news(std::uint32_t block_size, Instant end);
  // The code Timeout means that it did not answer in time.
  void failed(const Router& router, const std::string& reason,
              ErrorCode code = ErrorCode::Unavailable);

  Task<void> drive();
  void take_turn(Instant now);
  void resolve();
  // Returns the addresses of a router's name. Without newer ones it returns the old ones.
  const std::vector<http::ServerAddress>& find(std::size_t router);
  void move_held();
  void talk_if_due(const Router& router);
  Task<void> talk(Router router);
  Task<bool> poll(const Router& router);
  void log_state(const Router& router, const selection_json::WorkersReport& told) const;
  Task<bool> tell_notes(const Router& router);
  Task<bool> tell_list(const Router& router);
  enum class Put : std::uint8_t { Taken, Refused, Failed };
  // Refused means that the router works, but cannot read the request.
  Task<Put> put(const Router& router, Caller::RouterRequest question);
  Task<void> tell_last_notes();
  void publish_served();
  void wake();
  void is_done();

  const Options options_;
  const Deps deps_;
  RouterTable table_;
  Holdings holdings_;
  Caller caller_;
  Published<fleet::Served> served_{std::make_shared<const fleet::Served>()};

  // On the first I/O thread only.
  std::map<std::uint64_t, Peer> peers_;                  // by the router's id
  std::vector<std::vector<http::ServerAddress>> found_;  // by the index in Options::routers
  Gate turn_;
  Instant poll_at_{};
  Instant asked_again_at_{};  // because of must_poll_
  Instant list_at_{};
  Instant alive_at_{};
  bool is_stopping_ = false;

  std::atomic<bool> is_told_ = false;  // a router has reported.
  std::atomic<bool> is_woken_ = false;
  std::atomic<bool> must_move_ = false;               // a router has failed.
  std::atomic<bool> must_poll_ = false;               // the report about workers is out of date.
  std::atomic<Instant> told_mismatch_at_{Instant{}};  // time of the last log line
  std::uint64_t dropped_told_ = 0;  // notes already counted. Only the scrape uses it
  Mutex mutex_;
  CondVar idle_;
  std::size_t running_ SL_GUARDED_BY(mutex_) = 0;
  bool is_started_ SL_GUARDED_BY(mutex_) = false;
};

}  // namespace sightline::remote_selector
