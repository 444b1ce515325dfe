// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
//
// Requests of recorded vLLM 0.32 sessions go through the simulated engine core. Step by step, it
// must find the same blocks and report the same events as the real engine.
#include <algorithm>
#include <map>
#include <ostream>
#include <set>

#include <gtest/gtest.h>

#include "simulator/core/event_encoder.h"
#include "simulator/core/scheduler.h"
#include "tests/integration/core/recorded_events.h"
#include "tests/support/captures.h"

namespace sightline::core {
namespace {

using test::CapturedExchange;
using test::CapturedPrompt;
using test::CapturedSession;

constexpr std::uint32_t kBlockSize = 32;
constexpr TokenId kUnrecordedToken = 7;  // never in a whole block

// The number after the last occurrence of a JSON member.
std::optional<std::uint32_t> last_number(std::string_view text, std::string_view member) {
  const std::size_t at = text.rfind(member);
  if (at == std::string_view::npos) return std::nullopt;
  return static_cast<std::uint32_t>(std::stoul(std::string(text.substr(at + member.size(), 12))));
}

class Recorded {
 public:
  explicit Recorded(const CapturedSession& session) {
    std::map<BlockHash, std::size_t> ends;
    for (const auto& message : session.messages) {
      RecordedBatch batch = read_recorded(message.frames[2]);
      for (const KvEvent& event : batch.events) locate(event, ends);
      batches_.push_back(std::move(batch.events));
    }
  }

  // The batches that arrived with an exchange. A restarted engine begins its sequence numbers
  // again.
  std::vector<std::vector<KvEvent>> batches_of(const CapturedExchange& exchange,
                                               std::size_t first_message) const {
    std::vector<std::vector<KvEvent>> out;
    for (const auto sequence : exchange.message_sequences) {
      out.push_back(batches_[first_message + sequence]);
    }
    return out;
  }

  // Tokens after the prompt that came to fill blocks.
  std::vector<TokenId> outputs(const std::vector<std::vector<KvEvent>>& batches,
                               std::size_t prompt_tokens, std::size_t count) const {
    std::vector<TokenId> tokens(count, kUnrecordedToken);
    for (const auto& batch : batches) {
      for (const KvEvent& event : batch) {
        const auto* stored = std::get_if<BlockStored>(&event);
        if (stored != nullptr) fill(*stored, prompt_tokens, tokens);
      }
    }
    return tokens;
  }

 private:
  void locate(const KvEvent& event, std::map<BlockHash, std::size_t>& ends) {
    const auto* stored = std::get_if<BlockStored>(&event);
    if (stored == nullptr) return;
    std::size_t end = stored->parent ? ends.at(*stored->parent) : 0;
    starts_[stored->hashes.front()] = end;
    for (const BlockHash& hash : stored->hashes) ends[hash] = end += kBlockSize;
  }

  void fill(const BlockStored& stored, std::size_t prompt_tokens,
            std::vector<TokenId>& tokens) const {
    const std::size_t start = starts_.at(stored.hashes.front());
    for (std::size_t i = 0; i < stored.tokens.size(); ++i) {
      const std::size_t position = start + i;
      if (position < prompt_tokens || position - prompt_tokens >= tokens.size()) continue;
      tokens[position - prompt_tokens] = stored.tokens[i];
    }
  }

  std::vector<std::vector<KvEvent>> batches_;
  std::map<BlockHash, std::size_t> starts_;
};

// Compares events that name blocks differently. Two names mean the same block from their first use
// on.
class NamePairs {
 public:
  bool same(const BlockHash& ours, const BlockHash& theirs) {
    const auto forth = to_theirs_.emplace(ours, theirs).first;
    const auto back = to_ours_.emplace(theirs, ours).first;
    return forth->second == theirs && back->second == ours;
  }

 private:
  std::map<BlockHash, BlockHash> to_theirs_;
  std::map<BlockHash, BlockHash> to_ours_;
};

class Comparison {
 public:
  std::string difference(const std::vector<std::vector<KvEvent>>& ours,
                         const std::vector<std::vector<KvEvent>>& theirs) {
    if (ours.size() != theirs.size()) {
      return std::to_string(ours.size()) + " batches, recorded " + std::to_string(theirs.size());
    }
    for (std::size_t i = 0; i < ours.size(); ++i) {
      if (ours[i].size() != theirs[i].size()) return "other number of events";
      for (std::size_t j = 0; j < ours[i].size(); ++j) {
        if (ours[i][j].index() != theirs[i][j].index()) return "other kind of event";
        if (!same(ours[i][j], theirs[i][j])) {
          return "batch " + std::to_string(i) + " event " + std::to_string(j) + " differs";
        }
      }
    }
    return "";
  }

