// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/front/selection_json/messages.h"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <memory>
#include <utility>

#include "router/front/selection_json/json_fields.h"
#include "router/front/selection_json/keys_text.h"

namespace sightline::selection_json {
namespace {

std::string quoted(std::string_view text) { return json::to_quoted(text); }

// Enough digits to read back the same value.
std::string exact(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.17g", value);
  return text;
}

std::string text_list(const std::vector<std::string>& texts) {
  std::string out = "[";
  for (const std::string& text : texts) out += (out.size() > 1 ? "," : "") + quoted(text);
  return out + "]";
}

std::string spans_json(const std::vector<selection::TokenSpan>& spans) {
  std::string out = "[";
  for (const selection::TokenSpan& span : spans) {
    if (out.size() > 1) out += ',';
    out += '[' + std::to_string(span.start) + ',' + std::to_string(span.length) + ']';
  }
  return out + "]";
}

std::optional<contract::EngineFamily> family_named(std::string_view name) {
  for (const auto family : contract::kEngineFamilies) {
    if (contract::name_of(family) == name) return family;
  }
  return std::nullopt;
}

void read_tokens(Fields& fields, SelectionAsk& ask) {
  const auto ids = fields.list("token_ids", kTokensMax);
  if (!ids) return;
  TokenPrompt& prompt = ask.tokens.emplace();
  prompt.tokens.reserve(ids->size());
  for (const json::Value id : *ids) {
    const auto value = id.integer();
    if (!value || *value < 0 || *value > std::numeric_limits<TokenId>::max()) {
      return fields.refuse("token_ids", "must be integers from 0 to 4294967295");
    }
    prompt.tokens.push_back(static_cast<TokenId>(*value));
  }
  prompt.cache_salt = fields.text("cache_salt", kNameBytesMax);
  const auto media = fields.list("media", kMediaMax);
  if (!media) return;
  // The spans must be in order, because block keys depend on it.
  std::uint64_t past = 0;
  for (const json::Value item : *media) {
    Fields span(item, "media");
    const std::string identifier = span.needed_text("identifier", kNameBytesMax);
    const std::uint64_t start = span.number("start", prompt.tokens.size());
    // start is at most the size of the prompt, so the subtraction cannot wrap.
    const std::uint64_t length = span.number("length", prompt.tokens.size() - start);
    if (!span.check().ok() || start < past) {
      return fields.refuse(
          "media",
          "must be spans {identifier, start, length} within the prompt, in the prompt's order");
    }
    past = start + length;
    prompt.media.push_back({keys::identifier_hash(identifier), static_cast<std::int64_t>(start),
                            static_cast<std::int64_t>(length)});
  }
}

// Reads [[start, length], …]. No span may overlap the one before.
void read_images(Fields& fields, std::vector<selection::TokenSpan>& images) {
  const auto spans = fields.list("images", kMediaMax);
  if (!spans) return;
  std::uint64_t past = 0;
  for (const json::Value item : *spans) {
    std::vector<std::uint64_t> numbers;
    if (item.is(json::Kind::Array) && item.size() == 2) {
      for (const json::Value number : item) {
        const auto value = number.integer();
        if (value && *value >= 0 && *value <= kImageTokenMax)
          numbers.push_back(static_cast<std::uint64_t>(*value));
      }
    }
    if (numbers.size() != 2 || numbers[0] < past) {
      return fields.refuse("images", "must be spans [start, length] in the prompt's order");
    }
    images.push_back({numbers[0], numbers[1]});
    past = numbers[0] + numbers[1];
  }
}

void read_inquiry(Fields& fields, SelectionAsk& ask) {
  selection::Inquiry& inquiry = ask.inquiry;
  read_tokens(fields, ask);
  if (const auto text = fields.find("keys")) {
    // Any other value than a text becomes "?", which is not base64.
    auto keys = read_keys(text->string().value_or("?"), kTokensMax);
    if (!keys.ok())
      return fields.refuse("keys", "must be base64 of block keys: " + keys.error().message);
    if (ask.tokens) return fields.refuse("keys", "cannot be combined with `token_ids`");
    inquiry.keys = std::make_shared<const std::vector<keys::BlockKey>>(std::move(*keys));
  }
  inquiry.is_read = fields.flag("read", true);
  inquiry.is_exact = fields.flag("exact", ask.tokens.has_value());
  const std::uint64_t given = ask.tokens ? ask.tokens->tokens.size() : 0;
  inquiry.job.prompt_tokens = fields.number("prompt_tokens", kBookedMax, given);
  // The first prompt is one of the prompts. The keys are those of its whole blocks.
  inquiry.first_prompt_tokens =
      fields.number("first_prompt_tokens", inquiry.job.prompt_tokens, inquiry.job.prompt_tokens);
  inquiry.job.block_size =
      static_cast<std::uint32_t>(fields.number("block_size", kBlockSizeMax, 1));
  if (inquiry.job.block_size == 0) fields.refuse("block_size", "must not be 0");
  // A router would otherwise count reused tokens that the prompt does not have.
  if (inquiry.keys->size() * inquiry.job.block_size > inquiry.first_prompt_tokens) {
    fields.refuse("keys", "must not cover more tokens than `first_prompt_tokens`");
  }
  read_images(fields, inquiry.images);
  if (ask.tokens && !inquiry.images.empty()) {
    return fields.refuse("images",
                         "cannot be combined with `token_ids`: list its images in `media`");
  }
  inquiry.adapter = fields.text("adapter", kNameBytesMax);
  inquiry.tried.again = fields.text("again", kNameBytesMax).value_or("");
  if (const auto failed = fields.list("failed", kTriedMax)) {
    for (const json::Value worker : *failed) {
      const auto name = worker.string();
      if (!name || name->size() > kNameBytesMax) return fields.refuse("failed", "must be names");
      inquiry.tried.failed.emplace_back(*name);
    }
  }
  if (const auto families = fields.list("unpredictable", contract::kEngineFamilies.size())) {
    for (const json::Value value : *families) {
      const auto family = family_named(value.string().value_or(""));
      if (!family) return fields.refuse("unpredictable", "must be engine families");
      inquiry.unpredictable[static_cast<std::size_t>(*family)] = true;
    }
  }
}

routing::Score read_score(Fields& fields) {
  routing::Score score;
  score.cost.raw_prefill_blocks = fields.real("raw_prefill_blocks");
  score.cost.overlap_credit_blocks = fields.real("overlap_credit_blocks");
  score.cost.prefill_blocks = fields.real("prefill_blocks");
  score.cost.decode_blocks = fields.real("decode_blocks");
  score.cost.total_blocks = fields.real("total_blocks");
  score.recompute_blocks = fields.real("recompute_blocks");
  score.spread_blocks = fields.real("spread_blocks");
  return score;
}

std::string score_members(const routing::Score& score) {
  return R"("raw_prefill_blocks":)" + exact(score.cost.raw_prefill_blocks) +
         R"(,"overlap_credit_blocks":)" + exact(score.cost.overlap_credit_blocks) +
         R"(,"prefill_blocks":)" + exact(score.cost.prefill_blocks) + R"(,"decode_blocks":)" +
         exact(score.cost.decode_blocks) + R"(,"total_blocks":)" + exact(score.cost.total_blocks) +
         R"(,"recompute_blocks":)" + exact(score.recompute_blocks) + R"(,"spread_blocks":)" +
         exact(score.spread_blocks);
}

std::optional<std::uint32_t> read_rank(Fields& fields) {
  if (!fields.find("rank")) return std::nullopt;
  return static_cast<std::uint32_t>(
      fields.number("rank", std::numeric_limits<std::uint32_t>::max()));
}

std::string rank_json(const std::optional<std::uint32_t>& rank) {
  return rank ? std::to_string(*rank) : "null";
}

std::string entry_json(const selection::Explanation::Entry& entry) {
  std::string out = R"({"worker":)" + quoted(entry.worker) + R"(,"rank":)" + rank_json(entry.rank) +
                    R"(,"state":)" + quoted(entry.state);
  // A worker that may not serve has no terms.
  if (!entry.is_eligible) return out + R"(,"eligible":false})";
  const routing::Candidate& c = entry.candidate;
  return out + R"(,"eligible":true,"gpu_blocks":)" + std::to_string(c.gpu_blocks) +
         R"(,"cpu_blocks":)" + std::to_string(c.cpu_blocks) + R"(,"storage_blocks":)" +
         std::to_string(c.storage_blocks) + R"(,"active_prefill_tokens":)" +
         exact(c.active_prefill_tokens) + R"(,"active_blocks":)" + exact(c.active_blocks) +
         R"(,"recent_prefill_blocks":)" + exact(c.recent_prefill_blocks) + R"(,"in_flight":)" +
         std::to_string(c.in_flight) + R"(,"kv_usage":)" + exact(c.kv_usage) + R"(,"score":{)" +
         score_members(entry.score) + "}}";
}

Result<selection::Explanation::Entry> read_entry(json::Value value) {
  Fields fields(value, "workers");
  constexpr std::uint64_t kCountMax = std::numeric_limits<std::uint32_t>::max();
  const auto count = [&](std::string_view name) {
    return static_cast<std::uint32_t>(fields.number(name, kCountMax));
  };
  selection::Explanation::Entry entry;
  entry.worker = fields.needed_text("worker", kNameBytesMax);
  entry.rank = read_rank(fields);
  entry.state = fields.needed_text("state", kNameBytesMax);
  entry.is_eligible = fields.flag("eligible", false);
  if (entry.is_eligible) {
    routing::Candidate& c = entry.candidate;
    c.gpu_blocks = count("gpu_blocks");
    c.cpu_blocks = count("cpu_blocks");
    c.storage_blocks = count("storage_blocks");
    c.in_flight = count("in_flight");
    c.active_prefill_tokens = fields.real("active_prefill_tokens");
    c.active_blocks = fields.real("active_blocks");
    c.recent_prefill_blocks = fields.real("recent_prefill_blocks");
    c.kv_usage = fields.real("kv_usage");
    const auto score = fields.find("score");
    if (!score) fields.refuse("score", "is missing");
    SL_TRY(fields.check());
    Fields terms(*score, "workers.score");
    entry.score = read_score(terms);
    SL_TRY(terms.check());
  }
  SL_TRY(fields.check());
  return entry;
}

}  // namespace

std::string write_ask(const SelectionAsk& ask) {
  const selection::Inquiry& inquiry = ask.inquiry;
  std::string out =
      R"({"identity":)" + quoted(ask.identity) + R"(,"keys":")" + write_keys(*inquiry.keys) +
      R"(","prompt_tokens":)" + std::to_string(inquiry.job.prompt_tokens) +
      R"(,"first_prompt_tokens":)" + std::to_string(inquiry.first_prompt_tokens) +
      R"(,"block_size":)" + std::to_string(inquiry.job.block_size) + R"(,"exact":)" +
      (inquiry.is_exact ? "true" : "false") + R"(,"read":)" + (inquiry.is_read ? "true" : "false");
  if (!inquiry.images.empty()) out += R"(,"images":)" + spans_json(inquiry.images);
  if (inquiry.adapter) out += R"(,"adapter":)" + quoted(*inquiry.adapter);
  if (!inquiry.tried.again.empty()) out += R"(,"again":)" + quoted(inquiry.tried.again);
  if (!inquiry.tried.failed.empty()) out += R"(,"failed":)" + text_list(inquiry.tried.failed);
  std::vector<std::string> families;
  for (const auto family : contract::kEngineFamilies) {
    if (!inquiry.unpredictable[static_cast<std::size_t>(family)]) continue;
    families.emplace_back(contract::name_of(family));
  }
  if (!families.empty()) out += R"(,"unpredictable":)" + text_list(families);
  if (ask.reservation) out += R"(,"reservation":)" + quoted(leases::text_of(*ask.reservation));
  if (ask.lease) out += R"(,"lease_s":)" + std::to_string(ask.lease->count());
  return out + "}";
}

