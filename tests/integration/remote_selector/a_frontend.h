// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "common/http/server.h"

#include "router/cache/index/exact_index.h"
#include "router/front/remote_selector/remote_selector.h"
#include "router/front/selection/local_selector.h"
#include "router/front/selection_api/selection_api.h"
#include "tests/fakes/run_task.h"
#include "tests/support/told_fleet.h"

// A frontend's selector, and routers on their own ports, for tests.
namespace sightline::remote_selector {

inline constexpr std::uint32_t kBlockSize = test::ToldFleet::kBlockSize;

inline std::vector<keys::BlockKey> some_keys() {
  return {{1}, {2}, {3}, {4}, {5}, {6}, {7}, {8}, {9}, {10}};
}

// A router of the workers a and b on its own port. It holds the prompt on b.
class RouterAtPort {
 public:
  explicit RouterAtPort(const std::string& identity = "k", std::uint16_t port = 0,
                        const std::string& host = "127.0.0.1")
      : api({.pool = pool,
             .selector = selector,
             .fleet = fleet,
             .scheme = scheme,
             .metrics = metrics,
             .clock = system_clock(),
             .served = [this] { return served.read(); },
             .adopt = [this](const selection::Adoption& work) { return selector.adopt(work); },
             .tokens = nullptr},
            {.identity = identity, .scope_model = "m", .leases = {}, .on_taken = {}}) {
    workers.add("a");
    workers.add("b");
    index.store(workers.caches.at("b"), operations::Tier::Gpu, some_keys());
    auto answer = [this](http::Request& request, http::ResponseWriter& peer) -> Task<void> {
      auto response = co_await api.answer(request);
      const auto sent = co_await peer.send(std::move(response));
      static_cast<void>(sent);
    };
    server =
        std::move(*http::Server::create(pool, {.host = host, .port = port}, std::move(answer)));
  }
  ~RouterAtPort() {
    server.reset();
    pool.stop();
  }

  [[nodiscard]] http::ServerAddress address() const { return {"127.0.0.1", server->port()}; }
  [[nodiscard]] fleet::Load load(const std::string& worker) const { return workers.load(worker); }
  [[nodiscard]] std::uint32_t in_flight() const {
    return load("a").in_flight + load("b").in_flight;
  }

  runtime::Metrics metrics;
  test::ToldFleet workers{metrics, system_clock()};
  fleet::Fleet& fleet = workers.fleet;
  index::ExactIndex index;
  index::RemovalJournal removals;
  Published<contract::ServeSettings> settings{std::make_shared<const contract::ServeSettings>()};
  std::atomic<std::uint64_t> predicted = 0;  // of the last compared answer
  keys::Scheme scheme{contract::development_identity_key()};
  selection::LocalSelector selector{
      {.settings = settings,
       .fleet = fleet,
       .index = index,
       .removals = removals,
       .compare = [this](const audit::Answered& a) { predicted = a.predicted; },
       .metrics = metrics,
       .clock = system_clock()}};
  fleet::ServedView served{fleet};
  IoPool pool{{.io_threads = 1, .compute_threads = 0}};
  selection_api::SelectionApi api;
  std::unique_ptr<http::Server> server;
};

class AFrontend : public testing::Test {
 protected:
  Duration call_time = RemoteSelector::Options{}.call_time;
  Duration ask_time = RemoteSelector::Options{}.ask_time;

  // Waits until one of the routers has reported its models, if one should.
  void ask_of(const std::vector<http::ServerAddress>& routers, bool is_found = true) {
    selector = std::make_unique<RemoteSelector>(
        RemoteSelector::Options{.routers = routers,
                                .instance = instance,
                                .identity = "k",
                                .poll_interval = std::chrono::milliseconds(50),
                                .renew_interval = std::chrono::milliseconds(50),
                                .call_time = call_time,
                                .ask_time = ask_time},
        RemoteSelector::Deps{pool, names, nullptr, metrics, system_clock()});
    selector->start();
    if (!is_found) return;
    EXPECT_TRUE(fakes::eventually([&] { return selector->check().ok(); }));
  }
  void TearDown() override {
    stop();
    names.stop();
    pool.stop();
    stopped.clear();
  }
  static selection::Inquiry inquiry() {
    selection::Inquiry asked;
    asked.keys = std::make_shared<const std::vector<keys::BlockKey>>(some_keys());
    asked.job = {.prompt_tokens = 165, .block_size = kBlockSize};
    asked.first_prompt_tokens = 165;
    asked.is_exact = true;
    return asked;
  }
  Result<selection::Selection> select() {
    Result<selection::Selection> result = Error{};
    fakes::run_task(pool, [&]() -> Task<void> {
      const auto asked = inquiry();
      auto selected = co_await selector->select(asked);
      result = std::move(selected);
    });
    return result;
  }

  IoPool pool{{.io_threads = 2, .compute_threads = 0}};
  // The name "routers" has two addresses, other names have no address.
  static void look_up(const std::string& name, const hosts::Lookup::Done& done) {
    if (name != "routers") return done({.addresses = {}, .trouble = hosts::LookupFailure::Unknown});
    done({.addresses = {asio::ip::make_address("127.0.0.1"), asio::ip::make_address("127.0.0.2")}});
  }

  hosts::Lookup names{{}, look_up, system_clock(), nullptr};
  runtime::Metrics metrics;
  // Its open connections to routers end when the pool has stopped.
  void stop() {
    if (!selector) return;
    selector->stop();
    stopped.push_back(std::move(selector));
  }

  std::string instance = "f";
  std::unique_ptr<RemoteSelector> selector;
  std::vector<std::unique_ptr<RemoteSelector>> stopped;
};

}  // namespace sightline::remote_selector
