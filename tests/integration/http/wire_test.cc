// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/http/wire.h"

#include <memory>
#include <string>
#include <vector>

#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <gtest/gtest.h>

#include "common/runtime/deadlines.h"
#include "common/runtime/task.h"

namespace sightline::http {
namespace {

Task<void> take_two_turns(Wire& wire, std::vector<std::string>& order) {
  order.emplace_back("first turn");
  co_await wire.give_way();
  order.emplace_back("second turn");
}

TEST(Wire, GivesWayToWhatIsReady) {
  asio::io_context context(1);
  Deadlines deadlines(context);
  const auto wire = std::make_shared<Wire>(context, deadlines, Wire::Buffer{});
  std::vector<std::string> order;
  spawn(context.get_executor(), take_two_turns(*wire, order));
  asio::post(context, [&order] { order.emplace_back("another connection"); });
  context.run();
  EXPECT_EQ(order, (std::vector<std::string>{"first turn", "another connection", "second turn"}));
}

}  // namespace
}  // namespace sightline::http
