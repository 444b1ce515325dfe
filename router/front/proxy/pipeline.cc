// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/front/proxy/pipeline.h"

#include <algorithm>
#include <span>
#include <utility>

#include "router/engine/families/families.h"
#include "router/front/proxy/offload.h"

namespace sightline::proxy {
namespace {

// Prompt tokens that any model may have; protects memory where no engine names its limit.
constexpr std::size_t kPromptTokensMax = 1U << 22U;
// Tokens per block assumed for comparing work when no engine has told its own; vLLM's default.
constexpr std::uint32_t kAssumedBlockSize = 16;
// Bytes of an unknown model's name that the error repeats.
constexpr std::size_t kShownNameBytesMax = 256;
// Bytes of a body per token where the prompt is not known: English text.
constexpr std::size_t kBytesPerTokenGuess = 4;
// The same where the prompt is token ids: digits, comma, often a blank.
constexpr std::size_t kBytesPerIdGuess = 6;

// A name that a client made up, as errors show it: cut at a whole character.
std::string shown(std::string_view name) {
  if (name.size() <= kShownNameBytesMax) return std::string(name);
  std::size_t end = kShownNameBytesMax;
  while (end > 0 && (static_cast<unsigned char>(name[end]) & 0xC0U) == 0x80U) --end;
  return std::string(name.substr(0, end)) + "…";
}

bool is_tried(const Tried& tried, const std::string& name) {
  return std::find(tried.failed.begin(), tried.failed.end(), name) != tried.failed.end();
}

// Tokens of all prompts of a batch, of which the first has first_tokens.
std::size_t batch_tokens(const openai::Request& request, std::size_t first_tokens) {
  const openai::CompletionBody& batch = *request.completion();
  const bool is_text = std::holds_alternative<std::string_view>(batch.first_prompt);
  const std::size_t bytes = request.document.text().size();
  return std::max(first_tokens + batch.prompts - 1,
                  bytes / (is_text ? kBytesPerTokenGuess : kBytesPerIdGuess));
}

std::vector<keys::MediaSpan> spans_of(const prepare::Prepared& prepared) {
  std::vector<keys::MediaSpan> spans;
  spans.reserve(prepared.prompt.spans.size());
  for (const model::MediaSpan& span : prepared.prompt.spans) {
    spans.push_back({keys::identifier_hash(prepared.media[span.item].identifier),
                     static_cast<std::int64_t>(span.start),
                     static_cast<std::int64_t>(span.length)});
  }
  return spans;
}

}  // namespace

Pipeline::Pipeline(const Services& services)
    : services_(services),
      seed_(services.settings.routing.seed != 0
                ? services.settings.routing.seed
                : static_cast<std::uint64_t>(services.clock.wall().time_since_epoch().count())) {}

Task<Result<openai::Request>> Pipeline::parse(openai::Endpoint endpoint, std::string body,
                                              std::stop_token left) const {
  const openai::RequestLimits limits{.images_max = services_.settings.media.images_max};
  const auto now = static_cast<std::uint64_t>(services_.clock.now().time_since_epoch().count());
  const std::size_t weight = parse_weight(body, Rng(seed_ ^ now));
  auto work = [endpoint, &body, &limits] {
    return openai::parse_request(endpoint, std::move(body), limits);
  };
  auto request = co_await offload(services_.pool, weight, left, std::move(work));
  if (!request.ok()) co_return std::move(request).error();
  SL_CO_TRY(check_model(*request));
  co_return std::move(request).value();
}

Result<Done> Pipeline::check_model(const openai::Request& request) const {
  if (!request.model) return Done{};
  const auto& names = services_.settings.model.served_names;
  if (std::find(names.begin(), names.end(), *request.model) != names.end()) return Done{};
  const auto fleet = services_.fleet.snapshot();
  for (const auto& worker : fleet->workers) {
    for (const fleet::ServedModel& model : worker->models) {
      // Without a name of our own the engines' names are served, else only their adapters.
      if (model.id == *request.model && (names.empty() || !model.parent.empty())) return Done{};
    }
  }
  return client_error(ErrorCode::NotFound,
                      "The model `" + shown(*request.model) + "` does not exist.", "model");
}

std::size_t Pipeline::prompt_tokens_max() const {
  if (services_.settings.model.max_model_len > 0) return services_.settings.model.max_model_len;
  std::size_t smallest = 0;
  const auto fleet = services_.fleet.snapshot();
  for (const auto& worker : fleet->workers) {
    const std::size_t tokens = worker->max_model_len;
    if (tokens > 0 && (smallest == 0 || tokens < smallest)) smallest = tokens;
  }
  if (smallest > 0) return smallest;
  return services_.model->profile.tokens_max.value_or(kPromptTokensMax);
}

Task<Result<prepare::Prepared>> Pipeline::prepare(const openai::Request& request,
                                                  std::stop_token left) const {
  const auto& limits = services_.settings.media;
  const prepare::Model& model = *services_.model;
  const prepare::MediaRules rules{.profile = model.profile,
                                  .key = services_.identity,
                                  .image_bytes_max = limits.image_bytes_max,
                                  .fetched_bytes_max = services_.settings.server.body_bytes_max};
  auto downloads = co_await prepare::download_media(request, services_.fetcher, rules, left);
  if (!downloads.ok()) co_return std::move(downloads).error();
  const prepare::PromptOptions prompt_options{.token_cache = &services_.token_cache,
                                              .tokens_max = prompt_tokens_max(),
                                              .now = services_.clock.wall(),
                                              .left = left};
  auto work = [&]() -> Result<prepare::Prepared> {
    auto media = SL_TRY(prepare::resolve_media(request, *downloads, rules));
    return prepare::prepare_prompt(model, request, std::move(media), prompt_options);
  };
  const std::size_t weight = prepare_weight(request, *downloads);
  auto prepared = co_await offload(services_.pool, weight, left, std::move(work));
  co_return prepared;
}

Keyed Pipeline::key(const openai::Request& request, const prepare::Prepared& prepared) const {
  const std::uint32_t size = block_size().value_or(kAssumedBlockSize);
  const auto fleet = services_.fleet.snapshot();
  const keys::Scope scope{.model = scope_model(services_.settings),
                          .cache_salt = request.cache_salt,
                          .lora = lora_of(*fleet, request.model)};
  const std::vector<keys::MediaSpan> spans = spans_of(prepared);
  const std::span<const TokenId> tokens(prepared.prompt.tokens.data(), prepared.known_tokens());
  Keyed keyed;
  keyed.blocks = keys::block_keys(services_.scheme, services_.scheme.root(scope),
                                  {.tokens = tokens, .media = spans, .block_size = size});
  keyed.job = {.prompt_tokens = prepared.prompt.tokens.size(), .block_size = size};
  // The engine reports on a batch as a whole, of which only the first prompt is known here.
  const openai::CompletionBody* completion = request.completion();
  keyed.exact = prepared.is_exact() && (completion == nullptr || completion->prompts == 1);
  for (const auto family : contract::kEngineFamilies) {
    const auto reason = families::family_of(family).unpredictable(request);
    keyed.unpredictable[static_cast<std::size_t>(family)] = !reason.empty();
  }
  keyed.first_prompt_tokens = keyed.job.prompt_tokens;
  if (completion != nullptr && completion->prompts > 1) {
    keyed.job.prompt_tokens = batch_tokens(request, keyed.first_prompt_tokens);
    keyed.prompt_estimated = true;
  } else if (prepared.prompt.tokens.empty() && !prepared.is_exact()) {
    keyed.job.prompt_tokens = request.document.text().size() / kBytesPerTokenGuess;
    keyed.prompt_estimated = true;
  }
  return keyed;
}

std::optional<std::uint32_t> Pipeline::block_size() const {
  // The fleet lets only workers of one block size be precise.
  const auto fleet = services_.fleet.snapshot();
  for (const auto& worker : fleet->workers) {
    if (worker->is_precise() && worker->block_size > 0) return worker->block_size;
  }
  return std::nullopt;
}

routing::Candidate Pipeline::candidate_of(const Target& target, const Keyed& keyed,
                                          const index::Overlaps& overlaps) const {
  const fleet::Load load = target.rank().load->read(services_.clock.now());
  routing::Candidate candidate{.active_prefill_tokens = static_cast<double>(load.prefill_tokens),
                               .active_blocks = static_cast<double>(load.blocks),
                               .recent_prefill_blocks = load.recent_prefill_blocks,
                               .in_flight = load.in_flight,
                               .kv_usage = target.rank().kv_usage};
  const auto cache = precise_cache(target, keyed.job.block_size);
  const contract::EngineFamily of = target.worker->family;
  if (!cache || keyed.unpredictable[static_cast<std::size_t>(of)]) return candidate;
  const family::Family& family = families::family_of(of);
  const index::CacheOverlap held = overlaps.of(*cache);
  // The engine computes at least the last token, so the block of that token saves nothing.
  const auto usable = [&](std::uint64_t leading) {
    return static_cast<std::uint32_t>(
        family.reused_blocks(leading, keyed.first_prompt_tokens, keyed.job.block_size));
  };
  candidate.gpu_blocks = usable(held.gpu_blocks);
  candidate.cpu_blocks = usable(held.gpu_blocks + held.cpu_blocks) - candidate.gpu_blocks;
  candidate.storage_blocks = usable(held.gpu_blocks + held.cpu_blocks + held.storage_blocks) -
                             candidate.gpu_blocks - candidate.cpu_blocks;
  return candidate;
}

Result<Shortlist> Pipeline::match(const openai::Request& request, const Keyed& keyed,
                                  const Tried& tried) const {
  Shortlist shortlist{.removals = services_.removals.position(), .asked = services_.clock.now()};
  // First who may be believed, then what is held: a worker that becomes verified in between has
  // perhaps just been corrected.
  const auto fleet = services_.fleet.snapshot();
  const index::Overlaps overlaps = services_.index.match(keyed.blocks.keys);
  shortlist.adapter = lora_of(*fleet, request.model);
  for (Target& target : targets_for(*fleet, tried, shortlist.adapter)) {
    shortlist.candidates.push_back(candidate_of(target, keyed, overlaps));
    shortlist.targets.push_back(std::move(target));
  }
  if (shortlist.targets.empty()) return no_worker();
  return shortlist;
}

routing::Decision Pipeline::select(const Keyed& keyed, const Shortlist& shortlist,
                                   std::uint64_t turn) const {
  Rng rng(seed_ + turn * 0x9e3779b97f4a7c15ULL);
  return routing::select(keyed.job, shortlist.candidates, {services_.settings.routing, turn}, rng);
}

std::optional<std::string> lora_of(const fleet::FleetSnapshot& fleet,
                                   const std::optional<std::string>& model) {
  if (!model) return std::nullopt;
  for (const auto& worker : fleet.workers) {
    for (const fleet::ServedModel& served : worker->models) {
      if (served.id == *model && !served.parent.empty()) return model;
    }
  }
  return std::nullopt;
}

std::string scope_model(const contract::ServeSettings& settings) {
  return settings.model.served_names.empty() ? "" : settings.model.served_names.front();
}

std::optional<std::uint32_t> Target::rank_number() const {
  if (!worker->has_several_ranks()) return std::nullopt;
  return rank().number;
}

Error no_worker() {
  return {ErrorCode::Unavailable,
          Blame::Internal,
          true,
          "no worker can take this request now; try again shortly",
          "",
          ""};
}

std::vector<Target> targets_for(const fleet::FleetSnapshot& fleet, const Tried& tried,
                                const std::optional<std::string>& adapter) {
  std::vector<Target> targets;
  targets.reserve(fleet.workers.size());
  for (const bool as_last_resort : {false, true}) {
    for (const auto& worker : fleet.workers) {
      const bool may_serve =
          as_last_resort ? worker->state == fleet::WorkerState::Suspect : worker->is_routable();
      if (!may_serve || is_tried(tried, worker->name)) continue;
      // Names of the base model are the router's; an adapter must be loaded on the worker.
      if (adapter && !worker->serves(*adapter)) continue;
      for (std::size_t i = 0; i < worker->ranks.size(); ++i) targets.push_back({worker, i});
    }
    if (!targets.empty()) break;
  }
  const auto is_other = [&tried](const Target& target) {
    return target.worker->name != tried.again;
  };
  if (!tried.again.empty() && !std::all_of(targets.begin(), targets.end(), is_other)) {
    std::erase_if(targets, is_other);
  }
  return targets;
}

std::optional<CacheId> precise_cache(const Target& target, std::uint32_t block_size) {
  const fleet::Worker& worker = *target.worker;
  const fleet::EngineEndpoints* engine = worker.engine_of(target.rank().number);
  if (engine == nullptr || !worker.is_precise(*engine)) return std::nullopt;
  if (worker.block_size != block_size) return std::nullopt;
  return engine->engine;
}

}  // namespace sightline::proxy
