// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/replicas/follower/agent_answers.h"

#include <algorithm>

namespace sightline::follower {

namespace {

// Far more questions than are sent within FollowerOptions::stale_after.
constexpr std::size_t kOpenQuestionsMax = 256;
// The numbers of ended agents that are remembered.
constexpr std::size_t kEndedMax = 16;
// A third agent only makes the contest larger.
constexpr std::size_t kAgentsMax = 4;

}  // namespace

void Agents::asked(std::uint64_t nonce, Instant now) {
  open_.push_back({.nonce = nonce, .number = ++questions_, .asked_at = now});
  if (open_.size() > kOpenQuestionsMax) open_.pop_front();
}

Agents::AnswerCheck Agents::answered(const frames::Instance& agent, std::uint64_t nonce,
                                     Instant now) {
  // A late answer of an agent must not revive it.
  if (std::find(ended_.begin(), ended_.end(), agent.number) != ended_.end()) {
    return {AgentVerdict::Ended, {}};
  }
  const auto question = std::find_if(open_.begin(), open_.end(),
                                     [&](const SentQuestion& q) { return q.nonce == nonce; });
  // An old answer proves nothing about the present. NATS may be permanently late.
  if (question == open_.end() || now - question->asked_at >= options_.stale_after) {
    return {AgentVerdict::Stale, {}};
  }
  AgentRecord* known = find(agent.number);
  if (known == nullptr) {
    if (agents_.size() >= kAgentsMax) return {AgentVerdict::Stale, {}};
    known = &agents_.emplace_back(AgentRecord{.instance = agent, .question = 0, .alive_at = {}});
  }
  // Answers can arrive in another order than their questions. An older one says nothing new.
  if (question->number <= known->question) return {AgentVerdict::Stale, {}};
  known->question = question->number;
  // The agent replied at some moment after the question. Only the time of the question is certain.
  known->alive_at = std::max(known->alive_at, question->asked_at);
  const AnswerCheck heard{AgentVerdict::Fresh, question->asked_at};
  expire(now);
  return heard;
}

void Agents::ended(std::uint64_t instance) {
  std::erase_if(agents_,
                [&](const AgentRecord& known) { return known.instance.number == instance; });
  if (std::find(ended_.begin(), ended_.end(), instance) != ended_.end()) return;
  ended_.push_back(instance);
  if (ended_.size() > kEndedMax) ended_.pop_front();
}

void Agents::expire(Instant now) {
  if (!is_contested()) return;
  // If all are silent, the last one that answered stays. The router follows it until its answers
  // are too old.
  const auto last = std::max_element(
      agents_.begin(), agents_.end(),
      [](const AgentRecord& a, const AgentRecord& b) { return a.alive_at < b.alive_at; });
  const std::uint64_t kept = last->instance.number;
  std::erase_if(agents_, [&](const AgentRecord& known) {
    return known.instance.number != kept && now - known.alive_at >= options_.silent_after;
  });
}

std::vector<frames::Instance> Agents::all() const {
  std::vector<frames::Instance> all;
  for (const AgentRecord& known : agents_) all.push_back(known.instance);
  return all;
}

Instant Agents::due() const {
  if (!is_contested()) return Instant::max();
  Instant due = Instant::max();
  for (const AgentRecord& known : agents_)
    due = std::min(due, known.alive_at + options_.silent_after);
  return due;
}

std::string Agents::contest() const {
  std::string text = agents_.size() == 2 ? "two agents serve it: " : "several agents serve it: ";
  for (const AgentRecord& known : agents_) {
    if (&known != &agents_.front()) text += " and ";
    text += known.instance.name;
  }
  return text;
}

Agents::AgentRecord* Agents::find(std::uint64_t instance) {
  const auto known = std::find_if(agents_.begin(), agents_.end(), [&](const AgentRecord& k) {
    return k.instance.number == instance;
  });
  return known == agents_.end() ? nullptr : &*known;
}

}  // namespace sightline::follower
