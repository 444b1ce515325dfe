// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/process/replica_stack.h"

#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include "tests/support/eventually.h"
#include "tests/support/nats_server.h"

namespace sightline::process {
namespace {

using test::eventually;
using test::NatsServer;

struct Process {
  explicit Process(const ReplicaStack::Options& options) {
    auto made = ReplicaStack::create(
        options, {.identity = identity, .metrics = metrics, .clock = system_clock()});
    if (made.ok()) stack = std::move(*made);
  }

  // Why the other does not fit, as this one sees it. "fits" if it does, "" while it is not seen.
  [[nodiscard]] std::string view_of(const Process& other) const {
    for (const auto& member : stack->membership().members()) {
      if (member.told.instance != other.stack->instance()) continue;
      return member.unfit ? member.unfit->reason : "fits";
    }
    return "";
  }

  contract::IdentityKey identity = contract::development_identity_key();
  runtime::Metrics metrics;
  std::unique_ptr<ReplicaStack> stack;
};

ReplicaStack::Options options_of(const NatsServer& server, const std::string& model) {
  ReplicaStack::Options options;
  options.nats.urls = server.url();
  options.model_digest = std::string(64, 'a');
  options.scope_model = model;
  options.replica.name = "r";
  return options;
}

TEST(ReplicaStack, OneModelIsOneDeployment) {
  const NatsServer server;
  const Process a(options_of(server, "m"));
  const Process b(options_of(server, "m"));
  const Process other(options_of(server, "n"));
  ASSERT_TRUE(a.stack && b.stack && other.stack);
  EXPECT_TRUE(eventually([&] { return a.view_of(b) == "fits" && b.view_of(a) == "fits"; }));
  EXPECT_TRUE(eventually([&] { return !a.view_of(other).empty(); }));
  EXPECT_NE(a.view_of(other), "fits");
  EXPECT_NE(a.stack->instance(), b.stack->instance());
  EXPECT_TRUE(eventually([&] { return a.stack->events().connected(); }));

  const std::string subject = a.stack->subjects().load();
  const std::string sealed = a.stack->sealer().seal(subject, "words");
  EXPECT_EQ(std::get<std::string_view>(b.stack->sealer().open(subject, sealed)), "words");
  EXPECT_EQ(std::get<envelope::Refusal>(other.stack->sealer().open(subject, sealed)),
            envelope::Refusal::WrongTag);
}

TEST(ReplicaStack, AStoppedProcessLeavesTheMembers) {
  const NatsServer server;
  const Process a(options_of(server, "m"));
  const Process b(options_of(server, "m"));
  ASSERT_TRUE(a.stack && b.stack);
  ASSERT_TRUE(eventually([&] { return a.view_of(b) == "fits"; }));
  b.stack->stop();
  EXPECT_TRUE(eventually([&] { return a.view_of(b).empty(); }));
}

TEST(ReplicaStack, RefusesAnAddressOfAnotherProtocol) {
  auto options = options_of(NatsServer(), "m");
  options.nats.urls = "http://host";
  const Process process(options);
  EXPECT_EQ(process.stack, nullptr);
}

}  // namespace
}  // namespace sightline::process
