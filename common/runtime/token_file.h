// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/base/published.h"
#include "common/base/result.h"

namespace sightline::runtime {

inline constexpr std::size_t kTokenBytesMin = 16;   // shorter ones can be guessed
inline constexpr std::size_t kTokenBytesMax = 512;  // of one
inline constexpr std::size_t kTokensMax = 16;       // of a file
inline constexpr std::size_t kTokenFileBytesMax = kTokensMax * (kTokenBytesMax + 2);

// The tokens in the content of a token file: one a line, several while one replaces another; line
// ends and empty lines are left out. Errors: InvalidArgument that names the line and the rule,
// made to follow the file's name; never holds the content. Pure.
Result<std::vector<std::string>> parse_tokens(std::string_view content);

// True if the value of an Authorization header is "Bearer TOKEN" (the scheme in any case) with one
// of these. The time it takes tells the length of what was given, nothing of the tokens. Pure.
bool holds_token(std::string_view authorization, const std::vector<std::string>& tokens);

// Who may do what a token file guards: those that name one of its tokens.
// The file is read again when it is asked, kReadAfter apart at least. It admits by what the
// file says: one that became unusable admits nobody, which is logged once, until it is mended.
// Thread safety: admits() from any thread; it reads a small local file at times.
class TokenFile {
  struct Held {
    std::vector<std::string> tokens;  // empty: none is usable
    std::string problem;              // why there are none; empty: there are
  };

 public:
  static constexpr Duration kReadAfter = std::chrono::seconds(1);

  // Error: InvalidArgument that names the file and what is wrong. The clock must outlive it.
  static Result<std::unique_ptr<TokenFile>> open(std::string path, const Clock& clock);

  // Use open().
  TokenFile(std::string path, const Clock& clock, Held held);

  // Whether the value of a request's Authorization header (empty: none) names one of the tokens.
  [[nodiscard]] bool admits(std::string_view authorization);
  // The first token, for who brings one itself; empty: none is usable.
  [[nodiscard]] std::string first();

 private:
  static Held read(const std::string& path);
  [[nodiscard]] bool is_read_due();
  void read_again();

  const std::string path_;
  const Clock& clock_;
  Mutex mutex_;
  Instant read_at_ SL_GUARDED_BY(mutex_);
  Published<Held> held_;
};

}  // namespace sightline::runtime
