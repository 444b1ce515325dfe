// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/runtime/step_order.h"

#include <chrono>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace sightline {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::size_t kKiB = 1024;
constexpr std::size_t kMiB = kKiB * kKiB;

class NamedStep final : public Step {
 public:
  NamedStep(std::string step_name, std::size_t weight, std::stop_token left = {})
      : Step(weight, std::move(left)), name(std::move(step_name)) {}
  void run() override {}
  const std::string name;
};

NamedStep& add(StepOrder& order, const std::string& name, std::size_t weight,
               std::stop_token left = {}) {
  auto step = std::make_unique<NamedStep>(name, weight, std::move(left));
  NamedStep& added = *step;
  order.add(std::move(step));
  return added;
}

std::string name_of(const std::unique_ptr<Step>& step) {
  return step ? static_cast<const NamedStep&>(*step).name : "none";
}

// The names of the steps that one thread runs. Each step takes `each`.
std::vector<std::string> run_all(StepOrder& order, Duration each) {
  std::vector<std::string> names;
  while (auto step = order.next()) {
    names.push_back(name_of(step));
    order.ended(*step, each);
  }
  return names;
}

TEST(StepOrder, LetsASmallStepGoBeforeLargeOnesThatCameEarlier) {
  StepOrder order(1);
  for (int i = 0; i < 6; ++i) add(order, "large" + std::to_string(i), 48 * kMiB);
  const auto running = order.next();
  add(order, "small", 568 * kKiB);
  order.ended(*running, seconds(1));
  EXPECT_EQ(name_of(order.next()), "small");
}

TEST(StepOrder, KeepsOneOfSeveralThreadsForSmallSteps) {
  StepOrder order(3);
  for (int i = 0; i < 4; ++i) add(order, "large", 48 * kMiB);
  const auto first = order.next();
  const auto second = order.next();
  EXPECT_EQ(name_of(first), "large");
  EXPECT_EQ(name_of(second), "large");
  EXPECT_EQ(order.next(), nullptr) << "the third thread is for small ones";
  add(order, "small", 568 * kKiB);
  add(order, "medium", StepOrder::kSmallWeightMax + 1);
  const auto small = order.next();
  EXPECT_EQ(name_of(small), "small");
  order.ended(*small, milliseconds(5));
  EXPECT_EQ(order.next(), nullptr) << "a medium one may last as long as a large one";
  order.ended(*first, seconds(1));
  EXPECT_EQ(name_of(order.next()), "medium");
}

TEST(StepOrder, LetsLargeStepsUseTheOnlyThread) {
  StepOrder order(1);
  add(order, "large", 48 * kMiB);
  EXPECT_EQ(name_of(order.next()), "large");
}

TEST(StepOrder, GivesWaitingSizesEqualSharesOfTheTime) {
  StepOrder order(1);
  for (int i = 0; i < 40; ++i) add(order, "large" + std::to_string(i), 48 * kMiB);
  for (int i = 0; i < 4000; ++i) add(order, "small", 100 * kKiB);
  Duration small{};
  Duration large{};
  for (int i = 0; i < 2000; ++i) {
    const auto step = order.next();
    const bool is_small = name_of(step) == "small";
    const Duration used = is_small ? milliseconds(2) : milliseconds(150);
    (is_small ? small : large) += used;
    order.ended(*step, used);
  }
  EXPECT_GT(large, seconds(3)) << "large steps go on beside any number of small ones";
  EXPECT_LE(large, small + milliseconds(150));
  EXPECT_LE(small, large + milliseconds(150));
}

TEST(StepOrder, ASizeThatWasIdleGetsNoCreditForIt) {
  StepOrder order(1);
  for (int i = 0; i < 1000; ++i) {
    add(order, "small", 100 * kKiB);
    const auto step = order.next();
    order.ended(*step, milliseconds(100));
  }
  for (int i = 0; i < 10; ++i) add(order, "large", 48 * kMiB);
  for (int i = 0; i < 10; ++i) add(order, "small", 100 * kKiB);
  int large = 0;
  for (int i = 0; i < 10; ++i) {
    const auto step = order.next();
    large += name_of(step) == "large" ? 1 : 0;
    order.ended(*step, milliseconds(100));
  }
  EXPECT_EQ(large, 5) << "as many as small ones of the same length";
}

TEST(StepOrder, ForgetsWhatWasUsedOnceNothingIsLeft) {
  StepOrder order(1);
  add(order, "small", 100 * kKiB);
  run_all(order, seconds(1000));
  for (int i = 0; i < 3; ++i) add(order, "large", 48 * kMiB);
  order.ended(*order.next(), seconds(1));
  add(order, "small", 100 * kKiB);
  EXPECT_EQ(name_of(order.next()), "small");
}

TEST(StepOrder, KeepsTheOrderWithinASize) {
  StepOrder order(1);
  const std::vector<std::string> names{"a", "b", "c", "d"};
  for (const auto& name : names) add(order, name, 20 * kMiB);
  EXPECT_EQ(run_all(order, milliseconds(1)), names);
}

TEST(StepOrder, RunsStepsOfLeftClientsFirst) {
  StepOrder order(2);
  add(order, "a", 48 * kMiB);
  NamedStep& left = add(order, "left", 48 * kMiB);
  add(order, "small", 100 * kKiB);
  std::stop_source stop;
  stop.request_stop();
  const auto running = order.next();
  EXPECT_EQ(name_of(running), "small");
  const auto large = order.next();
  EXPECT_EQ(name_of(large), "a");
  EXPECT_EQ(order.next(), nullptr);
  order.leave(left);
  order.leave(left);
  add(order, "late", 48 * kMiB, stop.get_token());
  EXPECT_EQ(order.waiting(), 2U);
  const auto gone = order.next();
  EXPECT_EQ(name_of(gone), "left") << "though no large one may run now";
  order.leave(left);
  order.ended(*gone, milliseconds(1));
  EXPECT_EQ(name_of(order.next()), "late");
  EXPECT_EQ(order.waiting(), 0U);
  order.ended(*large, seconds(1));
  order.ended(*running, seconds(1));
}

}  // namespace
}  // namespace sightline
