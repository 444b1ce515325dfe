// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sightline::openai {

// What the engine says a request cost (OpenAI usage object with vLLM 0.32's details).
struct Usage {
  std::uint64_t prompt_tokens = 0;
  std::uint64_t completion_tokens = 0;
  // prompt_tokens_details.cached_tokens; absent unless the engine runs with
  // --enable-prompt-tokens-details.
  std::optional<std::uint64_t> cached_tokens;
  // True if the object stands in a chunk without choices: the extra chunk at the end of a stream.
  bool alone = false;
};

// Reads the usage of one JSON object, an answer's body or a stream's chunk, that comes in pieces.
// It keeps the member "usage" of the object, up to kMemberBytesMax, and of "choices" only whether
// it is empty: a body of any size takes no memory, and at most 4 ns a byte. Of duplicate
// members the last one counts; names written with escapes are not recognised. The text is what an
// engine sent, so anything malformed is nothing.
// Thread safety: none.
class UsageReader {
 public:
  // Longest usage object: ten times what engines write.
  static constexpr std::size_t kMemberBytesMax = 16U << 10U;

  void read(std::string_view piece);
  // Of the whole text; nothing before its end.
  [[nodiscard]] std::optional<Usage> usage() const;

 private:
  enum class Member : std::uint8_t { Other, Usage, Choices };

  [[nodiscard]] std::size_t find_end(std::string_view piece, std::size_t at);
  [[nodiscard]] std::size_t pass_string(std::string_view piece, std::size_t at);
  void pass_mark(std::string_view piece, std::size_t at);
  void begin_member(std::size_t value_at);
  void keep(std::string_view part);
  void keep_marks(std::string_view part);
  void end_member(std::string_view part);

  std::uint32_t depth_ = 0;
  bool in_string_ = false;
  bool is_escaped_ = false;  // the next byte of the string
  bool is_name_ = false;     // the string is, or the next one will be, the name of a member
  bool is_object_ = false;   // the text began as one
  bool is_complete_ = false;
  Member member_ = Member::Other;  // whose value comes
  std::size_t kept_from_ = 0;      // in the piece: what is not kept yet of the value
  std::string name_;
  std::string value_;
  std::string usage_;
  bool has_no_choices_ = false;
};

// The usage of an answer body or of one stream chunk; nothing if there is none. Cheap when the
// text has no usage object.
std::optional<Usage> usage_of(std::string_view json_text);

}  // namespace sightline::openai
