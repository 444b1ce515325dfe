// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "tests/bench/replicas/simulation.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "common/base/check.h"
#include "common/base/rng.h"

#include "tests/bench/replicas/router.h"
#include "tests/bench/replicas/timeline.h"

namespace sightline::quality {
namespace {

constexpr Duration kSampleInterval = std::chrono::milliseconds(250);
constexpr Duration kScrapeInterval = std::chrono::seconds(1);
constexpr Duration kSnapshotInterval = std::chrono::seconds(1);
// The time after the last request in which lost messages are repeated.
constexpr Duration kQuiet = std::chrono::minutes(1);

double seconds(Duration time) { return std::chrono::duration<double>(time).count(); }

class Simulation {
 public:
  Simulation(const Trace& trace, const Scenario& scenario)
      : trace_(trace), scenario_(scenario), chance_(scenario.seed) {
    const std::uint32_t routers = scenario.routers;
    SL_CHECK(routers > 0 && scenario.engines > 0 && !trace.empty());
    for (std::uint32_t i = 0; i < scenario.engines; ++i) make_engine(i);
    for (std::uint32_t i = 0; i < routers; ++i) make_router(i);
    first_router_ = chance_.below(routers);
    arrived_.resize(trace.size());
    chosen_.resize(trace.size());
  }

  Outcome run() {
    for (std::uint64_t i = 0; i < trace_.size(); ++i) {
      timeline_.at(time_of(trace_[i]), [this, i] { arrive(i); });
    }
    every(kSampleInterval, {}, [this] { sample(); });
    for (std::uint32_t i = 0; i < routers_.size(); ++i) {
      // Each process has its own phase within the second.
      every(kSnapshotInterval, some(kSnapshotInterval), [this, i] { routers_[i]->tell_all(); });
      every(kScrapeInterval, some(kScrapeInterval), [this, i] { scrape(*routers_[i]); });
    }
    timeline_.run();
    return outcome();
  }

 private:
  [[nodiscard]] Instant time_of(const TracedRequest& request) const {
    return Instant(Duration(
        static_cast<Duration::rep>(static_cast<double>(request.at.count()) / scenario_.speed)));
  }
  Duration some(Duration most) {
    return Duration(static_cast<Duration::rep>(chance_.unit() * static_cast<double>(most.count())));
  }
  // Repeats the action until all has been quiet for a while.
  void every(Duration interval, Duration first, const std::function<void()>& action) {
    timeline_.after(first, [=, this] {
      if (ended_ == trace_.size() && timeline_.now() - last_end_ > kQuiet) return;
      action();
      every(interval, interval, action);
    });
  }
  SimulatedRouter& router_of(std::uint64_t request) {
    return *routers_[(request + first_router_) % routers_.size()];
  }

  void make_engine(std::uint32_t number) {
    const Duration back = scenario_.answer_delay;
    engines_.push_back(std::make_unique<SimulatedEngine>(
        scenario_.engine, timeline_,
        SimulatedEngine::Told{
            .first_token =
                [this, back](std::uint64_t request, std::uint32_t hit) {
                  outcome_.hit_tokens += hit;
                  timeline_.after(back, [this, request] { first_token(request); });
                },
            .end =
                [this, back](std::uint64_t request) {
                  timeline_.after(back, [this, request] { end(request); });
                },
            .changed = [this,
                        number](CacheChange change) { announce(number, std::move(change)); }}));
  }

  void make_router(std::uint32_t number) {
    SimulatedRouter::Options options{.number = number,
                                     .engines = scenario_.engines,
                                     .seed = scenario_.seed * 1'000 + number,
                                     .routing = scenario_.routing,
                                     .load_batch = scenario_.load_batch};
    if (scenario_.shares_load) {
      options.tell = [this, number](const std::vector<ToldLoad>& told) { pass_on(number, told); };
    }
    routers_.push_back(std::make_unique<SimulatedRouter>(std::move(options), timeline_));
  }

  void arrive(std::uint64_t i) {
    arrived_[i] = timeline_.now();
    chosen_[i] = router_of(i).choose(i, trace_[i]);
    timeline_.after(scenario_.answer_delay,
                    [this, i] { engines_[chosen_[i]]->submit(i, trace_[i]); });
  }
  void first_token(std::uint64_t i) {
    router_of(i).first_token(i);
    outcome_.first_token.push_back(timeline_.now() - arrived_[i]);
  }
  void end(std::uint64_t i) {
    router_of(i).end(i);
    ++ended_;
    last_end_ = timeline_.now();
  }

