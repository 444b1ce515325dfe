// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include <map>

#include "router/engine/vllm/vllm.h"
#include "tests/unit/router/cache/subscriber/publisher.h"

namespace sightline::subscriber {
namespace {

using std::chrono::milliseconds;

// Engines with host names, and name servers that the test controls.
class NamedEngines : public SubscriberTest {
 protected:
  NamedEngines() {
    options.names = &names_;
    options.follow.find_again = milliseconds(20);
    options.follow.confirm_after = kPatience;
  }
  ~NamedEngines() override {
    subscriber_.reset();
    names_.stop();
  }

  void set(const std::string& name, const std::vector<std::string>& addresses,
           hosts::LookupFailure trouble = hosts::LookupFailure::None) {
    hosts::Resolved found{.trouble = trouble};
    for (const auto& address : addresses) {
      found.addresses.push_back(asio::ip::make_address(address));
    }
    std::vector<hosts::Lookup::Done> waiting;
    {
      const std::lock_guard lock(names_mutex_);
      known_[name] = found;
      waiting.swap(silent_[name]);
    }
    for (const auto& done : waiting) done(found);
  }
  [[nodiscard]] bool is_asked(const std::string& name) {
    const std::lock_guard lock(names_mutex_);
    return !silent_[name].empty();
  }
  void await_health(FeedHealth health) {
    await([&] { return status().facts.health == health; });
  }

  // The same endpoint by name.
  static std::string named(std::string endpoint, const std::string& name) {
    const std::string host = "127.0.0.1";
    return endpoint.replace(endpoint.find(host), host.size(), name);
  }
  // The same port of another loopback address.
  static std::string beside(const std::string& endpoint) { return named(endpoint, "127.0.0.2"); }

  // Follows an engine by its name, at its first address. Returns the endpoint of its events.
  std::string follow_first() {
    start();
    first_ = std::make_unique<Publisher>();
    const auto events = first_->bind_events();
    set("engine", {"127.0.0.1"});
    follow({.events = named(events, "engine")});
    first_->await_subscriber();
    return events;
  }

  std::unique_ptr<Publisher> first_;

 private:
  void ask(const std::string& name, const hosts::Lookup::Done& done) {
    hosts::Resolved found;
    {
      const std::lock_guard lock(names_mutex_);
      const auto known = known_.find(name);
      if (known == known_.end()) {
        silent_[name].push_back(done);
        return;
      }
      found = known->second;
    }
    done(found);
  }

