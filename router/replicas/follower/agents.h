// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"

#include "router/replicas/follower/options.h"
#include "router/replicas/frames/message.h"

namespace sightline::follower {

// Who answers our questions. An agent is believed to be there by answers to fresh questions only: a
// late message proves nothing. Thread safety: none.
class Agents {
 public:
  explicit Agents(const FollowerOptions& options) : options_(options) {}

  // Several may be open; the oldest of too many is not.
  void asked(std::uint64_t nonce, Instant now);

  enum class Verdict : std::uint8_t { Fresh, Stale, Ended };
  struct Heard {
    Verdict verdict = Verdict::Stale;
    Instant asked_at{};  // of Fresh: when its question was sent
  };
  // Answers of one agent are taken in the order of their questions, one for each.
  Heard answered(const frames::Instance& agent, std::uint64_t nonce, Instant now);
  // It said so. Numbers are drawn at each start, so it does not come back.
  void ended(std::uint64_t instance);
  // While there are several: forgets those that are silent.
  void expire(Instant now);

  [[nodiscard]] bool is_contested() const { return agents_.size() > 1; }
  [[nodiscard]] std::vector<frames::Instance> all() const;
  // When expire() has something to do; Instant::max(): never.
  [[nodiscard]] Instant due() const;
  // "two agents serve it: a and b".
  [[nodiscard]] std::string contest() const;

 private:
  struct Question {
    std::uint64_t nonce = 0;
    std::uint64_t number = 0;
    Instant asked_at{};
  };
  struct Known {
    frames::Instance instance;
    std::uint64_t question = 0;  // the last that it answered
    Instant alive_at{};
  };
  Known* find(std::uint64_t instance);

  const FollowerOptions& options_;
  std::uint64_t questions_ = 0;
  std::deque<Question> open_;
  std::vector<Known> agents_;
  std::deque<std::uint64_t> ended_;
};

}  // namespace sightline::follower