 private:
  bool same(const KvEvent& ours, const KvEvent& theirs) {
    if (const auto* removed = std::get_if<BlockRemoved>(&ours)) {
      return names_.same(removed->hash, std::get<BlockRemoved>(theirs).hash);
    }
    if (std::holds_alternative<AllBlocksCleared>(ours)) return true;
    return same(std::get<BlockStored>(ours), std::get<BlockStored>(theirs));
  }

  bool same(const BlockStored& ours, const BlockStored& theirs) {
    if (ours.hashes.size() != theirs.hashes.size() || ours.tokens != theirs.tokens ||
        ours.parent.has_value() != theirs.parent.has_value() ||
        ours.block_size != theirs.block_size || ours.lora != theirs.lora) {
      return false;
    }
    if (ours.parent && !names_.same(*ours.parent, *theirs.parent)) return false;
    for (std::size_t i = 0; i < ours.hashes.size(); ++i) {
      if (!names_.same(ours.hashes[i], theirs.hashes[i])) return false;
      if (!same(ours.extra_keys[i], theirs.extra_keys[i])) return false;
    }
    return true;
  }

  static bool same(const ExtraKeys& ours, const ExtraKeys& theirs) {
    ExtraKeys known = theirs;
    if (ours.media.size() != theirs.media.size()) return false;
    for (std::size_t i = 0; i < ours.media.size(); ++i) {
      // Default identifiers of non-RGB pictures were not computed by the recorder.
      if (ours.media[i].identifier.empty()) known.media[i].identifier.clear();
    }
    return ours == known;
  }

  NamePairs names_;
};

struct SessionCase {
  const char* name;
  std::uint32_t blocks;
  std::size_t want_compared;
  // From here to the restart, the recording does not show the state of a full pool. Before it, many
  // requests ran at the same time and were preempted.
  std::int64_t unordered_from = INT64_MAX;
  std::int64_t restarted_at = INT64_MAX;  // first exchange of a new process
};

void PrintTo(const SessionCase& test, std::ostream* out) { *out << test.name; }

class Playback {
 public:
  Playback(const SessionCase& test, const CapturedSession& session)
      : test_(test), session_(session), recorded_(session) {
    start();
    for (const CapturedPrompt& prompt : session.prompts) {
      if (prompt.n) prompts_[*prompt.n] = &prompt;
    }
  }

  void run() {
    for (const CapturedExchange& exchange : session_.exchanges) {
      if (!exchange.n) {
        crowd_.push_back(&exchange);
        continue;
      }
      run_crowd();
      if (*exchange.n == test_.restarted_at) restart();
      run(exchange);
    }
  }

  std::size_t compared = 0;

 private:
  void start() {
    scheduler_ = std::make_unique<Scheduler>(
        Scheduler::Options{.cache = {.block_size = kBlockSize, .blocks = test_.blocks},
                           .running_max = 8,
                           .step_tokens_max = 4096,
                           .step_prompt_tokens_max = 4096},
        [this](std::uint64_t, std::size_t position) { return outputs_.at(position); });
    comparison_ = Comparison();
  }

  void restart() {
    start();
    const auto& messages = session_.messages;
    first_message_ = 1;
    while (messages[first_message_].sequence != 0) ++first_message_;
  }

  void run(const CapturedExchange& exchange) {
    const bool resets =
        exchange.path.starts_with("/reset_prefix_cache") || exchange.path.starts_with("/sleep");
    EXPECT_TRUE(!resets || exchange.status != 200 || scheduler_->reset_prefix_cache());
    const auto prompt = prompts_.find(*exchange.n);
    if (prompt == prompts_.end()) return;
    const auto theirs = recorded_.batches_of(exchange, first_message_);
    RequestSpec spec = spec_of(*prompt->second, exchange);
    outputs_ = recorded_.outputs(theirs, spec.prompt.size(), spec.output_tokens_max);
    scheduler_->add(std::move(spec));
    std::size_t cached = 0;
    const auto ours = drain(cached);
    const bool ordered = *exchange.n < test_.unordered_from || *exchange.n >= test_.restarted_at;
    if (!ordered) return;
    ++compared;
    const auto usage = test::usage_of(exchange);
    if (usage) {
      EXPECT_EQ(cached, static_cast<std::size_t>(usage->cached_tokens)) << *exchange.n;
    }
    EXPECT_EQ(comparison_.difference(ours, theirs), "") << "exchange " << *exchange.n;
  }

