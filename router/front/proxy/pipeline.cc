// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/front/proxy/pipeline.h"

#include <algorithm>
#include <span>
#include <utility>

#include "common/base/memory_ledger.h"

#include "router/engine/families/families.h"
#include "router/openai/error_body.h"
#include "router/prompt/prepare/weights.h"

namespace sightline::proxy {
namespace {

// The most prompt tokens of any model. It protects memory if no worker reports its limit.
constexpr std::size_t kPromptTokensMax = 1U << 22U;
// The tokens per block for the comparison of work, if no worker has reported its own number. This
// is vLLM's default.
constexpr std::uint32_t kAssumedBlockSize = 16;
// The bytes of a body per token where the prompt is not known. English text has this ratio.
constexpr std::size_t kBytesPerTokenGuess = 4;
// The same for a prompt of token ids, which have digits, a comma and often a blank.
constexpr std::size_t kBytesPerIdGuess = 6;
// The tokens whose block keys cost one unit of weight, 16 ns.
constexpr std::size_t kTokensPerWeight = 2;

// Returns the tokens of all prompts of a batch. The first prompt has first_tokens.
std::size_t batch_tokens(const openai::ApiRequest& request, std::size_t first_tokens) {
  const openai::CompletionBody& batch = *request.completion();
  const bool is_text = std::holds_alternative<std::string_view>(batch.first_prompt);
  const std::size_t bytes = request.document.text().size();
  return std::max(first_tokens + batch.prompts - 1,
                  bytes / (is_text ? kBytesPerTokenGuess : kBytesPerIdGuess));
}

std::vector<keys::MediaSpan> spans_of(const prepare::Prepared& prepared) {
  std::vector<keys::MediaSpan> spans;
  spans.reserve(prepared.prompt.spans.size());
  for (const model::PlaceholderSpan& span : prepared.prompt.spans) {
    spans.push_back({keys::identifier_hash(prepared.media[span.item].identifier),
                     static_cast<std::int64_t>(span.start),
                     static_cast<std::int64_t>(span.length)});
  }
  return spans;
}

}  // namespace

Pipeline::Pipeline(const Deps& services)
    : services_(services),
      seed_(services.settings.read()->routing.seed != 0
                ? services.settings.read()->routing.seed
                : static_cast<std::uint64_t>(services.clock.wall().time_since_epoch().count())) {}

HeldBytes Pipeline::memory_for(std::size_t body_bytes) const {
  return HeldBytes(&services_.memory, claim_of(body_bytes));
}

Task<Result<openai::ApiRequest>> Pipeline::parse(openai::Endpoint endpoint, std::string body,
                                                 const fleet::Served& served,
                                                 Requester& requester) const {
  const openai::RequestLimits limits{.images_max = services_.settings.read()->media.images_max,
                                     .memory = &requester.memory};
  // The places of the looks change with the time. A client cannot prepare a body for them.
  const auto now = static_cast<std::uint64_t>(services_.clock.now().time_since_epoch().count());
  const std::size_t weight = prepare::parse_weight(body, Rng(seed_ ^ now));
  auto work = [&, endpoint]() -> Result<openai::ApiRequest> {
    auto request = SL_TRY(openai::parse_request(endpoint, std::move(body), limits));
    SL_TRY(check_model(request, served));
    return request;
  };
  auto request = co_await offload(services_.pool, weight, requester.left, std::move(work));
  co_return request;
}

Task<Result<openai::UnreadRequest>> Pipeline::parse_unread(std::string body,
                                                           std::string_view content_type,
                                                           Requester& requester) const {
  const openai::UnreadRules rules{.fixed = families::unread_members(),
                                  .media_max = services_.settings.read()->media.images_max,
                                  .memory = &requester.memory};
  const auto now = static_cast<std::uint64_t>(services_.clock.now().time_since_epoch().count());
  const std::size_t weight = prepare::parse_weight(body, Rng(seed_ ^ now));
  auto work = [&body, content_type, &rules] {
    return openai::read_unread(std::move(body), content_type, rules);
  };
  auto request = co_await offload(services_.pool, weight, requester.left, std::move(work));
  co_return request;
}

Task<Result<prepare::Downloads>> Pipeline::fetch(std::span<const openai::MediaPart> media,
                                                 std::stop_token left) const {
  const std::uint64_t bytes_max = services_.settings.read()->server.body_bytes_max;
  auto downloads =
      co_await prepare::download_media(media, services_.fetcher, bytes_max, std::move(left));
  co_return downloads;
}

Result<Done> Pipeline::check_model(const openai::ApiRequest& request,
                                   const fleet::Served& served) const {
  if (!request.model) return Done{};
  const auto settings = services_.settings.read();
  const auto& names = settings->model.served_names;
  if (std::find(names.begin(), names.end(), *request.model) != names.end()) return Done{};
  // Without served names of its own, the router serves the workers' names. With them it serves only
  // the workers' adapters.
  const fleet::ServedNames::Model* model = served.models.find(*request.model);
  if (model != nullptr && (names.empty() || !model->parent.empty())) return Done{};
  return openai::no_such_model(*request.model);
}

std::size_t Pipeline::prompt_tokens_max(const fleet::Served& served) const {
  // The operator's limit has priority. Then comes the workers' limit, and last the model's.
  const std::uint32_t longest = services_.settings.read()->model.max_model_len;
  if (longest > 0) return longest;
  if (served.prompt_tokens_max > 0) return served.prompt_tokens_max;
  return services_.model->profile.tokens_max.value_or(kPromptTokensMax);
}

Task<Result<prepare::Prepared>> Pipeline::prepare(openai::ApiRequest& request,
                                                  const fleet::Served& served,
                                                  Requester& requester) const {
  const auto settings = services_.settings.read();
  const prepare::LoadedModel& model = *services_.model;
  const prepare::MediaRules rules{.profile = model.profile,
                                  .key = services_.identity,
                                  .image_bytes_max = settings->media.image_bytes_max};
  const openai::ChatBody* chat = request.chat();
  const auto parts = chat == nullptr ? std::span<const openai::MediaPart>{} : chat->media;
  auto downloads = co_await fetch(parts, requester.left);
  if (!downloads.ok()) co_return std::move(downloads).error();
  const prepare::PromptOptions prompt_options{.token_cache = &services_.token_cache,
                                              .tokens_max = prompt_tokens_max(served),
                                              .now = services_.clock.wall(),
                                              .left = requester.left};
  HeldBytes& memory = requester.memory;
  const std::size_t bytes = prepare::prepare_bytes(request, prompt_options.tokens_max);
  // A full budget rejects the request before the work begins.
  if (!memory.add(bytes)) co_return memory_error(memory, bytes, "the prompt of the request");
  auto work = [&]() -> Result<prepare::Prepared> {
    auto media = SL_TRY(prepare::resolve_media(request, *downloads, rules));
    auto prepared =
        SL_TRY(prepare::prepare_prompt(model, request, std::move(media), prompt_options));
    openai::drop_prompt(request, &memory);
    return prepared;
  };
  const std::size_t weight = prepare::prepare_weight(request, *downloads);
  auto prepared = co_await offload(services_.pool, weight, requester.left, std::move(work));
  memory.remove(bytes);
  // Counted until the request ends.
  if (prepared.ok()) memory.charge(prepared->bytes());
  co_return prepared;
}

Task<Result<Keyed>> Pipeline::key(const openai::ApiRequest& request,
                                  const prepare::Prepared& prepared, const fleet::Served& served,
                                  std::stop_token left) const {
  auto work = [&]() -> Result<Keyed> { return key(request, prepared, served); };
  const std::size_t weight = prepared.known_tokens() / kTokensPerWeight;
  auto keyed = co_await offload(services_.pool, weight, std::move(left), std::move(work));
  co_return keyed;
}

Keyed Pipeline::key(const openai::ApiRequest& request, const prepare::Prepared& prepared,
                    const fleet::Served& served) const {
  const std::uint32_t size = served.block_size.value_or(kAssumedBlockSize);
  Keyed keyed;
  selection::Inquiry& inquiry = keyed.inquiry;
  inquiry.adapter = served.adapter(request.model);
  const keys::KeyScope scope{.model = scope_model(*services_.settings.read()),
                             .cache_salt = request.cache_salt,
                             .lora = inquiry.adapter};
  const std::vector<keys::MediaSpan> spans = spans_of(prepared);
  const std::span<const TokenId> tokens(prepared.prompt.tokens.data(), prepared.known_tokens());
  auto blocks = keys::block_keys(services_.scheme, services_.scheme.root(scope),
                                 {.tokens = tokens, .media = spans, .block_size = size});
  inquiry.keys = std::make_shared<const std::vector<keys::BlockKey>>(std::move(blocks.keys));
  inquiry.job = {.prompt_tokens = prepared.prompt.tokens.size(), .block_size = size};
  for (const model::PlaceholderSpan& span : prepared.prompt.spans) {
    inquiry.images.push_back({span.start, span.length});
  }
  for (const auto family : contract::kEngineFamilies) {
    const auto reason = families::family_of(family).unpredictable(request);
    inquiry.unpredictable[static_cast<std::size_t>(family)] = !reason.empty();
  }
  // The worker reports on a batch as a whole, and on several samples together. Only the first
  // prompt of a batch is known here.
  const openai::CompletionBody* completion = request.completion();
  inquiry.is_exact = prepared.is_exact() && (completion == nullptr || completion->prompts == 1) &&
                     request.samples == 1;
  inquiry.first_prompt_tokens = inquiry.job.prompt_tokens;
  if (completion != nullptr && completion->prompts > 1) {
    inquiry.job.prompt_tokens = batch_tokens(request, inquiry.first_prompt_tokens);
    keyed.prompt_estimated = true;
  } else if (prepared.prompt.tokens.empty() && !prepared.is_exact()) {
    inquiry.job.prompt_tokens = request.document.text().size() / kBytesPerTokenGuess;
    keyed.prompt_estimated = true;
  }
  return keyed;
}

std::string scope_model(const contract::ServeSettings& settings) { return settings.model.scope(); }

}  // namespace sightline::proxy
