// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/prompt/tokenizer/model_file.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <optional>
#include <string>

#include "common/base/json.h"

#include "router/prompt/tokenizer/unicode.h"

namespace sightline::tokenizer {
namespace {

using json::Kind;
using json::Value;

constexpr std::size_t kModelFileBytesMax = 256UL << 20U;
// The most bytes of one token. No published byte-level vocabulary has tokens above 256 bytes.
constexpr std::size_t kTokenBytesMax = 1024;
constexpr std::size_t kAddedTokensMax = 100'000;

Error malformed(const std::string& place, const std::string& what) {
  return client_error(ErrorCode::InvalidArgument, "tokenizer.json: " + place + ": " + what);
}

Error unsupported(const std::string& place, const std::string& what) {
  return client_error(
      ErrorCode::Unsupported,
      "tokenizer.json: " + place + ": " + what +
          " is not supported. Only the tokenizers of Qwen2 and Qwen3 are supported");
}

std::string shown(Value value) {
  constexpr std::size_t kShownBytesMax = 80;
  const std::string_view raw = value.raw();
  if (raw.size() <= kShownBytesMax) return std::string(raw);
  return std::string(raw.substr(0, kShownBytesMax)) + "…";
}

bool is_off(std::optional<Value> value) {
  return !value || value->is(Kind::Null) || value->boolean() == false || value->string() == "" ||
         value->number() == 0.0;
}

// Checks that a setting is absent, null, false, 0 or "".
Result<Done> expect_off(Value object, const std::string& place, std::string_view name) {
  const auto value = object.find(name);
  if (is_off(value)) return Done{};
  return unsupported(place + "/" + std::string(name), shown(*value));
}

Result<Done> expect_text(Value object, const std::string& place, std::string_view name,
                         std::string_view want) {
  const auto value = object.find(name);
  const std::string here = place + "/" + std::string(name);
  if (!value) return malformed(here, "missing");
  if (value->string() != want) return unsupported(here, shown(*value));
  return Done{};
}

// Rejects unknown members, because they may change ids.
Result<Done> expect_only(Value object, const std::string& place,
                         std::initializer_list<std::string_view> known) {
  if (!object.is(Kind::Object)) return malformed(place, "expected an object");
  for (const Value member : object) {
    if (std::find(known.begin(), known.end(), member.name()) == known.end()) {
      return unsupported(place + "/" + std::string(member.name()), "this setting");
    }
  }
  return Done{};
}

Result<Value> member_of(Value object, const std::string& place, std::string_view name, Kind kind) {
  const auto value = object.find(name);
  const std::string here = place + "/" + std::string(name);
  if (!value) return malformed(here, "missing");
  if (!value->is(kind)) return malformed(here, "wrong type: " + shown(*value));
  return *value;
}

// The byte of each character in the byte-level alphabet (OpenAI's GPT-2 encoder). Printable Latin-1
// characters represent themselves. The other bytes have characters from U+0100 on.
class ByteAlphabet {
 public:
  ByteAlphabet() {
    std::uint32_t next = 256;
    for (std::uint32_t byte = 0; byte < 256; ++byte) {
      const bool printable = (byte > 32 && byte < 127) || (byte > 160 && byte != 173);
      bytes_[printable ? byte : next++] = static_cast<std::int16_t>(byte);
    }
  }

  // Returns nothing if a character is not in the alphabet.
  [[nodiscard]] std::optional<std::string> to_bytes(std::string_view text) const {
    std::string bytes;
    for (std::size_t at = 0; at < text.size();) {
      const Decoded decoded = decode_utf8(text.data() + at);
      if (decoded.code_point >= bytes_.size() || bytes_[decoded.code_point] < 0) return {};
      bytes += static_cast<char>(bytes_[decoded.code_point]);
      at += decoded.size_bytes;
    }
    return bytes;
  }

