// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/bytes.h"
#include "common/base/result.h"

#include "router/cache/wire/event_format.h"
#include "router/engine/family/server_facts.h"
#include "router/engine/family/version.h"
#include "router/openai/edits.h"
#include "router/openai/request.h"
#include "router/openai/unread_request.h"

namespace sightline::family {

// The paths that the router requests with GET, beside /health and /v1/models.
struct Questions {
  std::string_view sources;  // of KV events.
  std::string_view version;
  std::string_view load;
  std::string_view sleep = {};  // whether the engine sleeps. Empty: its servers have no path for it
};

// The differences between engine families, with one implementation in a module for each. Texts and
// payloads come from a peer, so they may have any content.
// Thread safety: any thread may call any method. An implementation keeps no state. Pure.
class Family : public wire::EventFormat {
 public:
  // name() is the word in `--worker family=` and in "owned_by" of the server's models. title() is
  // the name as its makers write it.
  [[nodiscard]] virtual std::string_view name() const = 0;
  [[nodiscard]] virtual std::string_view title() const = 0;

  // Returns the paths to request. The views live as long as the family.
  [[nodiscard]] virtual Questions questions() const = 0;
  // Parse the answers, in the order of Questions. Sources are sorted by rank. Error: Corrupt.
  [[nodiscard]] virtual Result<std::vector<EventSource>> parse_sources(std::string body) const = 0;
  [[nodiscard]] virtual Result<Version> parse_version(std::string body) const = 0;
  [[nodiscard]] virtual Result<ServerLoad> parse_load(std::string body) const = 0;
  // Returns which versions have the path for sources, as the end of a sentence.
  [[nodiscard]] virtual std::string_view sources_hint() const = 0;

  // Edits what the family's servers must not read as the client wrote it. `identifiers` are those
  // of the images of a chat request, in their order. An empty one is unknown.
  virtual void edit(openai::EditedBody& body, const openai::ApiRequest& request,
                    std::span<const std::string> identifiers) const = 0;

  // Returns the members to replace in a body that the router does not parse.
  [[nodiscard]] virtual std::span<const openai::FixedMember> unread_members() const = 0;

  // Returns why the blocks of a request do not show what the servers reuse for it. Empty if they
  // do.
  [[nodiscard]] virtual std::string_view unpredictable(const openai::ApiRequest& request) const = 0;
  // Returns how many blocks are reused if the first `leading` ones are held.
  [[nodiscard]] virtual std::uint64_t reused_blocks(std::uint64_t leading,
                                                    std::uint64_t prompt_tokens,
                                                    std::uint32_t block_size) const = 0;
  // Returns whether an answer without cached_tokens means zero, for a server that reports other
  // counts.
  [[nodiscard]] virtual bool leaves_zero_out(const std::optional<Version>& version) const = 0;
};

}  // namespace sightline::family
