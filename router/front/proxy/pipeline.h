// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/byte_budget.h"
#include "common/base/result.h"
#include "common/runtime/task.h"

#include "router/front/proxy/services.h"
#include "router/front/selection/selection.h"
#include "router/openai/request.h"
#include "router/openai/unread_request.h"
#include "router/prompt/prepare/prepare.h"
#include "router/workers/fleet/served.h"

namespace sightline::proxy {

// The blocks of a prompt, and what they require of a worker.
struct Keyed {
  // A batch is the work of all its prompts. Only the first prompt is tokenized. The tokens of the
  // others are estimated from their bytes. Several samples of a prompt count once, because they
  // share its blocks.
  selection::Inquiry inquiry;
  // job.prompt_tokens is estimated, wholly or in part.
  bool prompt_estimated = false;
};

// The client for which the steps of a request work.
struct Requester {
  // Stopped when the client has left.
  std::stop_token left;
  // Counts the memory of the steps. It must live longer than their results.
  HeldBytes memory;
};

// The first three steps of a request: parse, prepare and key. They change nothing outside of the
// request. They use no facts about workers except what these serve. An explanation of a request
// therefore runs the same code as the request itself.
//
// Thread safety: any I/O thread of the pool may call any method.
class Pipeline {
 public:
  explicit Pipeline(const Deps& services);

  // Returns the memory account of a request with a body of this size.
  [[nodiscard]] HeldBytes memory_for(std::size_t body_bytes) const;

  // Step 1: converts the body to values and checks that its model is served. A part of step 1 or 2
  // that has not begun when the client leaves is not done. Errors: those of
  // openai::parse_request(), Cancelled, and TooLarge or Overloaded if memory has no room.
  Task<Result<openai::ApiRequest>> parse(openai::Endpoint endpoint, std::string body,
                                         const fleet::Served& served, Requester& requester) const;

  // The same for a request whose prompt the router does not read. It finds the members of the body
  // that could make an engine connect or load something. `content_type` is the client's.
  Task<Result<openai::UnreadRequest>> parse_unread(std::string body, std::string_view content_type,
                                                   Requester& requester) const;

  // A part of step 2: downloads the media that have URLs. `media` must live longer than the task.
  Task<Result<prepare::Downloads>> fetch(std::span<const openai::MediaPart> media,
                                         std::stop_token left) const;

  // Step 2: resolves the media, renders the template, tokenizes the text and expands the
  // placeholders. It drops the parts of the request that only this step needs
  // (openai::drop_prompt).
  Task<Result<prepare::Prepared>> prepare(openai::ApiRequest& request, const fleet::Served& served,
                                          Requester& requester) const;

  // Step 3: computes the block keys and the inquiry for the router role.
  Task<Result<Keyed>> key(const openai::ApiRequest& request, const prepare::Prepared& prepared,
                          const fleet::Served& served, std::stop_token left) const;
  // The same on this thread, even for a long prompt.
  [[nodiscard]] Keyed key(const openai::ApiRequest& request, const prepare::Prepared& prepared,
                          const fleet::Served& served) const;

 private:
  [[nodiscard]] Result<Done> check_model(const openai::ApiRequest& request,
                                         const fleet::Served& served) const;
  [[nodiscard]] std::size_t prompt_tokens_max(const fleet::Served& served) const;

  const Deps& services_;
  const std::uint64_t seed_;
};

// The model's part of a block key's scope. It is the same for requests and for the workers' KV
// events.
std::string scope_model(const contract::ServeSettings& settings);

}  // namespace sightline::proxy