 private:
  std::array<std::int16_t, 512> bytes_ = [] {
    std::array<std::int16_t, 512> none{};
    none.fill(-1);
    return none;
  }();
};

Result<bool> read_normalizer(Value root) {
  const auto normalizer = root.find("normalizer");
  if (!normalizer || normalizer->is(Kind::Null)) return false;
  SL_TRY(expect_text(*normalizer, "/normalizer", "type", "NFC"));
  SL_TRY(expect_only(*normalizer, "/normalizer", {"type"}));
  return true;
}

Result<Done> check_byte_level(Value value, const std::string& place) {
  SL_TRY(expect_text(value, place, "type", "ByteLevel"));
  return expect_only(value, place, {"type", "add_prefix_space", "trim_offsets", "use_regex"});
}

Result<Done> check_split(Value split, const std::string& place) {
  SL_TRY(expect_text(split, place, "type", "Split"));
  SL_TRY(expect_only(split, place, {"type", "pattern", "behavior", "invert"}));
  SL_TRY(expect_text(split, place, "behavior", "Isolated"));
  SL_TRY(expect_off(split, place, "invert"));
  const Value pattern = SL_TRY(member_of(split, place, "pattern", Kind::Object));
  SL_TRY(expect_only(pattern, place + "/pattern", {"Regex"}));
  return expect_text(pattern, place + "/pattern", "Regex", kQwenPattern);
}

Result<Done> check_pre_tokenizer(Value root) {
  const std::string place = "/pre_tokenizer";
  const Value outer = SL_TRY(member_of(root, "", "pre_tokenizer", Kind::Object));
  SL_TRY(expect_text(outer, place, "type", "Sequence"));
  SL_TRY(expect_only(outer, place, {"type", "pretokenizers"}));
  const Value list = SL_TRY(member_of(outer, place, "pretokenizers", Kind::Array));
  const std::string list_place = place + "/pretokenizers";
  if (list.size() != 2) return unsupported(list_place, std::to_string(list.size()) + " stages");
  auto stage = list.begin();
  SL_TRY(check_split(*stage, list_place + "/0"));
  const Value bytes = *++stage;
  SL_TRY(check_byte_level(bytes, list_place + "/1"));
  SL_TRY(expect_off(bytes, list_place + "/1", "add_prefix_space"));
  // An absent value means true in Hugging Face tokenizers. The second pattern would then change the
  // words.
  const auto use_regex = bytes.find("use_regex");
  if (!use_regex) return unsupported(list_place + "/1/use_regex", "the default true");
  return expect_off(bytes, list_place + "/1", "use_regex");
}

// Post-processors add tokens or move offsets, and decoders make text. Only the byte-level ones are
// accepted, because they change no ids.
Result<Done> check_surroundings(Value root) {
  SL_TRY(expect_only(root, "",
                     {"version", "truncation", "padding", "added_tokens", "normalizer",
                      "pre_tokenizer", "post_processor", "decoder", "model"}));
  SL_TRY(expect_text(root, "", "version", "1.0"));
  SL_TRY(expect_off(root, "", "truncation"));
  SL_TRY(expect_off(root, "", "padding"));
  for (const std::string_view name : {"post_processor", "decoder"}) {
    const auto value = root.find(name);
    if (value && !value->is(Kind::Null)) {
      SL_TRY(check_byte_level(*value, "/" + std::string(name)));
    }
  }
  return Done{};
}

Result<Value> check_model(Value root) {
  const Value model = SL_TRY(member_of(root, "", "model", Kind::Object));
  SL_TRY(expect_text(model, "/model", "type", "BPE"));
  SL_TRY(expect_only(
      model, "/model",
      {"type", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix",
       "fuse_unk", "byte_fallback", "ignore_merges", "vocab", "merges"}));
  // Each of these settings changes ids.
  for (const std::string_view name :
       {"dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk",
        "byte_fallback", "ignore_merges"}) {
    SL_TRY(expect_off(model, "/model", name));
  }
  return model;
}

Result<Done> read_vocabulary(Value model, const ByteAlphabet& alphabet, Vocabulary& vocabulary) {
  const Value vocab = SL_TRY(member_of(model, "/model", "vocab", Kind::Object));
  for (const Value entry : vocab) {
    const std::string place = "/model/vocab/" + std::string(entry.name());
    const auto id = entry.integer();
    if (!id || *id < 0 || *id > std::int64_t{kTokenIdMax}) {
      return malformed(place, "expected an id from 0 to " + std::to_string(kTokenIdMax));
    }
    auto bytes = alphabet.to_bytes(entry.name());
    if (!bytes) return unsupported(place, "a token outside the byte-level alphabet");
    if (bytes->empty() || bytes->size() > kTokenBytesMax) {
      return malformed(place,
                       "a token must have 1 to " + std::to_string(kTokenBytesMax) + " bytes");
    }
    if (!vocabulary.add(static_cast<TokenId>(*id), std::move(*bytes))) {
      return malformed(place, "token or id occurs twice");
    }
  }
  // Every word must be encodable, because the merges begin with single bytes.
  for (int byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    if (!vocabulary.find(std::string_view(&c, 1))) {
      return unsupported("/model/vocab",
                         "a vocabulary without a token for byte " + std::to_string(byte));
    }
  }
  return Done{};
}

// Reads both forms of a merge: ["a", "b"] and "a b".
Result<std::pair<std::string_view, std::string_view>> sides_of(Value merge,
                                                               const std::string& place) {
  using Sides = std::pair<std::string_view, std::string_view>;
  if (const auto text = merge.string()) {
    const std::size_t blank = text->find(' ');
    if (blank != std::string_view::npos && text->find(' ', blank + 1) == std::string_view::npos) {
      return Sides{text->substr(0, blank), text->substr(blank + 1)};
    }
  } else if (merge.is(Kind::Array) && merge.size() == 2) {
    auto side = merge.begin();
    const auto left = (*side).string();
    const auto right = (*++side).string();
    if (left && right) return Sides{*left, *right};
  }
  return malformed(place, "expected two tokens: " + shown(merge));
}

Result<std::vector<Merge>> read_merges(Value model, const ByteAlphabet& alphabet,
                                       const Vocabulary& vocabulary) {
  const Value list = SL_TRY(member_of(model, "/model", "merges", Kind::Array));
  std::vector<Merge> merges;
  if (list.size() > kTokenIdMax) {
    return client_error(ErrorCode::TooLarge, "tokenizer.json: /model/merges: too many merges");
  }
  merges.reserve(list.size());
  std::string joined;
  for (const Value entry : list) {
    const std::string place = "/model/merges/" + std::to_string(merges.size());
    const auto [left_text, right_text] = SL_TRY(sides_of(entry, place));
    const auto left_bytes = alphabet.to_bytes(left_text);
    const auto right_bytes = alphabet.to_bytes(right_text);
    if (!left_bytes || !right_bytes) return malformed(place, "not in the byte-level alphabet");
    joined.assign(*left_bytes).append(*right_bytes);
    const auto left = vocabulary.find(*left_bytes);
    const auto right = vocabulary.find(*right_bytes);
    const auto result = vocabulary.find(joined);
    if (!left || !right || !result) return malformed(place, "a token is not in the vocabulary");
    merges.push_back({*left, *right, *result});
  }
  return merges;
}

// The form of this text in the file's byte alphabet equals its bytes.
bool is_graphic_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c <= '~'; });
}

