// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
//
// Parses any tokenizer.json, and encodes with any vocabulary and merges.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "common/base/json.h"

#include "router/prompt/tokenizer/model_file.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/target.h"
#include "tests/fuzz/tokenizer_reading.h"

namespace sightline::fuzz {
namespace {

constexpr std::size_t kTokensMax = 400;
constexpr std::size_t kTokenBytesMax = 40;

// Returns the characters of GPT-2's byte alphabet, indexed by byte.
std::vector<std::string> byte_alphabet() {
  std::vector<std::string> alphabet;
  UChar32 next = 256;
  for (UChar32 byte = 0; byte < 256; ++byte) {
    const bool printable = (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) ||
                           (byte >= 0xAE && byte <= 0xFF);
    char units[4];
    std::int32_t size = 0;
    const UChar32 c = printable ? byte : next;
    next += printable ? 0 : 1;
    U8_APPEND_UNSAFE(units, size, c);
    alphabet.emplace_back(units, static_cast<std::size_t>(size));
  }
  return alphabet;
}

struct Model {
  std::vector<std::string> tokens;  // in the byte alphabet, the index is the id
  std::vector<std::pair<std::string, std::string>> merges;
};

// Returns all bytes as tokens, then one token for each pair of indexes that makes a new one.
Model read_model(Input& input) {
  Model model{.tokens = byte_alphabet(), .merges = {}};
  std::size_t left = input.byte();
  for (; left > 0 && model.tokens.size() < kTokensMax; --left) {
    const auto a = model.tokens[(std::size_t{input.byte()} * 2) % model.tokens.size()];
    const auto b = model.tokens[(std::size_t{input.byte()} * 3) % model.tokens.size()];
    const auto joined = a + b;
    const bool known =
        std::find(model.tokens.begin(), model.tokens.end(), joined) != model.tokens.end();
    const auto merge = std::pair(a, b);
    const bool merged =
        std::find(model.merges.begin(), model.merges.end(), merge) != model.merges.end();
    if (joined.size() > kTokenBytesMax || merged) continue;
    model.merges.push_back(merge);
    if (!known) model.tokens.push_back(joined);
  }
  return model;
}

std::string json_of(const Model& model, bool nfc, const std::vector<std::string>& added) {
  std::string vocab;
  for (std::size_t id = 0; id < model.tokens.size(); ++id) {
    vocab += (id > 0 ? "," : "") + json::to_quoted(model.tokens[id]) + ":" + std::to_string(id);
  }
  std::string merges;
  for (const auto& [left, right] : model.merges) {
    merges += merges.empty() ? "[" : ",[";
    merges += json::to_quoted(left) + "," + json::to_quoted(right) + "]";
  }
  std::string specials;
  std::size_t next_id = model.tokens.size();
  for (const auto& token : added) {
    const auto known = std::find(model.tokens.begin(), model.tokens.end(), token);
    const auto place = static_cast<std::size_t>(known - model.tokens.begin());
    specials += specials.empty() ? R"({"id":)" : R"(,{"id":)";
    specials += std::to_string(known == model.tokens.end() ? next_id++ : place) + R"(,"content":)" +
                json::to_quoted(token) + R"(,"special":true})";
  }
  const std::string pattern(tokenizer::kQwenPattern);
  return R"({"version":"1.0","added_tokens":[)" + specials + R"(],"normalizer":)" +
         (nfc ? R"({"type":"NFC"})" : "null") +
         R"(,"pre_tokenizer":{"type":"Sequence","pretokenizers":[{"type":"Split",)"
         R"("pattern":{"Regex":)" +
         json::to_quoted(pattern) +
         R"(},"behavior":"Isolated","invert":false},{"type":"ByteLevel",)"
         R"("add_prefix_space":false,"use_regex":false}]},"model":{"type":"BPE","vocab":{)" +
         vocab + R"(},"merges":[)" + merges + "]}}";
}

void check_built(Input& input) {
  const Model model = read_model(input);
  const auto file = json_of(model, true, {"<|a|>", "<|ab|>", "<"});
  const auto tokenizer = tokenizer::Tokenizer::create(file);
  SL_CHECK(tokenizer.ok());
  const tokenizer::NaiveTokenizer naive(file);
  const std::string text(input.text());
  check_encoding(**tokenizer, naive, text);
}

}  // namespace

void run(ByteView bytes) {
  Input input(bytes);
  if (input.byte() % 2 == 0) return check_built(input);
  const std::string file(input.text());
  const auto tokenizer = tokenizer::Tokenizer::create(file);
  if (!tokenizer.ok()) {
    SL_CHECK(!tokenizer.error().message.empty());
    return;
  }
  std::vector<TokenId> ids;
  SL_CHECK((*tokenizer)->encode("a \u00e9 <|im_start|> \u4e2d\u6587 0123", ids).ok());
  SL_CHECK(is_utf8((*tokenizer)->decode(ids)));
}

}  // namespace sightline::fuzz
