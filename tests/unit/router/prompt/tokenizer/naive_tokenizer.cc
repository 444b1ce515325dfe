// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "tests/unit/router/prompt/tokenizer/naive_tokenizer.h"

#include <limits>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <unicode/normalizer2.h>
#include <unicode/unistr.h>

#include "common/base/check.h"
#include "common/base/json.h"

namespace sightline::tokenizer {

struct NaiveTokenizer::Pattern {
  pcre2_code* code = nullptr;
  ~Pattern() { pcre2_code_free(code); }
};

NaiveTokenizer::~NaiveTokenizer() = default;

NaiveTokenizer::NaiveTokenizer(const std::string& tokenizer_json)
    : pattern_(std::make_unique<Pattern>()) {
  const auto document = json::Document::parse(tokenizer_json);
  const json::Value root = document.value().root();
  const json::Value model = *root.find("model");
  const json::Value vocab = *model.find("vocab");
  for (const json::Value entry : vocab) {
    vocabulary_[std::string(entry.name())] = static_cast<TokenId>(*entry.integer());
  }
  const json::Value merges = *model.find("merges");
  for (const json::Value entry : merges) {
    std::string pair;
    if (entry.is(json::Kind::Array)) {
      for (const json::Value side : entry) {
        pair += pair.empty() ? "" : " ";
        pair += *side.string();
      }
    } else {
      pair = *entry.string();
    }
    ranks_.emplace(pair, ranks_.size());
  }
  const json::Value added = *root.find("added_tokens");
  for (const json::Value entry : added) {
    added_.emplace_back(*entry.find("content")->string(),
                        static_cast<TokenId>(*entry.find("id")->integer()));
  }
  std::int32_t next = 256;
  for (std::int32_t byte = 0; byte < 256; ++byte) {
    const bool printable = (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) ||
                           (byte >= 0xAE && byte <= 0xFF);
    icu::UnicodeString(printable ? byte : next).toUTF8String(alphabet_.emplace_back());
    next += printable ? 0 : 1;
  }
  const json::Value split = *root.find("pre_tokenizer")->find("pretokenizers")->begin();
  const std::string regex(*split.find("pattern")->find("Regex")->string());
  int error = 0;
  PCRE2_SIZE where = 0;
  pattern_->code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(regex.data()), regex.size(),
                                 PCRE2_UTF | PCRE2_UCP, &error, &where, nullptr);
  SL_CHECK(pattern_->code != nullptr);
}

std::vector<std::uint32_t> NaiveTokenizer::word_ends(std::string_view text) const {
  std::vector<std::uint32_t> ends;
  pcre2_match_data* match = pcre2_match_data_create_from_pattern(pattern_->code, nullptr);
  for (std::size_t at = 0; at < text.size();) {
    const int found = pcre2_match(pattern_->code, reinterpret_cast<PCRE2_SPTR>(text.data()),
                                  text.size(), at, 0, match, nullptr);
    const PCRE2_SIZE* range = pcre2_get_ovector_pointer(match);
    SL_CHECK(found > 0 && range[0] == at && range[1] > at);
    at = range[1];
    ends.push_back(static_cast<std::uint32_t>(at));
  }
  pcre2_match_data_free(match);
  return ends;
}

std::vector<TokenId> NaiveTokenizer::encode_word(std::string_view word) const {
  std::vector<std::string> parts;
  for (const char c : word) parts.push_back(alphabet_[static_cast<std::uint8_t>(c)]);
  while (true) {
    std::size_t best = std::numeric_limits<std::size_t>::max();
    std::size_t best_at = 0;
    for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
      const auto rank = ranks_.find(parts[i] + " " + parts[i + 1]);
      if (rank == ranks_.end() || rank->second >= best) continue;
      best = rank->second;
      best_at = i;
    }
    if (best == std::numeric_limits<std::size_t>::max()) break;
    parts[best_at] += parts[best_at + 1];
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(best_at) + 1);
  }
  std::vector<TokenId> ids;
  for (const std::string& part : parts) ids.push_back(vocabulary_.at(part));
  return ids;
}

void NaiveTokenizer::encode_stretch(std::string_view text, std::vector<TokenId>& out) const {
  UErrorCode error = U_ZERO_ERROR;
  std::string normalized;
  icu::Normalizer2::getNFCInstance(error)
      ->normalize(icu::UnicodeString::fromUTF8(
                      icu::StringPiece(text.data(), static_cast<std::int32_t>(text.size()))),
                  error)
      .toUTF8String(normalized);
  std::size_t begin = 0;
  for (const std::uint32_t end : word_ends(normalized)) {
    for (const TokenId id : encode_word(std::string_view(normalized).substr(begin, end - begin))) {
      out.push_back(id);
    }
    begin = end;
  }
}

std::vector<TokenId> NaiveTokenizer::encode(std::string_view text) const {
  std::vector<TokenId> ids;
  std::size_t begin = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::pair<std::string, TokenId>* longest = nullptr;
    for (const auto& token : added_) {
      const bool longer = longest == nullptr || token.first.size() > longest->first.size();
      if (longer && text.substr(at).starts_with(token.first)) longest = &token;
    }
    if (longest == nullptr) {
      ++at;
      continue;
    }
    encode_stretch(text.substr(begin, at - begin), ids);
    ids.push_back(longest->second);
    at += longest->first.size();
    begin = at;
  }
  encode_stretch(text.substr(begin), ids);
  return ids;
}

}  // namespace sightline::tokenizer
