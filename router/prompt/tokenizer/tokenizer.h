// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/ids.h"
#include "common/base/result.h"

namespace sightline::tokenizer {

class AddedTokens;

// A stretch of a text whose ids follow from its bytes alone. The text around it has no influence.
struct Piece {
  std::string_view text;
  // The id, if the stretch is an added token.
  std::optional<TokenId> added;
};

// The pieces of one text, in order and without gaps. Tokenizer::cut() creates it. A piece is an
// added token, or a stretch of text. A stretch has at most kBytes bytes, and the bytes up to the
// next safe cut. Appending to a text changes only its last piece.
//
// Thread safety: one owner.
class Pieces {
 public:
  static constexpr std::size_t kBytes = 8U << 10U;

  // Returns nothing at the end of the text.
  std::optional<Piece> next();

 private:
  friend class Tokenizer;
  Pieces(const AddedTokens& added_tokens, std::string_view text);
  void find_added();

  const AddedTokens* added_tokens_;
  std::string_view text_;
  std::size_t at_ = 0;
  // The next added token. At the end of the text it is empty.
  std::size_t added_begin_ = 0;
  std::size_t added_size_ = 0;
  TokenId added_id_ = 0;
};

// Converts text to token ids and back. The results equal those of Hugging Face tokenizers 0.23 with
// add_special_tokens=False. It supports byte-level BPE models with the pre-tokenizer of Qwen2 and
// Qwen3.
//
// Thread safety: immutable, any thread may call any method. encode() keeps a word cache of about 1
// MB per thread. The cache belongs to the tokenizer that the thread used last.
class Tokenizer {
 public:
  // Reads a tokenizer.json. Errors: InvalidArgument with the place in a malformed document,
  // TooLarge for a limit, and Unsupported. Unsupported means a valid document with a setting that
  // this class does not implement exactly. The message names the setting.
  static Result<std::unique_ptr<const Tokenizer>> create(std::string_view tokenizer_json);

  ~Tokenizer();
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;

  // Appends the ids of a text to `out`. It recognises added tokens inside of the text, special ones
  // included. The caller must keep placeholders out of the user's text.
  //
  // The time is linear in the text, except for words of thousands of letters without a break (n log
  // n). Errors: InvalidArgument if the text is not UTF-8, TooLarge above 1 GiB. After an error
  // `out` is unchanged.
  Result<Done> encode(std::string_view text, std::vector<TokenId>& out) const;

  // The same in steps: encode(text) appends the ids that encode_piece() appends for each piece. The
  // pieces are independent because of the models that create() accepts. Their added tokens are
  // found before normalization and take no white space with them. Their pattern never looks behind.
  //
  // The text and the tokenizer must live longer than the pieces. Errors: as encode().
  [[nodiscard]] Result<Pieces> cut(std::string_view text) const;
  // Appends the ids of a piece. The piece must come from cut() of this tokenizer.
  void encode_piece(const Piece& piece, std::vector<TokenId>& out) const;

  // Returns a lower bound for the number of ids that encode_piece() appends. Its time is linear in
  // the piece. To find the ids of one word of megabytes takes seconds, and memory of a hundred
  // times its size.
  [[nodiscard]] std::size_t ids_min(const Piece& piece) const;

  // Returns the id of an added token or a vocabulary token, by its bytes.
  [[nodiscard]] std::optional<TokenId> token_id(std::string_view content) const;

  // Returns the bytes of these ids. Added tokens have their content, and unknown ids have no bytes.
  // If the ids end inside a character, the result is not UTF-8.
  [[nodiscard]] std::string decode(std::span<const TokenId> ids) const;

  // One more than the largest id that encode() can return.
  [[nodiscard]] std::size_t vocabulary_size() const;

 private:
  struct State;

 public:
  // Only for create().
  explicit Tokenizer(std::unique_ptr<const State> state);

 private:
  const std::unique_ptr<const State> state_;
};

}  // namespace sightline::tokenizer
