// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace sightline::tokenizer {

// Cuts a text into the words that kQwenPattern matches one after the other; they cover the text
// without gaps.
// Thread safety: one owner.
class Scanner {
 public:
  // text must be valid UTF-8, of less than 4 GiB, and outlive the scanner.
  explicit Scanner(std::string_view text);

  // Room that next() asks for at least.
  static constexpr std::size_t kWordsMin = 64;
  // Writes where the next words end, as offsets into the text; the first begins where the last
  // call stopped. Returns their number, 0 at the end of the text.
  std::size_t next(std::span<std::uint32_t> ends);

  // All kNfcSuspect bits met so far (in whole words).
  [[nodiscard]] bool nfc_suspect() const { return nfc_suspect_; }

 private:
  std::size_t word_end(std::size_t begin);
  // Bit i: a word starts at begin + i, for the next words that are ASCII; 0 if there are none.
  std::uint64_t starts_at(std::size_t begin) const;

  std::string_view text_;
  std::size_t at_ = 0;
  bool nfc_suspect_ = false;
  const std::uint8_t* table_;
};

// The first place in text, at or after `from`, where a word and a stretch of NFC are sure to end
// whatever stands around, or the text's size: behind a letter that no letter follows, or behind a
// number, where NFC touches neither side.
std::size_t next_safe_cut(std::string_view text, std::size_t from);

}  // namespace sightline::tokenizer
