// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/engine/sglang/sglang.h"

#include <algorithm>
#include <array>
#include <utility>

#include "router/cache/keys/block_key.h"
#include "router/cache/wire/batch_codec.h"
#include "router/engine/sglang/sglang_answers.h"

namespace sightline::sglang {
namespace {

// Values of token_ids from this one on denote media. Vocabularies end below it (schedule_batch.py
// of SGLang 0.5.23).
constexpr std::int64_t kSentinelsFrom = 1'000'000;

// Fields by which a client would choose the data-parallel rank. The router chooses it.
constexpr std::array<std::string_view, 2> kRankFields = {"routed_dp_rank", "data_parallel_rank"};

constexpr std::array kUnreadMembers = {openai::FixedMember{kRankFields[0], "null"},
                                       openai::FixedMember{kRankFields[1], "null"}};

bool is_set(const json::Value& root, std::string_view name) {
  const auto values = root.find_all(name);
  return std::any_of(values.begin(), values.end(),
                     [](const json::Value& value) { return !value.is(json::Kind::Null); });
}

// extra_key separates the cache as a salt does, but no event contains it. Blocks of one key would
// be announced as blocks of all requests. So it becomes a salt, which events contain.
void turn_extra_key_into_salt(openai::EditedBody& body, const openai::ApiRequest& request) {
  const json::Value root = request.document.root();
  if (!is_set(root, "extra_key")) return;
  const json::Value key = root.find_all("extra_key").back();
  const std::string salt = request.cache_salt.value_or("");
  const std::string text(
      request.document.text().substr(key.begin_offset(), key.end_offset() - key.begin_offset()));
  openai::set_member(body, root, "cache_salt",
                     json::to_quoted(std::to_string(salt.size()) + ":" + salt + ":" + text));
  openai::set_member(body, root, "extra_key", "null");
}

class Sglang : public family::Family {
 public:
  [[nodiscard]] std::string_view name() const override { return "sglang"; }
  [[nodiscard]] std::string_view title() const override { return "SGLang"; }

  [[nodiscard]] Result<wire::EventBatch> decode(ByteView payload) const override {
    return wire::decode_batch(payload);
  }
  // A held block announced again is one more copy, with its own removal.
  [[nodiscard]] wire::EventRules event_rules() const override {
    return {.repeats_report_reuse = false, .sentinels_from = kSentinelsFrom};
  }

  [[nodiscard]] family::Questions questions() const override {
    return {.sources = "/server_info",
            .version = "/server_info",
            .load = "/v1/loads?include=core&format=json"};
  }
  [[nodiscard]] Result<std::vector<family::EventSource>> parse_sources(
      std::string body) const override {
    return parse_event_sources(std::move(body));
  }
  [[nodiscard]] Result<family::Version> parse_version(std::string body) const override {
    return sglang::parse_version(std::move(body));
  }
  [[nodiscard]] Result<family::ServerLoad> parse_load(std::string body) const override {
    return parse_loads(std::move(body));
  }
  [[nodiscard]] std::string_view sources_hint() const override { return "which SGLang 0.5.23 has"; }

  // SGLang reads no identifiers: its chat API ignores uuid and mm_hashes.
  void edit(openai::EditedBody& body, const openai::ApiRequest& request,
            std::span<const std::string> /*identifiers*/) const override {
    const json::Value root = request.document.root();
    for (const std::string_view name : kRankFields) {
      if (is_set(root, name)) openai::set_member(body, root, name, "null");
    }
    turn_extra_key_into_salt(body, request);
  }

  [[nodiscard]] std::span<const openai::FixedMember> unread_members() const override {
    return kUnreadMembers;
  }

  [[nodiscard]] std::string_view unpredictable(const openai::ApiRequest& request) const override {
    const json::Value root = request.document.root();
    if (is_set(root, "extra_key")) return "extra_key";
    if (is_set(root, "lora_path")) return "lora_path";
    // SGLang reuses blocks only up to the first token whose log probability is requested.
    if (is_set(root, "echo") && is_set(root, "logprobs")) return "echo with logprobs";
    return {};
  }
  [[nodiscard]] std::uint64_t reused_blocks(std::uint64_t leading, std::uint64_t prompt_tokens,
                                            std::uint32_t block_size) const override {
    return keys::usable_overlap(leading, prompt_tokens, block_size);
  }
  // Without --enable-cache-report, SGLang reports no count at all. So a missing count is never a
  // zero.
  [[nodiscard]] bool leaves_zero_out(
      const std::optional<family::Version>& /*version*/) const override {
    return false;
  }
};

}  // namespace

const family::Family& sglang() {
  static const Sglang kFamily;
  return kFamily;
}

}  // namespace sightline::sglang
