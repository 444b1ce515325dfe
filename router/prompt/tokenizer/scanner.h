// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace sightline::tokenizer {

// Cuts a text into the consecutive matches of kQwenPattern, the words. They cover the text without
// gaps.
//
// Thread safety: one owner.
class Scanner {
 public:
  // The text must be valid UTF-8 of less than 4 GiB, and must live longer than the scanner.
  explicit Scanner(std::string_view text);

  // The least room that next() needs, in words.
  static constexpr std::size_t kWordsMin = 64;
  // Writes the ends of the next words, as offsets into the text. The first word begins where the
  // last call stopped. Returns the number of words, 0 at the end of the text. If `ends` has room
  // for fewer than kWordsMin words, it returns 0 as well.
  std::size_t next(std::span<std::uint32_t> ends);

  // Whether a word read so far contains a character with the bit kNfcSuspect.
  [[nodiscard]] bool nfc_suspect() const { return nfc_suspect_; }

 private:
  std::size_t word_end(std::size_t begin);
  // Bit i means that a word starts at begin + i. It covers the next words that are ASCII, and is 0
  // if no ASCII word follows.
  std::uint64_t starts_at(std::size_t begin) const;

  std::string_view text_;
  std::size_t at_ = 0;
  bool nfc_suspect_ = false;
  const std::uint8_t* table_;
};

// Returns the first safe place to cut the text at or after `from`, or the text's size. There a word
// and a stretch of NFC end, independently of the text around. It is a place after a letter that no
// letter follows, or after a number. NFC must not affect the characters on either side.
std::size_t next_safe_cut(std::string_view text, std::size_t from);

}  // namespace sightline::tokenizer
