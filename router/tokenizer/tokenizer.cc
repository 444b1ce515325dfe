// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/tokenizer/tokenizer.h"

#include <array>
#include <utility>

#include "common/base/bytes.h"

#include "router/tokenizer/merges.h"
#include "router/tokenizer/model_file.h"
#include "router/tokenizer/scanner.h"
#include "router/tokenizer/unicode.h"

namespace sightline::tokenizer {

namespace {

constexpr std::size_t kTextBytesMax = std::size_t{1} << 30U;
// Text is normalised and cut in pieces of about this size, so that one character that NFC changes
// costs a second pass over its piece only.
constexpr std::size_t kPieceBytes = 8 << 10U;
constexpr std::size_t kBatchWords = 512;

}  // namespace

struct Tokenizer::State {
  Vocabulary vocabulary;
  AddedTokens added_tokens;
  MergeTable merges;
  bool nfc;

  // True if the piece may differ from its NFC form.
  bool encode_words(std::string_view piece, std::vector<TokenId>& out) const;
  // Text without added tokens.
  void encode_stretch(std::string_view text, std::vector<TokenId>& out) const;
};

bool Tokenizer::State::encode_words(std::string_view piece, std::vector<TokenId>& out) const {
  Scanner scanner(piece);
  std::array<std::uint32_t, kBatchWords> ends;
  std::size_t begin = 0;
  while (const std::size_t count = scanner.next(ends)) {
    for (std::size_t i = 0; i < count; ++i) {
      merges.encode(piece.substr(begin, ends[i] - begin), out);
      begin = ends[i];
    }
  }
  return scanner.nfc_suspect();
}

void Tokenizer::State::encode_stretch(std::string_view text, std::vector<TokenId>& out) const {
  std::string normalized;
  while (!text.empty()) {
    const std::size_t size =
        text.size() <= kPieceBytes ? text.size() : next_safe_cut(text, kPieceBytes);
    const std::string_view piece = text.substr(0, size);
    const std::size_t out_size = out.size();
    if (encode_words(piece, out) && nfc && normalize_nfc(piece, normalized)) {
      out.resize(out_size);
      encode_words(normalized, out);
    }
    text.remove_prefix(size);
  }
}

Tokenizer::Tokenizer(std::unique_ptr<const State> state) : state_(std::move(state)) {}
Tokenizer::~Tokenizer() = default;

Result<std::unique_ptr<const Tokenizer>> Tokenizer::create(std::string_view tokenizer_json) {
  ModelFile file = SL_TRY(parse_model_file(tokenizer_json));
  auto merges = MergeTable::create(file.vocabulary, file.merges);
  if (!merges) {
    return client_error(ErrorCode::InvalidArgument,
                        "tokenizer.json: /model/merges: a pair occurs twice");
  }
  char_table();
  auto state = std::make_unique<const State>(State{std::move(file.vocabulary),
                                                   AddedTokens(std::move(file.added_tokens)),
                                                   std::move(*merges), file.nfc});
  return std::unique_ptr<const Tokenizer>(std::make_unique<const Tokenizer>(std::move(state)));
}

Result<Done> Tokenizer::encode(std::string_view text, std::vector<TokenId>& out) const {
  if (text.size() > kTextBytesMax) {
    return client_error(ErrorCode::TooLarge, "the text to tokenize is larger than 1 GiB");
  }
  if (!is_utf8(text)) {
    return client_error(ErrorCode::InvalidArgument, "the text to tokenize is not valid UTF-8");
  }
  std::size_t at = 0;
  while (const auto match = state_->added_tokens.find(text, at)) {
    state_->encode_stretch(text.substr(at, match->begin - at), out);
    out.push_back(match->token->id);
    at = match->begin + match->token->content.size();
  }
  state_->encode_stretch(text.substr(at), out);
  return Done{};
}

std::optional<TokenId> Tokenizer::token_id(std::string_view content) const {
  return state_->vocabulary.find(content);
}

std::string Tokenizer::decode(std::span<const TokenId> ids) const {
  std::string text;
  for (const TokenId id : ids) text += state_->vocabulary.content_of(id);
  return text;
}

std::size_t Tokenizer::vocabulary_size() const { return state_->vocabulary.ids_end(); }

}  // namespace sightline::tokenizer
