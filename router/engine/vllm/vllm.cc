// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/engine/vllm/vllm.h"

#include <array>
#include <string>
#include <utility>

#include "router/cache/keys/block_key.h"
#include "router/cache/wire/batch_codec.h"
#include "router/engine/vllm/vllm_answers.h"

namespace sightline::vllm {
namespace {

constexpr std::string_view kReportMode = "kv_cache_report_mode";
constexpr std::string_view kNewBlocksOnly = R"("incremental")";
constexpr std::array kUnreadMembers = {openai::FixedMember{kReportMode, kNewBlocksOnly}};

// A client may request that the engine announces reused blocks again
// (vllm_xargs.kv_cache_report_mode "full", vLLM 0.26 and later). This edit removes the request. A
// repeated announcement looks like a second copy. The block would then count as held after its only
// copy is gone.
void report_new_blocks_only(openai::EditedBody& body, const openai::ApiRequest& request) {
  for (const json::Value& arguments : request.document.root().find_all("vllm_xargs")) {
    if (!arguments.is(json::Kind::Object)) continue;
    for (const json::Value& mode : arguments.find_all(kReportMode)) {
      body.replace(mode.begin_offset(), mode.end_offset(), std::string(kNewBlocksOnly));
    }
  }
}

class Vllm : public family::Family {
 public:
  [[nodiscard]] std::string_view name() const override { return "vllm"; }
  [[nodiscard]] std::string_view title() const override { return "vLLM"; }

  [[nodiscard]] Result<wire::EventBatch> decode(ByteView payload) const override {
    return wire::decode_batch(payload);
  }
  [[nodiscard]] wire::EventRules event_rules() const override {
    return {.repeats_report_reuse = true, .sentinels_from = std::nullopt};
  }

  [[nodiscard]] family::Questions questions() const override {
    return {.sources = "/kv_event_sources",
            .version = "/version",
            .load = "/metrics",
            .sleep = "/is_sleeping"};
  }
  [[nodiscard]] Result<std::vector<family::EventSource>> parse_sources(
      std::string body) const override {
    return parse_event_sources(std::move(body));
  }
  [[nodiscard]] Result<family::Version> parse_version(std::string body) const override {
    return vllm::parse_version(std::move(body));
  }
  [[nodiscard]] Result<family::ServerLoad> parse_load(std::string body) const override {
    return parse_metrics(body);
  }
  [[nodiscard]] std::string_view sources_hint() const override {
    return "available since vLLM 0.31";
  }

  // An identifier that does not follow from the bytes must never reach an engine. The engine would
  // answer from the content that it has under this name.
  void edit(openai::EditedBody& body, const openai::ApiRequest& request,
            std::span<const std::string> identifiers) const override {
    for (std::size_t i = 0; i < identifiers.size(); ++i) {
      const openai::MediaPart& part = request.chat()->media[i];
      if (identifiers[i].empty()) {
        openai::clear_uuid(body, part);
      } else {
        openai::set_uuid(body, part, identifiers[i]);
      }
    }
    report_new_blocks_only(body, request);
  }

  [[nodiscard]] std::span<const openai::FixedMember> unread_members() const override {
    return kUnreadMembers;
  }

  [[nodiscard]] std::string_view unpredictable(const openai::ApiRequest& request) const override {
    return request.skips_prefix_cache ? "prompt_logprobs" : "";
  }
  [[nodiscard]] std::uint64_t reused_blocks(std::uint64_t leading, std::uint64_t prompt_tokens,
                                            std::uint32_t block_size) const override {
    return keys::usable_overlap(leading, prompt_tokens, block_size);
  }
  // vLLM up to 0.23 leaves out a count of zero. The number of a build between releases proves
  // nothing.
  [[nodiscard]] bool leaves_zero_out(const std::optional<family::Version>& version) const override {
    return version && version->is_release && version->major == 0 && version->minor <= 23;
  }
};

}  // namespace

const family::Family& vllm() {
  static const Vllm kFamily;
  return kFamily;
}

}  // namespace sightline::vllm