  std::mutex names_mutex_;  // guards the next two
  std::map<std::string, hosts::Resolved> known_;
  std::map<std::string, std::vector<hosts::Lookup::Done>> silent_;
  hosts::Lookup names_{
      {.good_age_max = milliseconds(1),
       .retry_after = milliseconds(1),
       .retry_after_max = milliseconds(1)},
      [this](const std::string& name, const hosts::Lookup::Done& done) { ask(name, done); },
      system_clock(),
      nullptr};
};

TEST_F(NamedEngines, AreFollowedOnceResolvedWithoutDelayingOthers) {
  start();
  Publisher other;
  subscriber_->add({.events = named(other.bind_events(), "hangs")},
                   {.id = CacheId{9}, .format = &vllm::vllm(), .model = "m"});
  const auto events = publisher_.bind_events();
  follow({.events = named(events, "slow")});
  await([&] { return is_asked("hangs") && is_asked("slow"); });
  EXPECT_EQ(status().facts.health, FeedHealth::Waiting);
  set("slow", {"127.0.0.1"});
  publisher_.await_subscriber();
  publisher_.publish(0);
  await_sequence(0);
  EXPECT_EQ(subscriber_->status(CacheId{9})->facts.health, FeedHealth::Waiting);
}

TEST_F(NamedEngines, SayWhyThereIsNoAddress) {
  start();
  set("engine", {}, hosts::LookupFailure::Unanswered);
  follow({.events = named(publisher_.bind_events(), "engine")});
  await_health(FeedHealth::NameUnanswered);
  set("engine", {}, hosts::LookupFailure::Unknown);
  await_health(FeedHealth::NameUnknown);
  set("engine", {"127.0.0.1"});
  await_verified();
}

TEST_F(NamedEngines, AreFoundAtAnotherAddressWhenTheyComeBack) {
  const auto events = follow_first();
  first_->publish(0);
  await_sequence(0);
  first_.reset();
  await_health(FeedHealth::Disconnected);
  publisher_.time_s = 2.0;
  publisher_.bind_events(beside(events));
  set("engine", {"127.0.0.2"});
  publisher_.await_subscriber();
  publisher_.publish(0);
  await([&] { return status().batch_timestamp_s == 2.0; });
  EXPECT_EQ(status().connections_lost, 1U);
}

TEST_F(NamedEngines, LeaveAnotherEnginesAddressAndDropItsBlocks) {
  options.follow.confirm_after = milliseconds(20);
  start();
  Publisher other;
  const auto events = other.bind_events();
  publisher_.bind_events(beside(events));
  set("engine", {"127.0.0.1"});
  follow({.events = named(events, "engine")});
  other.await_subscriber();
  other.publish(0);
  await_sequence(0);
  set("engine", {"127.0.0.2"});
  publisher_.await_subscriber();
  await([&] { return index_.blocks(kEngine) == 0; });
  EXPECT_EQ(status().connections_lost, 1U);
}

TEST_F(NamedEngines, LeaveTheirOldAddressWhenTheNameIsGone) {
  const auto events = follow_first();
  set("engine", {}, hosts::LookupFailure::Unknown);
  first_.reset();
  await_health(FeedHealth::NameUnknown);
  publisher_.bind_events(events);
  Publisher moved;
  moved.bind_events(beside(events));
  set("engine", {"127.0.0.2"});
  moved.await_subscriber();
  await_verified();
  moved.publish(0);
  await_sequence(0);
}

TEST_F(NamedEngines, KeepTheLastGoodAddressWithoutNameServers) {
  const auto events = follow_first();
  await_verified();
  set("engine", {}, hosts::LookupFailure::Unanswered);
  first_.reset();
  await_health(FeedHealth::Disconnected);
  publisher_.bind_events(events);
  await_verified();
}

TEST_F(NamedEngines, OfSeveralAddressesAreTriedAtEachInTurn) {
  options.follow.find_again = milliseconds(200);  // long enough for a handshake
  start();
  set("engine", {"127.0.0.3", "127.0.0.2", "127.0.0.1"});
  follow({.events = named(publisher_.bind_events(), "engine")});
  publisher_.await_subscriber();
  await_verified();
}

TEST_F(NamedEngines, AreAskedForReplaysByNameToo) {
  start();
  set("engine", {"127.0.0.1"});
  const auto replay = named(publisher_.bind_replay(), "replays");
  follow({.events = named(publisher_.bind_events(), "engine"), .replay = replay});
  await([&] { return is_asked("replays"); });
  EXPECT_EQ(status().facts.health, FeedHealth::Replaying);
  set("replays", {"127.0.0.1"});
  EXPECT_EQ(publisher_.await_replay_request(), 0U);
  publisher_.end_answers();
  await_verified();
}

TEST_F(NamedEngines, AreReplayedFromWhereTheirEventsComeFrom) {
  start();
  set("engine", {"127.0.0.1"});
  const auto replay = named(publisher_.bind_replay(), "engine");
  follow({.events = named(publisher_.bind_events(), "engine"), .replay = replay});
  EXPECT_EQ(publisher_.await_replay_request(), 0U);
  publisher_.end_answers();
  await_verified();
}

TEST_F(NamedEngines, GoOnWithoutAReplayWhoseNameIsNotKnown) {
  start();
  set("engine", {"127.0.0.1"});
  set("replays", {}, hosts::LookupFailure::Unknown);
  follow({.events = named(publisher_.bind_events(), "engine"), .replay = "tcp://replays:1"});
  await_verified();
  EXPECT_EQ(status().stream.replay_timeouts, 4U);
  EXPECT_TRUE(status().facts.replay_silent);
}

TEST_F(NamedEngines, MayBeRemovedWhileTheirNameIsLookedUp) {
  start();
  follow({.events = "tcp://slow:5557"});
  await([&] { return is_asked("slow"); });
  subscriber_->remove(kEngine);
  set("slow", {"127.0.0.1"});
  follow({.events = publisher_.bind_events()});
  await_verified();
}

}  // namespace
}  // namespace sightline::subscriber
