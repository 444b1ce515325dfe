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

// An attacker could guess a shorter one.
inline constexpr std::size_t kTokenBytesMin = 16;
// Of one token.
inline constexpr std::size_t kTokenBytesMax = 512;
// Of one file.
inline constexpr std::size_t kTokensMax = 16;
inline constexpr std::size_t kTokenFileBytesMax = kTokensMax * (kTokenBytesMax + 2);

// The tokens in the content of a token file, one a line. A file has several while one replaces
// another. Ignores line ends and empty lines. Errors: InvalidArgument that names the line and the
// rule, with a message that continues the file's name. It never contains the content. Pure.
Result<std::vector<std::string>> parse_tokens(std::string_view content);

// True if the value of an Authorization header is "Bearer TOKEN" with one of these tokens. The
// scheme may have any case. The time that this takes depends on the length of the given value, not
// on the tokens, so it does not help to guess them. Pure.
bool holds_token(std::string_view authorization, const std::vector<std::string>& tokens);

// Decides who may do what a token file guards: callers who give one of its tokens. A call reads the
// file again if the last read is kReadAfter ago. If the file is unusable, it admits no caller until
// the file is repaired. It logs this once.
// Thread safety: admits() from any thread. It sometimes reads a small local file.
class TokenFile {
  struct FileContent {
    // Empty: no token is usable.
    std::vector<std::string> tokens;
    // Why no token is usable. Empty: they are usable.
    std::string problem;
  };

 public:
  // The time between two reads of the file.
  static constexpr Duration kReadAfter = std::chrono::seconds(1);

  // Errors: InvalidArgument that names the file and its fault. The clock must outlive the object.
  static Result<std::unique_ptr<TokenFile>> open(std::string path, const Clock& clock);

  // For open() only.
  TokenFile(std::string path, const Clock& clock, FileContent held);

  // Whether the value of a request's Authorization header contains one of the tokens. An empty
  // value never does.
  [[nodiscard]] bool admits(std::string_view authorization);
  // The first token, for a client that sends it itself. Empty if no token is usable.
  [[nodiscard]] std::string first();

 private:
  static FileContent read(const std::string& path);
  // True for one caller each kReadAfter, because one read is enough.
  [[nodiscard]] bool start_due_read();
  void read_again();

  const std::string path_;
  const Clock& clock_;
  Mutex mutex_;
  Instant read_at_ SL_GUARDED_BY(mutex_);
  Published<FileContent> held_;
};

}  // namespace sightline::runtime
