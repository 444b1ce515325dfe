// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/top/top_facts.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

#include "common/base/json.h"
#include "common/contract/metrics_process.h"
#include "common/contract/metrics_requests.h"

namespace sightline::top {
namespace {

Error corrupt(std::string what) { return worker_error(ErrorCode::Corrupt, std::move(what), true); }

std::uint64_t count_of(const json::Value& object, std::string_view name) {
  const auto value = object.find(name);
  const auto number = value ? value->integer() : std::nullopt;
  return number && *number > 0 ? static_cast<std::uint64_t>(*number) : 0;
}

std::optional<std::uint64_t> some_of(const json::Value& object, std::string_view name) {
  const auto value = object.find(name);
  const auto number = value ? value->integer() : std::nullopt;
  if (!number || *number < 0) return std::nullopt;
  return static_cast<std::uint64_t>(*number);
}

std::string text_of(const json::Value& object, std::string_view name) {
  const auto value = object.find(name);
  const auto text = value ? value->string() : std::nullopt;
  // Text from a port must not control the terminal.
  return text ? printable(*text) : std::string();
}

bool flag_of(const json::Value& object, std::string_view name) {
  const auto value = object.find(name);
  return value && value->boolean().value_or(false);
}

// The worst rank represents a worker, so the greatest value counts.
void raise(std::optional<std::uint64_t>& most, const std::optional<std::uint64_t>& value) {
  if (value) most = std::max(most.value_or(0), *value);
}

WorkerFacts read_worker(const json::Value& value) {
  WorkerFacts worker;
  worker.name = text_of(value, "name");
  worker.state = text_of(value, "state");
  worker.reason = text_of(value, "reason");
  worker.is_ready = flag_of(value, "ready");
  worker.in_flight = count_of(value, "in_flight");
  worker.running = count_of(value, "running");
  worker.waiting = count_of(value, "waiting");
  worker.blocks = count_of(value, "blocks");
  const auto ranks = value.find("ranks");
  if (!ranks) return worker;
  for (const json::Value& rank : *ranks) {
    const auto events = rank.find("events");
    if (events) raise(worker.lag_ms, some_of(*events, "lag_ms"));
  }
  return worker;
}

Result<Done> read_workers(const std::string& body, RouterFacts& facts) {
  if (body.empty()) return Done{};  // a frontend has no workers
  const auto document = json::Document::parse(body);
  if (!document.ok() || !document->root().is(json::Kind::Array)) {
    return corrupt("/v1/workers is not a list");
  }
  for (const json::Value& value : document->root()) facts.workers.push_back(read_worker(value));
  return Done{};
}

void read_streams(const json::Value& streams, RouterFacts& facts) {
  std::map<std::string_view, WorkerFacts*> workers;
  for (WorkerFacts& worker : facts.workers) workers[worker.name] = &worker;
  for (const json::Value& stream : streams) {
    const auto worker = workers.find(text_of(stream, "worker"));
    if (worker == workers.end()) continue;
    raise(worker->second->lag_ms, some_of(stream, "lag_by_stamp_ms"));
    raise(worker->second->digest_age_ms, some_of(stream, "digest_equal_ms"));
  }
}

Result<Done> read_replicas(const std::string& body, RouterFacts& facts) {
  if (body.empty()) return Done{};
  const auto document = json::Document::parse(body);
  if (!document.ok() || !document->root().is(json::Kind::Object)) {
    return corrupt("/v1/replicas is not an object");
  }
  const json::Value root = document->root();
  if (const auto connections = root.find("nats")) {
    // One lost connection of several is enough to lose events or load.
    facts.is_nats_connected = connections->size() > 0;
    for (const json::Value& connection : *connections) {
      if (!flag_of(connection, "connected")) facts.is_nats_connected = false;
    }
  }
  MemberCounts members;
  if (const auto list = root.find("members")) {
    for (const json::Value& member : *list) {
      const std::string role = text_of(member, "role");
      std::uint64_t& kind = role == "router"     ? members.routers
                            : role == "frontend" ? members.frontends
                                                 : members.agents;
      ++(flag_of(member, "fits") ? kind : members.unfit);
    }
  }
  facts.members = members;
  if (const auto streams = root.find("streams")) read_streams(*streams, facts);
  return Done{};
}

// One sample of the Prometheus text format: name, labels with their braces, value.
struct Sample {
  std::string_view name;
  std::string_view labels;
  double value = 0;
};

std::optional<Sample> read_sample(std::string_view line) {
  if (line.empty() || line[0] == '#') return std::nullopt;
  // The last space comes before the value. Values of labels may contain spaces too.
  const std::size_t space = line.rfind(' ');
  const std::size_t end = std::min(line.find('{'), line.find(' '));
  if (space == std::string_view::npos || end > space) return std::nullopt;
  Sample sample{line.substr(0, end), line.substr(end, space - end), 0};
  const char* last = line.data() + line.size();
  const auto read = std::from_chars(line.data() + space + 1, last, sample.value);
  if (read.ec != std::errc() || read.ptr != last) return std::nullopt;
  return sample;
}

void take_sample(const Sample& sample, RouterFacts& facts) {
  if (sample.name == contract::kRequestsTotal.name) {
    facts.requests += sample.value;
  } else if (sample.name == contract::kOverlapBlocksTotal.name) {
    facts.overlap_blocks += sample.value;
  } else if (sample.name == contract::kPromptBlocksTotal.name) {
    facts.prompt_blocks += sample.value;
  } else if (sample.name == contract::kRequestsActive.name) {
    facts.active = sample.value > 0 ? static_cast<std::uint64_t>(sample.value) : 0;
  } else if (sample.name == contract::kWorkerListGeneration.name) {
    facts.generation = sample.value > 0 ? static_cast<std::uint64_t>(sample.value) : 0;
  } else if (sample.name == contract::kWorkerListSource.name && sample.value > 0) {
    const std::string_view labels = sample.labels;
    const std::size_t begin = labels.find('"') + 1;
    facts.list_source = printable(labels.substr(begin, labels.rfind('"') - begin));
  }
}

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  for (const char c : text) out += c >= ' ' && c < 127 ? c : '?';
  return out;
}

Result<RouterFacts> read_facts(std::string_view address, const Answers& answers) {
  RouterFacts facts;
  facts.address = printable(address);
  facts.is_ready = answers.is_ready;
  SL_TRY(read_workers(answers.workers, facts));
  SL_TRY(read_replicas(answers.replicas, facts));
  std::size_t samples = 0;
  for (std::string_view left = answers.metrics; !left.empty();) {
    const std::string_view line = left.substr(0, left.find('\n'));
    left.remove_prefix(std::min(line.size() + 1, left.size()));
    const auto sample = read_sample(line);
    if (!sample || !sample->name.starts_with("sightline_")) continue;
    ++samples;
    take_sample(*sample, facts);
  }
  // Another program may listen on this port.
  if (samples == 0) return corrupt("/metrics has no sightline metrics");
  return facts;
}

void compare(RouterFacts& now, const RouterFacts* before, double seconds) {
  double overlap = now.overlap_blocks;
  double prompt = now.prompt_blocks;
  // Counters that fell belong to another process: the router restarted.
  if (before != nullptr && seconds > 0 && now.requests >= before->requests) {
    now.requests_per_s = (now.requests - before->requests) / seconds;
    // Without new prompts, the ratio since the start stays.
    if (now.prompt_blocks > before->prompt_blocks) {
      overlap -= before->overlap_blocks;
      prompt -= before->prompt_blocks;
    }
  }
  if (prompt > 0) now.hit_ratio = std::clamp(overlap / prompt, 0.0, 1.0);
}

}  // namespace sightline::top