Result<SelectionAsk> read_ask(std::string body, HeldBytes* memory) {
  const json::Document document = SL_TRY(parse_object(std::move(body), memory));
  Fields fields(document.root());
  SelectionAsk ask;
  read_inquiry(fields, ask);
  ask.identity = fields.text("identity", kNameBytesMax).value_or("");
  if (const auto text = fields.text("reservation", kNameBytesMax)) {
    ask.reservation = leases::parse_name(*text);
    if (!ask.reservation) fields.refuse("reservation", "must be INSTANCE.NUMBER.ATTEMPT");
  }
  if (fields.find("lease_s")) {
    const std::uint64_t lease = fields.number("lease_s", kLeaseSecondsMax);
    if (lease == 0) fields.refuse("lease_s", "must not be 0");
    ask.lease = std::chrono::seconds(lease);
  }
  const bool has_prompt = ask.tokens || fields.find("prompt_tokens");
  if (ask.inquiry.is_read && !has_prompt) {
    fields.refuse("prompt_tokens", "is missing. Send it or `token_ids`");
  }
  SL_TRY(fields.check());
  return ask;
}

std::string write_selection(const selection::Selection& selection,
                            const std::optional<leases::Name>& reservation) {
  return R"({"worker":)" + quoted(selection.worker) + R"(,"host":)" + quoted(selection.host) +
         R"(,"port":)" + std::to_string(selection.port) + R"(,"rank":)" +
         rank_json(selection.rank) + R"(,"family":)" + quoted(contract::name_of(selection.family)) +
         R"(,"overlap_blocks":)" + std::to_string(selection.overlap_blocks) +
         R"(,"prompt_blocks":)" + std::to_string(selection.prompt_blocks) + R"(,"block_size":)" +
         std::to_string(selection.block_size) + R"(,"reason":)" + quoted(selection.reason) +
         R"(,"score":{)" + score_members(selection.score) + R"(},"reservation":)" +
         (reservation ? quoted(leases::text_of(*reservation)) : "null") + "}";
}

