// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/rng.h"
#include "common/runtime/worker_thread.h"

#include "router/replicas/load_exchange/load_exchange.h"
#include "tests/support/eventually.h"
#include "tests/support/nats_server.h"

namespace sightline::load_exchange {

inline constexpr std::uint32_t kRanks = 6;

inline fleet::RankName rank_name(std::uint32_t rank) {
  return {"worker-" + std::to_string(rank / 2), rank % 2};
}

inline envelope::Sealer sealer() {
  return {contract::development_identity_key(),
          {.scope = "default/default", .revision = "0", .fingerprint = "f"}};
}

// All parts of one run of a router process that concern its load.
class Router {
 public:
  Router(const test::NatsServer& server, const std::string& scope, LoadExchangeOptions options = {},
         std::uint32_t ranks = kRanks)
      : book({.observer = LoadQueue::observer_of(queue),
              .source_timeout = options.others.silent_after}),
        subjects_(scope, "0"),
        supersede_(std::move(options.supersede)) {
    for (std::uint32_t rank = 0; rank < ranks; ++rank) cells.push_back(book.open(rank_name(rank)));
    contract::NatsSettings settings;
    settings.urls = server.url();
    auto made = nats::Connection::create({settings, "router", nats::Sending::AtOnce}, metrics,
                                         system_clock());
    if (!made.ok()) throw std::runtime_error(made.error().message);
    connection = std::move(*made);
    options.supersede = [this](const auto& names) {
      if (supersede_) supersede_(names);
    };
    exchange.emplace(
        LoadExchange::Me{.instance = instance, .name = "r"},
        LoadExchange::Deps{*connection, sealer_, subjects_, book, queue, metrics, system_clock()},
        std::move(options));
  }
  ~Router() {
    exchange.reset();
    connection.reset();
  }
  Router(const Router&) = delete;
  Router& operator=(const Router&) = delete;

  // Of all ranks, without recent work.
  [[nodiscard]] fleet::Load own() const { return sum(&fleet::LoadCell::own); }
  [[nodiscard]] fleet::Load read() const { return sum(&fleet::LoadCell::read); }
  [[nodiscard]] bool knows(std::size_t others) const {
    return test::eventually([&] { return exchange->sources() == others; });
  }
  // The value of a series, "load_gaps_total{seen_by=\"sequence\"}", -1 if it does not exist.
  [[nodiscard]] double value(const std::string& series) const {
    const std::string text = "\n" + metrics.scrape();
    const std::string wanted = "\nsightline_" + series + " ";
    const auto at = text.find(wanted);
    return at == std::string::npos ? -1 : std::stod(text.substr(at + wanted.size()));
  }

  const std::uint64_t instance = next_instance();
  std::shared_ptr<LoadQueue> queue = std::make_shared<LoadQueue>();
  fleet::LoadBook book;
  std::vector<std::shared_ptr<fleet::LoadCell>> cells;
  runtime::Metrics metrics;
  std::unique_ptr<nats::Connection> connection;
  std::optional<LoadExchange> exchange;

 private:
  static std::uint64_t next_instance() {
    static std::atomic<std::uint64_t> last = 100;
    return ++last;
  }
  fleet::Load sum(fleet::Load (fleet::LoadCell::*of)(Instant) const) const {
    fleet::Load sum;
    for (const auto& cell : cells) sum += ((*cell).*of)(system_clock().now());
    sum.recent_prefill_blocks = 0;
    return sum;
  }

  const envelope::Sealer sealer_ = sealer();
  const contract::Subjects subjects_;
  const Supersede supersede_;
};

// Requests that begin, get their first token and end at random.
class Requests {
 public:
  explicit Requests(std::uint64_t seed) : rng_(seed) {}

  Requests(Requests&& other) noexcept : rng_(other.rng_), work_(std::move(other.work_)) {}

