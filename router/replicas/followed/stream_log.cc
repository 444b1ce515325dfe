// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/replicas/followed/stream_log.h"

#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/log.h"

namespace sightline::followed {
namespace {

// One line in this time counts all refused messages since the last line.
constexpr Duration kRefusedPause = std::chrono::seconds(10);

std::vector<LogField> with_stream(const FollowedStatus& status, std::vector<LogField> fields) {
  std::vector<LogField> all{{"worker", status.stream.worker}, {"rank", status.stream.rank}};
  all.insert(all.end(), fields.begin(), fields.end());
  return all;
}

std::uint64_t total(const FollowedStatus& status) {
  return std::accumulate(status.refused.begin(), status.refused.end(), std::uint64_t{0});
}

std::string reasons(const FollowedStatus& status) {
  std::string text;
  for (std::size_t i = 0; i < kRefusalCount; ++i) {
    if (status.refused[i] == 0) continue;
    text += (text.empty() ? "" : " ") + std::string(name_of(static_cast<Refusal>(i))) + ":" +
            std::to_string(status.refused[i]);
  }
  return text;
}

std::string agents(const FollowedStatus& status) {
  std::string text;
  for (const auto& agent : status.at.agents) text += (text.empty() ? "" : " ") + agent.name;
  return text;
}

}  // namespace

void StreamLog::tell(const FollowedStatus& before, const FollowedStatus& now, Instant time) {
  const auto& was = before.statistics;
  const auto& is = now.statistics;
  // Statistics only rise, so each difference is an event since the last call.
  if (is.dumps > was.dumps) {
    log(LogLevel::Info, "loaded a rank's blocks from its agent",
        with_stream(now, {{"agent", now.at.agent ? now.at.agent->name : ""},
                          {"epoch", now.at.epoch.value_or(0)},
                          {"position", now.at.position.value_or(0)}}));
  }
  if (now.at.dead_since && !before.at.dead_since) {
    log(LogLevel::Warn, "agent dead",
        with_stream(now, {{"agent", now.at.dead_agent}, {"reason", now.facts.reason}}));
  }
  if (before.at.dead_since && !now.at.dead_since) {
    log(LogLevel::Info, "an agent answers again",
        with_stream(now, {{"agent", agents(now)}, {"dead", before.at.dead_agent}}));
  }
  if (is.contests > was.contests) {
    log(LogLevel::Warn, "several agents serve one worker",
        with_stream(now, {{"agents", agents(now)}}));
  }
  if (is.digests_unequal > was.digests_unequal) {
    log(LogLevel::Warn, "the index differs from the agent's blocks: requesting a snapshot",
        with_stream(now, {}));
  }
  if (is.forgotten > was.forgotten) {
    log(LogLevel::Warn, "dropped a rank's blocks: its agent has not confirmed them for too long",
        with_stream(now, {{"reason", now.facts.reason}}));
  }
  const std::uint64_t refused = total(now);
  if (refused == total(before)) return;
  RefusalLog& told = refused_[now.cache];
  // The next log line counts these messages too.
  if (time < told.next) return;
  told.next = time + kRefusedPause;
  log(LogLevel::Warn, "refused messages about a worker",
      with_stream(now, {{"messages", refused - std::exchange(told.told, refused)},
                        {"all_by_reason", reasons(now)}}));
}

}  // namespace sightline::followed
