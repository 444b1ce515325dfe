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
#include "router/replicas/frames/stream_message.h"

namespace sightline::follower {

// Which agents answer our questions. Only the answer to a fresh question proves that an agent
// exists. A late or recorded message proves nothing.
// Thread safety: one thread at a time.
class Agents {
 public:
  // `options` outlives this object.
  explicit Agents(const FollowerOptions& options) : options_(options) {}

  // Notes a question that was sent. Several may be open. Above a limit, the oldest one expires.
  void asked(std::uint64_t nonce, Instant now);

  // What an answer proves. Fresh: the agent exists. Stale: nothing. Ended: the agent said before
  // that it ends.
  enum class AgentVerdict : std::uint8_t { Fresh, Stale, Ended };
  // An answer's verdict.
  struct AnswerCheck {
    AgentVerdict verdict = AgentVerdict::Stale;
    // Of Fresh: when its question was sent.
    Instant asked_at{};
  };
  // Judges an answer. Each question accepts one answer of each agent. Answers of an agent count
  // only in the order of the questions. An answer that took options.stale_after or longer is Stale.
  AnswerCheck answered(const frames::Instance& agent, std::uint64_t nonce, Instant now);
  // The agent said that it ends. It never comes back, because each start draws another number.
  void ended(std::uint64_t instance);
  // While there are several agents, removes each one that was silent for options.silent_after. The
  // last one stays.
  void expire(Instant now);

  // Two or more agents answer: the worker's blocks must not count.
  [[nodiscard]] bool is_contested() const { return agents_.size() > 1; }
  // The agents that answer.
  [[nodiscard]] std::vector<frames::Instance> all() const;
  // When expire() has work. Instant::max(): never.
  [[nodiscard]] Instant due() const;
  // The reason for people: "two agents serve it: a and b".
  [[nodiscard]] std::string contest() const;

 private:
  // A question that was sent. The number is its place in the order of our questions.
  struct SentQuestion {
    std::uint64_t nonce = 0;
    std::uint64_t number = 0;
    Instant asked_at{};
  };
  // An agent that answered.
  struct AgentRecord {
    frames::Instance instance;
    // The last one that it answered.
    std::uint64_t question = 0;
    // When that question was sent. The answer proves nothing about a later time.
    Instant alive_at{};
  };
  // Returns null if no agent with this number has answered.
  AgentRecord* find(std::uint64_t instance);

  // Of the owner, which outlives this object.
  const FollowerOptions& options_;
  std::uint64_t questions_ = 0;
  std::deque<SentQuestion> open_;
  std::vector<AgentRecord> agents_;
  std::deque<std::uint64_t> ended_;
};

}  // namespace sightline::follower