  void step(Router& router) {
    ++steps_;
    const std::uint32_t dice = rng_.below(3);
    if (dice == 0 || work_.empty()) {
      const fleet::Booking booking{
          .prefill_tokens = rng_.below(1'000), .blocks = 1 + rng_.below(60), .block_size = 16};
      const auto& cell = router.cells[rng_.below(static_cast<std::uint32_t>(router.cells.size()))];
      work_.push_back(cell->reserve(booking, system_clock().now()));
      return;
    }
    auto& one = work_[rng_.below(static_cast<std::uint32_t>(work_.size()))];
    if (dice == 1) return one.first_token();
    std::swap(one, work_.back());
    work_.pop_back();
  }
  void end_all() { work_.clear(); }
  [[nodiscard]] std::uint64_t steps() const { return steps_; }

 private:
  Rng rng_;
  std::vector<fleet::BookedWork> work_;
  std::atomic<std::uint64_t> steps_ = 0;
};

// Routers of different scopes, which receive each other's messages only through this. It opens,
// drops, repeats and delays messages, and seals them again.
class Tap {
 public:
  struct Faults {
    std::uint32_t lost_percent = 0;
    std::uint32_t twice_percent = 0;
    std::uint32_t late_ms_max = 0;
  };

  Tap(const test::NatsServer& server, std::size_t routers, std::uint64_t seed)
      : rng_(seed), inbox_(std::make_shared<nats::Inbox>(nats::Inbox::Limits{})) {
    contract::NatsSettings settings;
    settings.urls = server.url();
    auto made = nats::Connection::create({settings, "tap", nats::Sending::AtOnce}, metrics_,
                                         system_clock());
    if (!made.ok()) throw std::runtime_error(made.error().message);
    connection_ = std::move(*made);
    for (std::size_t i = 0; i < routers; ++i) {
      subjects_.emplace_back(scope(i), "0");
      connection_->subscribe(subjects_[i].load(), inbox_);
      connection_->subscribe(subjects_[i].load_asks(), inbox_);
    }
    thread_.emplace("tap", [this](const std::stop_token& stop) { run(stop); });
  }
  ~Tap() {
    thread_.reset();
    connection_.reset();
  }
  Tap(const Tap&) = delete;
  Tap& operator=(const Tap&) = delete;

  static std::string scope(std::size_t router) { return "tap/r" + std::to_string(router); }
  [[nodiscard]] bool is_connected() const {
    return test::eventually([this] { return connection_->connected(); });
  }
  void set_faults(const Faults& faults) {
    const MutexLock lock(mutex_);
    faults_ = faults;
  }
  // Drops all messages of the router. It still receives those of others.
  void mute(std::size_t router, bool is_mute) {
    const MutexLock lock(mutex_);
    muted_[router] = is_mute;
  }
  // Drops takeovers. The totals' numbers show no gap then.
  void drop_takings(bool drops) {
    const MutexLock lock(mutex_);
    drops_takings_ = drops;
  }
  [[nodiscard]] std::uint64_t takings_dropped() const { return takings_dropped_; }
  [[nodiscard]] std::uint64_t lost() const { return lost_; }
  [[nodiscard]] std::uint64_t twice() const { return twice_; }
  [[nodiscard]] std::uint64_t late() const { return late_; }

 private:
  struct Packet {
    std::string subject;
    std::string bytes;
  };

  void run(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      const Instant now = system_clock().now();
      const auto event = inbox_->take(now + std::chrono::milliseconds(1));
      const auto* message = event ? std::get_if<nats::Message>(&*event) : nullptr;
      if (message != nullptr && own_.erase(message->payload) == 0) forward(*message);
      send();
    }
  }
  // Messages under way are sorted by their time.
  void forward(const nats::Message& message) {
    const MutexLock lock(mutex_);
    const auto opened = sealer_.open(message.subject, message.payload);
    const auto read = load::decode(std::get<std::string_view>(opened));
    if (drops_takings_ && read.ok() && std::holds_alternative<load::Takeover>(*read)) {
      ++takings_dropped_;
      return;
    }
    for (std::size_t from = 0; from < subjects_.size(); ++from) {
      const bool is_load = subjects_[from].load() == message.subject;
      if ((!is_load && subjects_[from].load_asks() != message.subject) || muted_[from]) continue;
      for (std::size_t to = 0; to < subjects_.size(); ++to) {
        if (to == from) continue;
        const std::string subject = is_load ? subjects_[to].load() : subjects_[to].load_asks();
        put({subject, sealer_.seal(subject, std::get<std::string_view>(opened))});
      }
    }
  }
  void put(const Packet& packet) SL_REQUIRES(mutex_) {
    if (rng_.below(100) < faults_.lost_percent) {
      ++lost_;
      return;
    }
    const bool is_twice = rng_.below(100) < faults_.twice_percent;
    if (is_twice) ++twice_;
    for (int copy = 0; copy < (is_twice ? 2 : 1); ++copy) {
      const std::uint32_t late = faults_.late_ms_max == 0 ? 0 : rng_.below(faults_.late_ms_max);
      if (late > 0) ++late_;
      waiting_.emplace(system_clock().now() + std::chrono::milliseconds(late), packet);
    }
  }
  void send() {
    const MutexLock lock(mutex_);
    while (!waiting_.empty() && waiting_.begin()->first <= system_clock().now()) {
      const Packet& packet = waiting_.begin()->second;
      if (connection_->publish(packet.subject, packet.bytes)) own_.insert(packet.bytes);
      waiting_.erase(waiting_.begin());
    }
  }

  Rng rng_;
  const envelope::Sealer sealer_ = sealer();
  std::vector<contract::Subjects> subjects_;
  std::shared_ptr<nats::Inbox> inbox_;
  runtime::Metrics metrics_;
  std::unique_ptr<nats::Connection> connection_;
  std::multiset<std::string> own_;  // forwarded ones, which arrive here too. The thread's own.
  std::atomic<std::uint64_t> lost_ = 0;
  std::atomic<std::uint64_t> twice_ = 0;
  std::atomic<std::uint64_t> late_ = 0;
  std::atomic<std::uint64_t> takings_dropped_ = 0;
  Mutex mutex_;
  Faults faults_ SL_GUARDED_BY(mutex_);
  bool drops_takings_ SL_GUARDED_BY(mutex_) = false;
  std::map<std::size_t, bool> muted_ SL_GUARDED_BY(mutex_);
  std::multimap<Instant, Packet> waiting_ SL_GUARDED_BY(mutex_);
  std::optional<WorkerThread> thread_;
};

}  // namespace sightline::load_exchange
