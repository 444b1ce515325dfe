// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "tests/golden/images/counts.h"

#include <algorithm>

#include "router/prompt/model/expand.h"
#include "router/prompt/model/image_tokens.h"
#include "tests/support/paths.h"

namespace sightline::golden {
namespace {

constexpr std::size_t kTokensMax = 1'000'000;

std::string content_or_nothing(const std::filesystem::path& file) {
  return std::filesystem::exists(file) ? content_of(file) : std::string();
}

// The media of a row, counted; an error's text instead when a size is refused.
Result<std::vector<model::MediaItem>> counted(const json::Value& row,
                                              const model::ModelProfile& profile) {
  std::vector<model::MediaItem> items;
  const auto sizes = row.find("sizes");
  for (const json::Value pair : *sizes) {
    std::vector<std::uint32_t> sides;
    for (const json::Value side : pair) {
      sides.push_back(static_cast<std::uint32_t>(side.integer().value_or(0)));
    }
    const auto count = SL_TRY(model::count_image_tokens(profile, {sides.at(0), sides.at(1)}));
    items.push_back({model::PlaceholderKind::Image, "item", count.tokens});
  }
  return items;
}

// The ids that the row's run-length encoding stands for.
std::vector<TokenId> wanted_ids(const json::Value& row, const tokenizer::Tokenizer& tokenizer) {
  std::vector<TokenId> ids;
  const auto runs = row.find("rle");
  for (const json::Value run : *runs) {
    const auto token = (*run.begin()).string().value_or("");
    auto count_at = run.begin();
    ++count_at;
    const auto count = (*count_at).integer().value_or(0);
    // Text pieces and special tokens alike: the tokenizer knows the latter by their content.
    for (std::int64_t i = 0; i < count; ++i) SL_CHECK(tokenizer.encode(token, ids).ok());
  }
  return ids;
}

bool spans_agree(const model::Prompt& prompt, std::span<const model::MediaItem> items,
                 TokenId image) {
  if (prompt.spans.size() != items.size()) return false;
  std::size_t covered = 0;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const model::PlaceholderSpan& span = prompt.spans[i];
    if (span.item != i || span.length != items[i].tokens) return false;
    for (std::size_t k = 0; k < span.length; ++k) {
      if (prompt.tokens.at(span.start + k) != image) return false;
    }
    covered += span.length;
  }
  return covered ==
         static_cast<std::size_t>(std::count(prompt.tokens.begin(), prompt.tokens.end(), image));
}

// Empty if the row agrees.
std::string disagreement(const json::Value& row, const model::ModelProfile& profile,
                         const tokenizer::Tokenizer& tokenizer) {
  const auto items = counted(row, profile);
  if (row.find("error")) return items.ok() ? "must be refused" : "";
  if (!items.ok()) return items.error().message;
  std::vector<TokenId> rendered;
  SL_CHECK(tokenizer.encode(text(row, "prompt"), rendered).ok());
  const auto prompt = model::expand({rendered, kTokensMax}, *items, profile.placeholders);
  if (!prompt.ok()) return prompt.error().message;
  if (prompt->certainty != model::Certainty::Exact) return "not exact";
  if (prompt->exact_tokens != prompt->tokens.size()) return "not all tokens exact";
  if (prompt->tokens != wanted_ids(row, tokenizer)) return "other ids";
  const auto soft =
      std::count(prompt->tokens.begin(), prompt->tokens.end(), *profile.placeholders.image);
  if (soft != number(row, "soft")) return "other number of image tokens";
  return spans_agree(*prompt, *items, *profile.placeholders.image) ? "" : "other spans";
}

}  // namespace

model::ModelProfile profile_of(const std::string& model) {
  const std::filesystem::path directory =
      std::filesystem::path(test::in_sources("tests/data/models")) / model;
  model::ModelFiles files;
  files.config = content_or_nothing(directory / model::kConfigFile);
  files.tokenizer_config = content_or_nothing(directory / model::kTokenizerConfigFile);
  files.template_jinja = content_or_nothing(directory / model::kTemplateFile);
  files.preprocessor = content_or_nothing(directory / model::kPreprocessorFile);
  auto profile = model::parse_model(files);
  SL_CHECK(profile.ok());
  return std::move(*profile);
}

Tally check_expansions(const std::filesystem::path& table, const model::ModelProfile& profile,
                       const tokenizer::Tokenizer& tokenizer) {
  Tally tally;
  for (const json::Document& row : rows_of(table)) {
    const std::string why = disagreement(row.root(), profile, tokenizer);
    tally.expect(why.empty(),
                 table.filename().string() + " " + text(row.root(), "id") + ": " + why);
  }
  return tally;
}

Tally check_engine_counts(const std::filesystem::path& table, const std::string& family,
                          const model::ModelProfile& profile) {
  Tally tally;
  for (const json::Document& document : rows_of(table)) {
    const json::Value row = document.root();
    if (text(row, "family") != family) continue;
    const auto width = static_cast<std::uint32_t>(number(row, "width"));
    const auto height = static_cast<std::uint32_t>(number(row, "height"));
    const auto count = model::count_image_tokens(profile, {width, height});
    const std::int64_t tokens = count.ok() ? count->tokens : -1;
    const std::int64_t growth =
        number(row, "prompt_tokens") - number(row, "prompt_tokens_unexpanded");
    tally.expect(tokens == number(row, "placeholder_length") && tokens == growth + 1,
                 family + " " + std::to_string(width) + "x" + std::to_string(height) + ": " +
                     std::to_string(tokens));
  }
  return tally;
}

}  // namespace sightline::golden