  void announce(std::uint32_t engine, CacheChange change) {
    const auto shared = std::make_shared<const CacheChange>(std::move(change));
    for (const auto& router : routers_) {
      timeline_.after(scenario_.event_delay,
                      [&router = *router, engine, shared] { router.apply(engine, *shared); });
    }
  }
  void pass_on(std::uint32_t from, const std::vector<ToldLoad>& told) {
    for (std::uint32_t to = 0; to < routers_.size(); ++to) {
      if (to == from || chance_.unit() < scenario_.load_loss) continue;
      timeline_.after(scenario_.load_delay,
                      [this, from, to, told] { routers_[to]->hear(std::to_string(from), told); });
    }
  }

  void scrape(SimulatedRouter& router) {
    for (std::uint32_t i = 0; i < engines_.size(); ++i) {
      router.set_kv_usage(i, engines_[i]->kv_usage());
    }
  }
  void sample() {
    if (ended_ == trace_.size()) return;
    std::uint64_t most = 0;
    std::uint64_t all = 0;
    for (const auto& engine : engines_) {
      most = std::max(most, engine->backlog_tokens());
      all += engine->backlog_tokens();
    }
    const double mean = static_cast<double>(all) / static_cast<double>(engines_.size());
    beyond_mean_tokens_ += static_cast<double>(most) - mean;
    ++samples_;
  }

  Outcome outcome() {
    SL_CHECK(outcome_.first_token.size() == trace_.size());
    outcome_.requests = trace_.size();
    for (const TracedRequest& request : trace_) outcome_.prompt_tokens += request.prompt_tokens;
    std::sort(outcome_.first_token.begin(), outcome_.first_token.end());
    outcome_.imbalance_s = beyond_mean_tokens_ / static_cast<double>(std::max(samples_, 1U)) /
                           scenario_.engine.prefill_capacity();
    double busy_s = 0;
    outcome_.indexes_equal_engines = true;
    outcome_.load_is_zero = true;
    for (std::uint32_t i = 0; i < engines_.size(); ++i) {
      const SimulatedEngine& engine = *engines_[i];
      busy_s +=
          static_cast<double>(engine.computed_tokens()) / scenario_.engine.prefill_capacity() +
          static_cast<double>(engine.decoded_tokens()) * seconds(scenario_.engine.decode_token);
      for (const auto& router : routers_) compare(*router, i);
    }
    outcome_.load = busy_s / static_cast<double>(engines_.size()) /
                    seconds(time_of(trace_.back()) - time_of(trace_.front()));
    return std::move(outcome_);
  }
  void compare(const SimulatedRouter& router, std::uint32_t engine) {
    if (router.index().held(CacheId{engine}, index::Tier::Gpu) != engines_[engine]->held()) {
      outcome_.indexes_equal_engines = false;
    }
    if (router.load(engine).in_flight != 0) outcome_.load_is_zero = false;
  }

  const Trace& trace_;
  const Scenario scenario_;
  Rng chance_;
  Timeline timeline_;
  std::vector<std::unique_ptr<SimulatedEngine>> engines_;
  std::vector<std::unique_ptr<SimulatedRouter>> routers_;
  std::uint32_t first_router_ = 0;
  std::vector<Instant> arrived_;
  std::vector<std::uint32_t> chosen_;
  std::size_t ended_ = 0;
  Instant last_end_{};
  double beyond_mean_tokens_ = 0;
  std::uint32_t samples_ = 0;
  Outcome outcome_;
};

}  // namespace

double Outcome::hit_share() const {
  return static_cast<double>(hit_tokens) /
         static_cast<double>(std::max<std::uint64_t>(prompt_tokens, 1));
}

Duration Outcome::first_token_at(double share) const {
  SL_CHECK(!first_token.empty());
  return first_token[static_cast<std::size_t>(share * static_cast<double>(first_token.size() - 1))];
}

Outcome simulate(const Trace& trace, const Scenario& scenario) {
  return Simulation(trace, scenario).run();
}

// At a higher speed a little less is found in caches, so the load is not proportional. A few
// iterations are enough.
double speed_for(const Trace& trace, Scenario scenario, double load) {
  for (int i = 0; i < 4; ++i) scenario.speed *= load / simulate(trace, scenario).load;
  return scenario.speed;
}

}  // namespace sightline::quality