Result<selection::Selection> read_selection(std::string body,
                                            const std::optional<leases::Name>& reserved) {
  const json::Document document = SL_TRY(parse_object(std::move(body)));
  Fields fields(document.root());
  selection::Selection selection;
  selection.worker = fields.needed_text("worker", kNameBytesMax);
  selection.host = fields.needed_text("host", kNameBytesMax);
  // The frontend connects to this host. It must not contain other parts of a URL.
  if (!contract::is_url_host(selection.host)) fields.refuse("host", "must be a host");
  selection.port = static_cast<std::uint16_t>(fields.number("port", 65'535));
  if (selection.port == 0) fields.refuse("port", "must not be 0");
  if (reserved && fields.text("reservation", kNameBytesMax) != leases::text_of(*reserved)) {
    fields.refuse("reservation", "must be " + leases::text_of(*reserved));
  }
  selection.rank = read_rank(fields);
  const auto family = family_named(fields.needed_text("family", kNameBytesMax));
  if (!family) fields.refuse("family", "must be an engine family");
  selection.overlap_blocks = fields.number("overlap_blocks", kNumberMax);
  selection.prompt_blocks = fields.number("prompt_blocks", kNumberMax);
  selection.block_size = static_cast<std::uint32_t>(fields.number("block_size", kBlockSizeMax));
  selection.reason = fields.needed_text("reason", kNameBytesMax);
  const auto score = fields.find("score");
  if (!score) fields.refuse("score", "is missing");
  SL_TRY(fields.check());
  // check() has refused an unknown family.
  selection.family = *family;
  Fields terms(*score, "score");
  selection.score = read_score(terms);
  SL_TRY(terms.check());
  return selection;
}

std::string write_explanation(const selection::Explanation& explanation) {
  std::string out = R"({"reason":)" + quoted(explanation.reason) + R"(,"chosen":)" +
                    std::to_string(explanation.chosen) + R"(,"workers":[)";
  for (const auto& entry : explanation.entries) {
    out += (out.back() == '[' ? "" : ",") + entry_json(entry);
  }
  return out + "]}";
}

Result<selection::Explanation> read_explanation(std::string body) {
  const json::Document document = SL_TRY(parse_object(std::move(body)));
  Fields fields(document.root());
  selection::Explanation explanation;
  explanation.reason = fields.needed_text("reason", kNameBytesMax);
  explanation.chosen = fields.number("chosen", kExplainedMax);
  const auto workers = fields.list("workers", kExplainedMax);
  if (!workers || explanation.chosen >= workers->size()) {
    fields.refuse("workers", "must contain the chosen worker");
  }
  SL_TRY(fields.check());
  for (const json::Value worker : *workers) {
    explanation.entries.push_back(SL_TRY(read_entry(worker)));
  }
  return explanation;
}

}  // namespace sightline::selection_json
