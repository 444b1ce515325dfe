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

// A prompt's blocks and what they ask of a worker.
struct Keyed {
  // A batch is the work of all its prompts, of which only the first is tokenized: the others'
  // tokens are estimated from their bytes. Several samples of a prompt count once: they share its
  // blocks.
  selection::Inquiry inquiry;
  bool prompt_estimated = false;  // job.prompt_tokens is a guess, wholly or in part
};

// On whose behalf a request's steps work.
struct Requester {
  std::stop_token left;  // stopped when nobody waits for the result any more
  HeldBytes memory;      // charged with what the steps take; outlives their results
};

// The first three steps of a request's life: parse, prepare, key. They change nothing outside the
// request and know the workers only by what they serve, so explaining a request and serving it run
// the same code.
// Thread safety: all methods from any I/O thread of the pool.
class Pipeline {
 public:
  explicit Pipeline(const Services& services);

  // For the requester of a body of so many bytes.
  [[nodiscard]] HeldBytes memory_for(std::size_t body_bytes) const;

  // 1: the body as values; the model must be served. What has not begun when the requester has
  // left is not done, here and in 2: Cancelled. Where memory has no room: TooLarge, Overloaded.
  Task<Result<openai::ApiRequest>> parse(openai::Endpoint endpoint, std::string body,
                                         const fleet::Served& served, Requester& requester) const;

  // The same where the prompt is not read: what the body could make an engine do is. The content
  // type is the client's.
  Task<Result<openai::UnreadRequest>> parse_unread(std::string body, std::string_view content_type,
                                                   Requester& requester) const;

  // Of 2: what media name by URL. They outlive it.
  Task<Result<prepare::Downloads>> fetch(std::span<const openai::MediaPart> media,
                                         std::stop_token left) const;

  // 2: media resolved, template rendered, text tokenized, placeholders expanded. Of the request
  // what only that needs is dropped (openai::drop_prompt).
  Task<Result<prepare::Prepared>> prepare(openai::ApiRequest& request, const fleet::Served& served,
                                          Requester& requester) const;

  // 3: block keys, and with them what is asked of the router role.
  Task<Result<Keyed>> key(const openai::ApiRequest& request, const prepare::Prepared& prepared,
                          const fleet::Served& served, std::stop_token left) const;
  // The same on this thread, however long the prompt is.
  [[nodiscard]] Keyed key(const openai::ApiRequest& request, const prepare::Prepared& prepared,
                          const fleet::Served& served) const;

 private:
  [[nodiscard]] Result<Done> check_model(const openai::ApiRequest& request,
                                         const fleet::Served& served) const;
  [[nodiscard]] std::size_t prompt_tokens_max(const fleet::Served& served) const;

  const Services& services_;
  const std::uint64_t seed_;
};

// The model's part of a block key's scope: the same for requests and for the workers' events.
std::string scope_model(const contract::ServeSettings& settings);

}  // namespace sightline::proxy
