// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/openai/usage.h"

#include <algorithm>
#include <array>
#include <utility>

#include "common/base/json.h"

namespace sightline::openai {
namespace {

constexpr std::string_view kUsage = "usage";
constexpr std::string_view kChoices = "choices";

std::optional<std::uint64_t> count(const json::Value& object, std::string_view name) {
  const auto value = object.find(name);
  if (!value) return std::nullopt;
  const auto integer = value->integer();
  if (!integer || *integer < 0) return std::nullopt;
  return static_cast<std::uint64_t>(*integer);
}

constexpr std::string_view kBlanks = " \t\n\r";
constexpr std::string_view kEmptyArray = "[]";

// Bytes outside of strings that change the reader's state.
constexpr std::array<bool, 256> kMarks = [] {
  std::array<bool, 256> marks{};
  for (const unsigned char c : std::string_view("\"{}[],:")) marks[c] = true;
  return marks;
}();

bool is_mark(char c) { return kMarks[static_cast<unsigned char>(c)]; }

// An odd number of backslashes at the end escapes the next byte.
bool ends_with_escape(std::string_view text) {
  if (!text.ends_with('\\')) return false;
  const std::size_t backslashes = text.size() - (text.find_last_not_of('\\') + 1);
  return backslashes % 2 == 1;
}

}  // namespace

// Returns the closing quote of the string that continues at `at`, or the end of the piece.
std::size_t UsageReader::find_end(std::string_view piece, std::size_t at) {
  if (is_escaped_) ++at;
  for (;; ++at) {
    const std::size_t quote = std::min(piece.find('"', at), piece.size());
    is_escaped_ = ends_with_escape(piece.substr(at, quote - at));
    in_string_ = is_escaped_ || quote == piece.size();
    if (!is_escaped_ || quote == piece.size()) return quote;
    at = quote;
  }
}

// Returns the place after the string that begins or continues at `at`, or the end of the piece.
std::size_t UsageReader::pass_string(std::string_view piece, std::size_t at) {
  const std::size_t begin = at;
  at = find_end(piece, at);
  // One byte more than the longest known name is enough to see that this is another name.
  if (is_name_ && name_.size() <= kChoices.size()) {
    name_ += piece.substr(begin, std::min(at - begin, kChoices.size() + 1));
  }
  return in_string_ ? at : at + 1;
}

void UsageReader::begin_member(std::size_t value_at) {
  is_name_ = false;
  member_ = name_ == kUsage     ? UsageMember::Usage
            : name_ == kChoices ? UsageMember::Choices
                                : UsageMember::Other;
  kept_from_ = value_at;
  value_.clear();
}

void UsageReader::keep(std::string_view part) {
  if (member_ == UsageMember::Usage) {
    // One byte above the limit shows that the value exceeds it.
    value_ += part.substr(0, kMemberBytesMax + 1 - std::min(value_.size(), kMemberBytesMax + 1));
  }
  if (member_ == UsageMember::Choices) keep_marks(part);
}

// Keeps the first bytes of `choices` that are not blank: one more than an empty array has.
void UsageReader::keep_marks(std::string_view part) {
  std::size_t at = 0;
  while (value_.size() <= kEmptyArray.size()) {
    at = part.find_first_not_of(kBlanks, at);
    if (at == std::string_view::npos) return;
    value_ += part[at++];
  }
}

void UsageReader::end_member(std::string_view part) {
  keep(part);
  if (member_ == UsageMember::Usage) {
    usage_ = value_.size() <= kMemberBytesMax ? std::move(value_) : std::string();
  }
  if (member_ == UsageMember::Choices) has_no_choices_ = value_ == kEmptyArray;
  member_ = UsageMember::Other;
  value_.clear();
  name_.clear();
}

// Handles a byte outside of strings.
void UsageReader::pass_mark(std::string_view piece, std::size_t at) {
  switch (piece[at]) {
    case '{':
    case '[':
      // A second value after the object makes the text malformed.
      if (depth_ == 0) is_object_ = is_name_ = piece[at] == '{' && !is_complete_;
      ++depth_;
      return;
    case '}':
    case ']':
      if (depth_ == 1) {
        end_member(piece.substr(kept_from_, at - kept_from_));
        is_complete_ = is_object_;
      }
      depth_ -= std::min(depth_, 1U);
      return;
    case ',':
      if (depth_ != 1) return;
      end_member(piece.substr(kept_from_, at - kept_from_));
      is_name_ = true;
      return;
    case ':':
      if (depth_ == 1 && is_name_) begin_member(at + 1);
      return;
    default:
      return;
  }
}

void UsageReader::read(std::string_view piece) {
  kept_from_ = 0;
  for (std::size_t at = 0; at < piece.size();) {
    if (in_string_) {
      at = pass_string(piece, at);
      continue;
    }
    if (is_mark(piece[at])) {
      in_string_ = piece[at] == '"';
      if (!in_string_) pass_mark(piece, at);
    }
    ++at;
  }
  keep(piece.substr(kept_from_));
}

std::optional<Usage> UsageReader::usage() const {
  // A text that was cut off may lack a later, different usage.
  if (!is_complete_ || depth_ > 0 || usage_.empty()) return std::nullopt;
  const auto document = json::Document::parse(usage_);
  if (!document.ok()) return std::nullopt;
  const json::Value object = document->root();
  const auto prompt_tokens = count(object, "prompt_tokens");
  if (!prompt_tokens) return std::nullopt;
  Usage usage{.prompt_tokens = *prompt_tokens};
  usage.completion_tokens = count(object, "completion_tokens").value_or(0);
  if (const auto details = object.find("prompt_tokens_details")) {
    usage.cached_tokens = count(*details, "cached_tokens");
  }
  usage.alone = has_no_choices_;
  return usage;
}

std::optional<Usage> usage_of(std::string_view json_text) {
  // The counts are at the end of a body, or alone in a chunk. So the search begins at the end.
  if (json_text.rfind("\"prompt_tokens\"") == std::string_view::npos) return std::nullopt;
  UsageReader reader;
  reader.read(json_text);
  return reader.usage();
}

}  // namespace sightline::openai
