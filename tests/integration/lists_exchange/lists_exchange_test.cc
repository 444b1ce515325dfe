// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/replicas/lists_exchange/lists_exchange.h"

#include <atomic>

#include <gtest/gtest.h>

#include "router/front/push/worker_lists.h"
#include "tests/support/eventually.h"
#include "tests/support/nats_server.h"

namespace sightline::lists_exchange {
namespace {

using contract::WorkerSpec;
using test::eventually;
using test::NatsServer;

std::string body_of(std::uint64_t generation, std::size_t workers) {
  std::string body =
      R"({"revision":"0","generation":)" + std::to_string(generation) + R"(,"workers":[)";
  for (std::size_t i = 0; i < workers; ++i) {
    body += (i == 0 ? "" : ",") + std::string(R"({"name":"w)") + std::to_string(i) +
            R"(","url":"http://host)" + std::to_string(i) + R"(:8000"})";
  }
  return body + "]}";
}

// The lists of one router, and their exchange with others.
struct Router {
  Router(const NatsServer& server, std::uint64_t number, const envelope::SealScope& scope = {})
      : instance(number),
        sealer(contract::development_identity_key(),
               {"default/default", scope.revision, scope.fingerprint}) {
    contract::NatsSettings settings;
    settings.urls = server.url();
    auto made = nats::Connection::create({settings, "test", nats::Sending::AtOnce}, metrics,
                                         system_clock());
    if (made.ok()) connection = std::move(*made);
    lists.boot(std::vector<WorkerSpec>{*contract::parse_worker("name=boot,url=http://boot:1")},
               true);
    exchange = std::make_unique<ListsExchange>(
        ListsExchange::Deps{*connection, sealer, subjects, instance, instance * 977, metrics,
                            system_clock()},
        ListsExchange::Hooks{
            .own = [this] { return own(); },
            .announced = [this] { return std::set<std::uint64_t>{announced.load()}; },
            .offer =
                [this](std::string body) {
                  static_cast<void>(lists.offer(std::move(body), lists::ListSource::Peers));
                },
            .does_without = [this] { lists.boot_without_peers(); }});
  }

  [[nodiscard]] Own own() const {
    const auto now = lists.in_force();
    if (!now->pushed) return {};
    return {now->generation(), now->pushed->digest,
            std::shared_ptr<const std::string>(now->pushed, &now->pushed->body)};
  }
  void push(const std::string& body) {
    ASSERT_TRUE(lists.offer(body, lists::ListSource::Push).ok());
    exchange->own_changed();
  }
  [[nodiscard]] bool comes_to(lists::ListSource source, std::size_t workers) const {
    return eventually([&] {
      const auto now = lists.in_force();
      return now->source == source && now->workers.size() == workers;
    });
  }
  [[nodiscard]] bool counts(const std::string& result) const {
    return eventually([&] {
      return metrics.scrape().find("sightline_pushes_total{what=\"peers\",result=\"" + result) !=
             std::string::npos;
    });
  }

  const std::uint64_t instance;
  mutable runtime::Metrics metrics;
  const contract::Subjects subjects{"default/default", "0"};
  const envelope::Sealer sealer;
  std::unique_ptr<nats::Connection> connection;
  std::atomic<std::uint64_t> announced = 0;
  push::WorkerLists lists{{.revision = "0",
                           .hand_over = [](std::vector<WorkerSpec>) {},
                           .on_taken = nullptr,
                           .metrics = metrics}};
  std::unique_ptr<ListsExchange> exchange;
};

TEST(ListsOverNats, ALoneRouterUsesTheFilesWorkers) {
  const NatsServer server;
  const Router router(server, 1);
  EXPECT_TRUE(router.comes_to(lists::ListSource::File, 1));
}

TEST(ListsOverNats, ARestartedRouterUsesItsPeersNewestList) {
  const NatsServer server;
  Router first(server, 1);
  Router second(server, 2);
  first.push(body_of(4, 3));
  second.push(body_of(5, 10'000));
  const Router restarted(server, 3);
  EXPECT_TRUE(restarted.comes_to(lists::ListSource::Peers, 10'000));
  const std::string text = restarted.metrics.scrape();
  EXPECT_EQ(text.find("sightline_worker_list_source{source=\"file\"} 1"), std::string::npos);
  // A router that receives the newer generation's number fetches its list soon.
  first.announced = 5;
  EXPECT_TRUE(first.comes_to(lists::ListSource::Peers, 10'000));
  EXPECT_EQ(first.lists.in_force()->pushed->digest, second.lists.in_force()->pushed->digest);
}

TEST(ListsOverNats, CountsAndIgnoresMessagesOfOtherKeysAndModels) {
  const NatsServer server;
  Router other_model(server, 1, {.scope = {}, .revision = "0", .fingerprint = "other"});
  other_model.push(body_of(7, 2));
  const Router router(server, 2);
  EXPECT_TRUE(router.comes_to(lists::ListSource::File, 1));
  EXPECT_TRUE(other_model.counts("forged"));
  const std::string subject = router.subjects.lists(2);
  ASSERT_TRUE(eventually([&] { return other_model.connection->connected(); }));
  other_model.connection->publish(subject, router.sealer.seal(subject, "no message"));
  EXPECT_TRUE(router.counts("malformed"));
}

TEST(ListsOverNats, AListPassesServersThatTakeSmallMessages) {
  const NatsServer server("max_payload: 4096");
  Router first(server, 1);
  first.push(body_of(4, 1'000));
  const Router second(server, 2);
  EXPECT_TRUE(second.comes_to(lists::ListSource::Peers, 1'000));
}

TEST(ListsOverNats, TheNewestListArrivesWhenNatsReturns) {
  NatsServer server;
  Router first(server, 1);
  const Router second(server, 2);
  EXPECT_TRUE(first.comes_to(lists::ListSource::File, 1));
  EXPECT_TRUE(second.comes_to(lists::ListSource::File, 1));
  server.kill();
  ASSERT_TRUE(eventually([&] { return !second.connection->connected(); }));
  first.push(body_of(9, 4));
  server.start();
  EXPECT_TRUE(second.comes_to(lists::ListSource::Peers, 4));
}

}  // namespace
}  // namespace sightline::lists_exchange
