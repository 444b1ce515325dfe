// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sightline::openai {

// The token counts that an engine reports for a request: OpenAI's usage object with vLLM 0.32's
// details.
struct Usage {
  // Tokens of the whole prompt, with the reused ones.
  std::uint64_t prompt_tokens = 0;
  // Tokens of the answer. 0 if the engine does not report them.
  std::uint64_t completion_tokens = 0;
  // prompt_tokens_details.cached_tokens. Empty unless the engine runs with
  // --enable-prompt-tokens-details.
  std::optional<std::uint64_t> cached_tokens;
  // True if the object is in a chunk without choices: the additional chunk at the end of a stream.
  bool alone = false;
};

// Reads the usage of one JSON object, an answer's body or a stream's chunk, that arrives in pieces.
// It keeps the member "usage" up to kMemberBytesMax, and of "choices" only whether it is empty. So
// a body of any size takes no memory, and at most 4 ns per byte. Of duplicate members the last one
// counts. It does not recognise names written with escapes. The text comes from an engine, so a
// malformed text gives no usage.
// Thread safety: one thread at a time.
class UsageReader {
 public:
  // The longest usage object to keep: ten times what engines write.
  static constexpr std::size_t kMemberBytesMax = 16U << 10U;

  // Reads the next piece of the text.
  void read(std::string_view piece);
  // Returns the usage of the whole text. Empty before its end.
  [[nodiscard]] std::optional<Usage> usage() const;

 private:
  enum class UsageMember : std::uint8_t { Other, Usage, Choices };

  [[nodiscard]] std::size_t find_end(std::string_view piece, std::size_t at);
  [[nodiscard]] std::size_t pass_string(std::string_view piece, std::size_t at);
  void pass_mark(std::string_view piece, std::size_t at);
  void begin_member(std::size_t value_at);
  void keep(std::string_view part);
  void keep_marks(std::string_view part);
  void end_member(std::string_view part);

  std::uint32_t depth_ = 0;
  bool in_string_ = false;
  // The next byte of the string is escaped.
  bool is_escaped_ = false;
  // The string, or the next one, is the name of a member.
  bool is_name_ = false;
  bool is_object_ = false;  // the text began as an object.
  bool is_complete_ = false;
  // The member whose value is read.
  UsageMember member_ = UsageMember::Other;
  std::size_t kept_from_ = 0;  // place in the piece from which the value is not kept yet.
  std::string name_;
  std::string value_;
  std::string usage_;
  bool has_no_choices_ = false;
};

// Returns the usage of a whole answer body or stream chunk. Empty if it has no usage. The call is
// cheap for a text without a usage object.
std::optional<Usage> usage_of(std::string_view json_text);

}  // namespace sightline::openai