  RequestSpec spec_of(const CapturedPrompt& prompt, const CapturedExchange& exchange) {
    RequestSpec spec;
    spec.prompt = prompt.token_ids;
    for (const auto& media : prompt.media) {
      spec.keys.media.push_back({media.identifier, static_cast<std::size_t>(media.offset),
                                 static_cast<std::size_t>(media.length)});
    }
    spec.keys.cache_salt = prompt.cache_salt;
    if (prompt.model == "ad") spec.keys.lora = Lora{"ad", 1};
    const auto completion = last_number(exchange.response_body, "\"completion_tokens\":");
    const auto asked = last_number(exchange.request_body, "\"max_tokens\": ");
    spec.output_tokens_max = completion.value_or(asked.value_or(1));
    spec.report_reused =
        exchange.request_body.find("\"kv_cache_report_mode\": \"full\"") != std::string::npos;
    return spec;
  }

  std::vector<std::vector<KvEvent>> drain(std::size_t& cached) {
    std::vector<std::vector<KvEvent>> batches;
    while (!scheduler_->schedule().empty()) {
      for (const StepOutput& output : scheduler_->complete()) cached = output.cached_tokens;
      auto events = scheduler_->take_events();
      if (!events.empty()) batches.push_back(std::move(events));
    }
    return batches;
  }

  // Requests that were sent together and whose prompts are known: equal prompts in one step.
  void run_crowd() {
    std::vector<const CapturedExchange*> crowd = std::exchange(crowd_, {});
    for (const CapturedExchange* exchange : crowd) {
      for (const CapturedPrompt& prompt : session_.prompts) {
        if (prompt.n || prompt.scenario != exchange->scenario || prompt.label != exchange->label) {
          continue;
        }
        RequestSpec spec = spec_of(prompt, *exchange);
        outputs_.assign(4096, kUnrecordedToken);
        scheduler_->add(std::move(spec));
        break;
      }
    }
    std::size_t cached = 0;
    drain(cached);
  }

  const SessionCase test_;
  const CapturedSession& session_;
  const Recorded recorded_;
  std::map<std::int64_t, const CapturedPrompt*> prompts_;
  std::vector<const CapturedExchange*> crowd_;
  std::unique_ptr<Scheduler> scheduler_;
  std::vector<TokenId> outputs_;
  std::size_t first_message_ = 0;
  Comparison comparison_;
};

class RecordedSession : public testing::TestWithParam<SessionCase> {};

TEST_P(RecordedSession, TheSimulatedCoreMatchesTheRecordedEngine) {
  const CapturedSession session = test::load_capture(GetParam().name);
  Playback playback(GetParam(), session);
  playback.run();
  EXPECT_EQ(playback.compared, GetParam().want_compared);
}

INSTANTIATE_TEST_SUITE_P(
    All, RecordedSession,
    testing::Values(SessionCase{.name = "qwen2vl-main", .blocks = 4096, .want_compared = 88},
                    SessionCase{.name = "qwen2vl-evict",
                                .blocks = 96,
                                .want_compared = 28,
                                .unordered_from = 25,
                                .restarted_at = 26},
                    SessionCase{.name = "qwen2vl-duplicates", .blocks = 96, .want_compared = 18},
                    SessionCase{.name = "qwen2vl-bytes-cbor", .blocks = 4096, .want_compared = 10},
                    SessionCase{.name = "qwen2vl-lora", .blocks = 4096, .want_compared = 6},
                    SessionCase{
                        .name = "qwen2vl-no-processor-cache", .blocks = 4096, .want_compared = 4}));

TEST(RecordedEvents, TheEncoderWritesEveryRecordedPayloadByteForByte) {
  std::size_t compared = 0;
  for (const char* name :
       {"qwen2vl-main", "qwen2vl-evict", "qwen2vl-duplicates", "qwen2vl-bytes-cbor", "qwen2vl-lora",
        "qwen2vl-no-processor-cache", "qwen2vl-server-media-io-kwargs",
        "qwen2vl-server-mm-processor-kwargs"}) {
    for (const auto& message : test::load_capture(name).messages) {
      const Bytes& payload = message.frames[2];
      const RecordedBatch batch = read_recorded(payload);
      const Bytes again = encode({.timestamp_s = batch.timestamp_s, .events = batch.events},
                                 {.minor_version = 32, .byte_hashes = batch.byte_hashes});
      ASSERT_EQ(to_hex(again), to_hex(payload)) << name << " " << message.sequence;
      ++compared;
    }
  }
  EXPECT_EQ(compared, 458U);
}

}  // namespace
}  // namespace sightline::core
