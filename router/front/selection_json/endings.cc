// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/front/selection_json/endings.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <optional>
#include <utility>

#include "common/base/bytes.h"

#include "router/front/selection_json/json_fields.h"
#include "router/front/selection_json/limits.h"
#include "router/openai/error_body.h"

namespace sightline::selection_json {
namespace {

using Kind = selection::Ending::Kind;

constexpr std::array<std::string_view, 3> kEndingNames = {"unused", "answered", "failed"};

std::string quoted(std::string_view text) { return json::to_quoted(text); }

// Returns a text that a peer accepts: at most bytes_max bytes of UTF-8. Clients and engines may
// send other bytes. The text then keeps its ASCII.
std::string told(std::string_view text, std::size_t bytes_max) {
  if (text.size() > bytes_max) {
    std::size_t end = bytes_max;
    // A character of several bytes is not cut in two.
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
    text = text.substr(0, end);
  }
  std::string kept(text);
  if (is_utf8(kept)) return quoted(kept);
  for (char& c : kept) {
    if (static_cast<unsigned char>(c) >= 0x80U) c = '?';
  }
  return quoted(kept);
}

std::string seconds_text(Duration time) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6f", std::chrono::duration<double>(time).count());
  return text;
}

// Finds a code by its name. `last` is the last value of the enumeration.
template <class Code>
std::optional<Code> code_named(std::string_view name, Code last) {
  for (int i = 0; i <= static_cast<int>(last); ++i) {
    if (name_of(static_cast<Code>(i)) == name) return static_cast<Code>(i);
  }
  return std::nullopt;
}

std::string cause_json(const Error& error) {
  return R"({"code":)" + quoted(name_of(error.code)) + R"(,"blame":)" +
         quoted(name_of(error.blame)) + R"(,"retryable":)" + (error.retryable ? "true" : "false") +
         R"(,"message":)" + told(error.message, kMessageBytesMax) + R"(,"param":)" +
         told(error.param, kNameBytesMax) + R"(,"limit":)" + told(error.limit, kNameBytesMax) + "}";
}

std::optional<Error> read_cause(json::Value value) {
  Fields fields(value, "cause");
  const auto code = code_named(fields.needed_text("code", kNameBytesMax), ErrorCode::Internal);
  const auto blame = code_named(fields.needed_text("blame", kNameBytesMax), Blame::Internal);
  Error error;
  error.retryable = fields.flag("retryable", false);
  error.message = fields.needed_text("message", kMessageBytesMax);
  error.param = fields.text("param", kNameBytesMax).value_or("");
  error.limit = fields.text("limit", kNameBytesMax).value_or("");
  if (!code || !blame || !fields.check().ok()) return std::nullopt;
  error.code = *code;
  error.blame = *blame;
  return error;
}

std::string usage_json(const openai::Usage& usage) {
  return R"({"prompt_tokens":)" + std::to_string(usage.prompt_tokens) + R"(,"completion_tokens":)" +
         std::to_string(usage.completion_tokens) + R"(,"cached_tokens":)" +
         (usage.cached_tokens ? std::to_string(*usage.cached_tokens) : "null") + R"(,"alone":)" +
         (usage.alone ? "true" : "false") + "}";
}

}  // namespace

std::string write_ending(const selection::Ending& ending) {
  return R"({"kind":)" + quoted(kEndingNames[static_cast<std::size_t>(ending.kind)]) +
         R"(,"status":)" + std::to_string(ending.status) + R"(,"usage":)" +
         (ending.usage ? usage_json(*ending.usage) : "null") + R"(,"failure":)" +
         (ending.failure ? cause_json(*ending.failure) : "null") + R"(,"request_id":)" +
         told(ending.request_id, kNameBytesMax) + R"(,"first_token_s":)" +
         (ending.first_token ? seconds_text(*ending.first_token) : "null") + "}";
}

Result<selection::Ending> ending_in(json::Value object) {
  Fields fields(object, "ending");
  selection::Ending ending;
  const std::string kind = fields.text("kind", kNameBytesMax).value_or("unused");
  const auto place = std::find(kEndingNames.begin(), kEndingNames.end(), kind);
  if (place == kEndingNames.end()) fields.refuse("kind", "must be unused, answered or failed");
  ending.status = static_cast<int>(fields.number("status", 999, 0));
  ending.request_id = fields.text("request_id", kNameBytesMax).value_or("");
  if (fields.find("first_token_s")) {
    const double seconds = fields.real("first_token_s");
    // The value would not fit into a Duration.
    if (!(seconds >= 0 && seconds <= kFirstTokenSecondsMax)) {
      fields.refuse("first_token_s", "must be from 0 to 86400");
    } else {
      ending.first_token =
          std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
    }
  }
  if (const auto usage = fields.find("usage")) {
    Fields counts(*usage, "usage");
    openai::Usage& told = ending.usage.emplace();
    told.prompt_tokens = counts.number("prompt_tokens", kNumberMax);
    told.completion_tokens = counts.number("completion_tokens", kNumberMax, 0);
    if (counts.find("cached_tokens"))
      told.cached_tokens = counts.number("cached_tokens", kNumberMax);
    told.alone = counts.flag("alone", false);
    SL_TRY(counts.check());
  }
  if (const auto failure = fields.find("failure")) {
    ending.failure = read_cause(*failure);
    if (!ending.failure) fields.refuse("failure", "must be {code, blame, retryable, message}");
  }
  SL_TRY(fields.check());
  ending.kind = static_cast<Kind>(place - kEndingNames.begin());
  return ending;
}

Result<selection::Ending> read_ending(std::string body, HeldBytes* memory) {
  const json::Document document = SL_TRY(parse_object(std::move(body), memory));
  return ending_in(document.root());
}

std::string write_error(const Error& error) {
  std::string body = openai::error_body(error);
  // Removes the closing brace.
  body.pop_back();
  return body + R"(,"cause":)" + cause_json(error) + "}";
}

std::string error_message(std::string body) {
  const auto document = parse_object(std::move(body));
  if (!document.ok()) return "";
  const auto error = document->root().find("error");
  if (!error || !error->is(json::Kind::Object)) return "";
  const auto message = error->find("message");
  return std::string(message ? message->string().value_or("").substr(0, kMessageBytesMax) : "");
}

std::optional<Error> read_error(std::string body) {
  const auto document = parse_object(std::move(body));
  if (!document.ok()) return std::nullopt;
  const auto cause = document->root().find("cause");
  return cause ? read_cause(*cause) : std::nullopt;
}

}  // namespace sightline::selection_json
