// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/runtime/token_file.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "common/base/log.h"
#include "common/runtime/small_file.h"

namespace sightline::runtime {
namespace {

constexpr std::string_view kScheme = "bearer ";

Error unusable(std::string message) {
  return client_error(ErrorCode::InvalidArgument, std::move(message));
}

// Compares without an early exit, so the time does not depend on the place of the first difference.
bool is_equal(std::string_view given, std::string_view token) {
  std::size_t difference = given.size() ^ token.size();
  for (std::size_t i = 0; i < given.size(); ++i) {
    const auto a = static_cast<std::uint8_t>(given[i]);
    const auto b = static_cast<std::uint8_t>(token[i % token.size()]);
    difference |= static_cast<std::size_t>(a ^ b);
  }
  return difference == 0;
}

Result<Done> check_token(std::string_view token, std::size_t line) {
  const std::string where = "line " + std::to_string(line) + ": a token ";
  if (token.size() < kTokenBytesMin || token.size() > kTokenBytesMax) {
    return unusable(where + "must have " + std::to_string(kTokenBytesMin) + " to " +
                    std::to_string(kTokenBytesMax) + " characters");
  }
  const bool is_plain =
      // A header carries visible ASCII only, and a blank would end the token there.
      std::all_of(token.begin(), token.end(), [](char c) { return c > ' ' && c < 127; });
  if (!is_plain) return unusable(where + "must consist of visible ASCII characters without spaces");
  return Done{};
}

}  // namespace

Result<std::vector<std::string>> parse_tokens(std::string_view content) {
  std::vector<std::string> tokens;
  for (std::size_t line = 1; !content.empty(); ++line) {
    std::string_view token = content.substr(0, content.find('\n'));
    content.remove_prefix(std::min(token.size() + 1, content.size()));
    // An editor may have written Windows line ends.
    if (token.ends_with('\r')) token.remove_suffix(1);
    if (token.empty()) continue;
    SL_TRY(check_token(token, line));
    if (tokens.size() == kTokensMax) {
      return unusable("holds more than " + std::to_string(kTokensMax) + " tokens");
    }
    tokens.emplace_back(token);
  }
  if (tokens.empty()) return unusable("holds no token");
  return tokens;
}

bool holds_token(std::string_view authorization, const std::vector<std::string>& tokens) {
  if (authorization.size() < kScheme.size()) return false;
  const auto is_same = [](char a, char b) {
    return (a >= 'A' && a <= 'Z' ? static_cast<char>(a - 'A' + 'a') : a) == b;
  };
  if (!std::equal(kScheme.begin(), kScheme.end(), authorization.begin(),
                  [&](char b, char a) { return is_same(a, b); })) {
    return false;
  }
  const std::string_view given = authorization.substr(kScheme.size());
  bool is_one = false;
  // Compares with all tokens, so the time does not show which one matched.
  for (const std::string& token : tokens) {
    const bool is_this = is_equal(given, token);
    is_one = is_one || is_this;
  }
  return is_one;
}

Result<std::unique_ptr<TokenFile>> TokenFile::open(std::string path, const Clock& clock) {
  FileContent held = read(path);
  if (!held.problem.empty()) return unusable(path + " " + held.problem);
  return std::make_unique<TokenFile>(std::move(path), clock, std::move(held));
}

TokenFile::TokenFile(std::string path, const Clock& clock, FileContent held)
    : path_(std::move(path)),
      clock_(clock),
      read_at_(clock.now()),
      held_(std::make_shared<const FileContent>(std::move(held))) {}

TokenFile::FileContent TokenFile::read(const std::string& path) {
  const auto content = read_small_file(path, kTokenFileBytesMax);
  if (!content.ok()) return {{}, content.error().message};
  auto tokens = parse_tokens(*content);
  if (!tokens.ok()) return {{}, tokens.error().message};
  return {std::move(*tokens), {}};
}

bool TokenFile::start_due_read() {
  const MutexLock lock(mutex_);
  const Instant now = clock_.now();
  if (now < read_at_ + kReadAfter) return false;
  read_at_ = now;
  return true;
}

void TokenFile::read_again() {
  // Logs only changes: a broken file would otherwise fill the log each second.
  const auto before = held_.read();
  FileContent next = read(path_);
  if (next.problem != before->problem) {
    if (next.problem.empty()) {
      log(LogLevel::Info, "the token file can be used again", {{"file", path_}});
    } else {
      log(LogLevel::Error, "the token file cannot be used: all tokens are rejected",
          {{"file", path_}, {"reason", next.problem}});
    }
  }
  // Also after a failure: an unusable file must admit no caller, or a revoked token would stay
  // valid.
  held_.publish(std::make_shared<const FileContent>(std::move(next)));
}

bool TokenFile::admits(std::string_view authorization) {
  if (start_due_read()) read_again();
  return holds_token(authorization, held_.read()->tokens);
}

std::string TokenFile::first() {
  if (start_due_read()) read_again();
  const auto held = held_.read();
  return held->tokens.empty() ? std::string() : held->tokens.front();
}

}  // namespace sightline::runtime
