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

// What a server is asked with GET, beside /health and /v1/models.
struct Questions {
  std::string_view sources;  // of KV events
  std::string_view version;
  std::string_view load;
  std::string_view sleep = {};  // whether the engine sleeps; empty: its servers do not say
};

// What differs between engine families: one implementation each, in a room of its own. Texts and
// payloads come from a peer.
// Thread safety: all methods from any thread; they keep nothing. Pure.
class Family : public wire::EventFormat {
 public:
  // As in `--worker family=` and in "owned_by" of the server's models; as its makers write it.
  [[nodiscard]] virtual std::string_view name() const = 0;
  [[nodiscard]] virtual std::string_view title() const = 0;

  [[nodiscard]] virtual Questions questions() const = 0;
  // The answers to these, in that order; sources are sorted by rank. Errors: Corrupt.
  [[nodiscard]] virtual Result<std::vector<EventSource>> parse_sources(std::string body) const = 0;
  [[nodiscard]] virtual Result<Version> parse_version(std::string body) const = 0;
  [[nodiscard]] virtual Result<ServerLoad> parse_load(std::string body) const = 0;
  // Which versions answer the question for sources, as the end of a sentence.
  [[nodiscard]] virtual std::string_view sources_hint() const = 0;

  // What its servers must read otherwise than the client wrote it. `identifiers` are those of the
  // images of a chat request, in their order; an empty one is not known.
  virtual void edit(openai::EditedBody& body, const openai::ApiRequest& request,
                    std::span<const std::string> identifiers) const = 0;

  // What its servers must read otherwise than a client wrote it, in a body that the router does not
  // read.
  [[nodiscard]] virtual std::span<const openai::FixedMember> unread_members() const = 0;

  // Why the blocks of a request do not tell what its servers reuse for it; empty: they do.
  [[nodiscard]] virtual std::string_view unpredictable(const openai::ApiRequest& request) const = 0;
  // Blocks that are reused of so many leading ones held.
  [[nodiscard]] virtual std::uint64_t reused_blocks(std::uint64_t leading,
                                                    std::uint64_t prompt_tokens,
                                                    std::uint32_t block_size) const = 0;
  // An answer that tells no cached_tokens may mean zero, if the server tells the others at all.
  [[nodiscard]] virtual bool leaves_zero_out(const std::optional<Version>& version) const = 0;
};

}  // namespace sightline::family