// Hugging Face assigns the ids of added tokens itself. Tokens of the vocabulary keep their ids. The
// others follow the vocabulary, in the order of the file. A file with other ids is rejected.
Result<std::vector<AddedToken>> read_added_tokens(Value root, Vocabulary& vocabulary,
                                                  std::size_t vocabulary_tokens) {
  const Value list = SL_TRY(member_of(root, "", "added_tokens", Kind::Array));
  std::vector<AddedToken> tokens;
  auto next_id = static_cast<std::int64_t>(vocabulary_tokens);
  for (const Value entry : list) {
    const std::string place = "/added_tokens/" + std::to_string(tokens.size());
    SL_TRY(
        expect_only(entry, place,
                    {"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special"}));
    // Each of these settings lets the text around the token influence the ids. The pieces of a text
    // would then not be independent.
    for (const std::string_view name : {"single_word", "lstrip", "rstrip", "normalized"}) {
      SL_TRY(expect_off(entry, place, name));
    }
    const Value content = SL_TRY(member_of(entry, place, "content", Kind::String));
    const Value id = SL_TRY(member_of(entry, place, "id", Kind::Number));
    if (content.string()->empty() || content.string()->size() > kTokenBytesMax) {
      return malformed(place + "/content",
                       "a token must have 1 to " + std::to_string(kTokenBytesMax) + " bytes");
    }
    if (!is_graphic_ascii(*content.string())) {
      return unsupported(place + "/content", shown(content));
    }
    const auto known = vocabulary.find(*content.string());
    const std::int64_t want = known ? std::int64_t{*known} : next_id++;
    if (id.integer() != want || want > std::int64_t{kTokenIdMax}) {
      return unsupported(place + "/id", shown(id) + " instead of " + std::to_string(want));
    }
    AddedToken token{static_cast<TokenId>(want), std::string(*content.string())};
    if (!known && !vocabulary.add(token.id, token.content)) {
      return malformed(place, "token or id occurs twice");
    }
    tokens.push_back(std::move(token));
  }
  return tokens;
}

}  // namespace

Result<ModelFile> parse_model_file(std::string_view tokenizer_json) {
  if (tokenizer_json.size() > kModelFileBytesMax) {
    return client_error(ErrorCode::TooLarge, "tokenizer.json: larger than 256 MiB");
  }
  // The parser may read beyond the end of the text. With this room it needs no copy.
  constexpr std::size_t kParserPaddingBytes = 64;
  std::string text;
  text.reserve(tokenizer_json.size() + kParserPaddingBytes);
  text.assign(tokenizer_json);
  auto parsed = json::Document::parse(std::move(text));
  if (!parsed.ok()) return with_context(std::move(parsed).error(), "tokenizer.json");
  const Value root = parsed->root();
  const Value model = SL_TRY(check_model(root));
  SL_TRY(check_pre_tokenizer(root));
  const bool nfc = SL_TRY(read_normalizer(root));
  SL_TRY(check_surroundings(root));
  const Value vocab = SL_TRY(member_of(model, "/model", "vocab", Kind::Object));
  const Value added = SL_TRY(member_of(root, "", "added_tokens", Kind::Array));
  // The numbers are checked before any table is allocated.
  if (vocab.size() > kTokenIdMax || added.size() > kAddedTokensMax) {
    return client_error(ErrorCode::TooLarge, "tokenizer.json: too many tokens");
  }
  const ByteAlphabet alphabet;
  Vocabulary vocabulary(vocab.size() + added.size());
  SL_TRY(read_vocabulary(model, alphabet, vocabulary));
  std::vector<Merge> merges = SL_TRY(read_merges(model, alphabet, vocabulary));
  std::vector<AddedToken> added_tokens = SL_TRY(read_added_tokens(root, vocabulary, vocab.size()));
  return ModelFile{std::move(vocabulary), std::move(merges), std::move(added_tokens), nfc};
}

}  // namespace sightline::tokenizer
