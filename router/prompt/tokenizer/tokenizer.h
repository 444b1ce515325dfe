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

// A stretch of a text whose ids follow from its bytes alone, whatever stands around it.
struct Piece {
  std::string_view text;
  std::optional<TokenId> added;  // the id, where the stretch is an added token
};

// The pieces of one text, in order and without gaps; made by Tokenizer::cut(). A piece is an added
// token, or text of at most kBytes and what follows up to the end of a word. What is appended to a
// text changes its last piece only.
// Thread safety: one owner.
class Pieces {
 public:
  static constexpr std::size_t kBytes = 8U << 10U;

  // Nothing at the end of the text.
  std::optional<Piece> next();

 private:
  friend class Tokenizer;
  Pieces(const AddedTokens& added_tokens, std::string_view text);
  void find_added();

  const AddedTokens* added_tokens_;
  std::string_view text_;
  std::size_t at_ = 0;
  // The next added token; an empty one at the end of the text.
  std::size_t added_begin_ = 0;
  std::size_t added_size_ = 0;
  TokenId added_id_ = 0;
};

// Text to token ids and back, exactly as Hugging Face tokenizers 0.23 does with
// add_special_tokens=False, for byte-level BPE models with the pre-tokenizer of Qwen2 and Qwen3.
//
// Thread safety: immutable; all methods from any thread. encode() keeps a word cache of about 1 MB
// per calling thread, for the tokenizer it used last.
class Tokenizer {
 public:
  // Reads a tokenizer.json. Errors: InvalidArgument (malformed; names the place in the document),
  // TooLarge (limits), Unsupported (well-formed, but asks for something that is not done exactly
  // here: the message names it).
  static Result<std::unique_ptr<const Tokenizer>> create(std::string_view tokenizer_json);

  ~Tokenizer();
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;

  // Appends the ids of text to out. Added tokens inside the text are recognised, special ones too:
  // keeping placeholders out of user text is the caller's task. Cost is linear in the text but for
  // words of thousands of letters without a break (n log n). Errors: InvalidArgument if text is
  // not UTF-8, TooLarge above 1 GiB; out is then unchanged.
  Result<Done> encode(std::string_view text, std::vector<TokenId>& out) const;

  // The same step by step: encode(text) appends what encode_piece() appends for each piece. That
  // pieces are independent rests on what create() accepts: added tokens are found before the text
  // is normalised and take no white space with them, and the pattern never looks behind.
  // text and tokenizer must outlive the pieces. Errors: as encode().
  [[nodiscard]] Result<Pieces> cut(std::string_view text) const;
  // piece: of cut() of this tokenizer.
  void encode_piece(const Piece& piece, std::vector<TokenId>& out) const;

  // A lower bound of the ids that encode_piece() appends: linear in the piece, where finding the
  // ids of one word of megabytes takes seconds and a hundred times its memory.
  [[nodiscard]] std::size_t ids_min(const Piece& piece) const;

  // The id of an added or vocabulary token, by the bytes it stands for.
  [[nodiscard]] std::optional<TokenId> token_id(std::string_view content) const;

  // The bytes that the ids stand for, added tokens by their content; unknown ids give nothing.
  // A cut in the middle of a character gives bytes that are not UTF-8.
  [[nodiscard]] std::string decode(std::span<const TokenId> ids) const;

  // One more than the largest id that encode() can give.
  [[nodiscard]] std::size_t vocabulary_size() const;

 private:
  struct State;

 public:
  // For create().
  explicit Tokenizer(std::unique_ptr<const State> state);

 private:
  const std::unique_ptr<const State> state_;
};

}  // namespace sightline::tokenizer
