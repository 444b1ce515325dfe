// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/front/retry/refusal.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <ctime>

#include "common/base/json.h"

namespace sightline::retry {
namespace {

constexpr std::string_view kAddress = "[address]";
// Limits for parsing the worker's error. Real errors are small.
constexpr std::size_t kDepthMax = 8;
constexpr std::size_t kValuesMax = 1000;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

bool is_name_char(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_' ||
         c == '.';
}

template <class Belongs>
std::size_t length_of(std::string_view text, Belongs belongs) {
  const auto end = std::find_if_not(text.begin(), text.end(), belongs);
  return static_cast<std::size_t>(end - text.begin());
}

// Returns the length of ":PORT" at the beginning.
std::size_t port_length(std::string_view text) {
  if (!text.starts_with(':')) return 0;
  const std::size_t digits = length_of(text.substr(1), is_digit);
  return digits == 0 ? 0 : digits + 1;
}

// Returns the length of an IPv4 address with its port at the beginning. The address has four
// numbers with dots between.
std::size_t ipv4_length(std::string_view text) {
  std::size_t at = 0;
  for (int part = 0; part < 4; ++part) {
    if (part > 0 && (at >= text.size() || text[at++] != '.')) return 0;
    const std::size_t digits = length_of(text.substr(at), is_digit);
    if (digits == 0 || digits > 3) return 0;
    at += digits;
  }
  return at + port_length(text.substr(at));
}

// Returns the length of an IPv6 address at the beginning, with its brackets and port. It has groups
// of hexadecimal digits, and either two adjacent colons or seven colons. A time of day has neither.
std::size_t ipv6_length(std::string_view text) {
  const std::size_t open = text.starts_with('[') ? 1 : 0;
  const auto belongs = [](char c) { return is_hex(c) || c == ':' || c == '.' || c == '%'; };
  std::string_view body = text.substr(open);
  body = body.substr(0, length_of(body, belongs));
  const auto colons = std::count(body.begin(), body.end(), ':');
  if (colons < 7 && body.find("::") == body.npos) return 0;
  std::size_t at = open + body.size();
  if (open == 1 && text.substr(at).starts_with(']')) at += 1 + port_length(text.substr(at + 1));
  return at;
}

// Returns the length of "scheme://authority" at the beginning.
std::size_t url_length(std::string_view text) {
  for (const std::string_view scheme : {"http://", "https://", "tcp://"}) {
    if (!text.starts_with(scheme)) continue;
    const std::string_view rest = text.substr(scheme.size());
    const auto belongs = [](char c) {
      return is_name_char(c) || std::string_view(":[]@%").find(c) != std::string_view::npos;
    };
    return scheme.size() + length_of(rest, belongs);
  }
  return 0;
}

std::size_t host_length(std::string_view text, std::string_view host) {
  if (host.empty() || !text.starts_with(host)) return 0;
  const std::string_view rest = text.substr(host.size());
  // "host1" is another name than "host".
  if (!rest.empty() && is_name_char(rest.front()) && rest.front() != '.') return 0;
  return host.size() + port_length(rest);
}

// Returns the length of an address that begins here. No address begins in the middle of a word.
std::size_t address_length(std::string_view text, std::string_view host, char before) {
  if (const std::size_t bytes = url_length(text)) return bytes;
  if (is_name_char(before)) return 0;
  return std::max({host_length(text, host), ipv4_length(text), ipv6_length(text)});
}

// Returns the length of the UTF-8 character at the beginning, or 0 if it is invalid.
std::size_t character_length(std::string_view text) {
  const auto first = static_cast<unsigned char>(text.front());
  const std::size_t bytes = first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  if ((first >= 0x80 && first < 0xC2) || first > 0xF4 || text.size() < bytes) return 0;
  const auto continues = [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; };
  if (length_of(text.substr(1, bytes - 1), continues) != bytes - 1) return 0;
  const auto second = bytes > 1 ? static_cast<unsigned char>(text[1]) : 0x80U;
  const bool is_overlong = (first == 0xE0 && second < 0xA0) || (first == 0xF0 && second < 0x90);
  const bool is_beyond = (first == 0xED && second > 0x9F) || (first == 0xF4 && second > 0x8F);
  return is_overlong || is_beyond ? 0 : bytes;
}

bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; }

std::optional<std::uint32_t> seconds_of(const std::string& value, WallTime now) {
  std::uint32_t seconds = 0;
  const char* const end = value.data() + value.size();
  const auto number = std::from_chars(value.data(), end, seconds);
  if (!value.empty() && length_of(value, is_digit) == value.size()) {
    // The number is too large for 32 bits.
    if (number.ec != std::errc()) return kRetryAfterSecondsMax;
    return std::clamp(seconds, 1U, kRetryAfterSecondsMax);
  }
  std::tm date{};
  const char* const rest = ::strptime(value.c_str(), "%a, %d %b %Y %H:%M:%S GMT", &date);
  if (rest == nullptr || *rest != '\0') return std::nullopt;
  const auto at = std::chrono::system_clock::from_time_t(::timegm(&date));
  const auto left = std::chrono::ceil<std::chrono::seconds>(at - now).count();
  return static_cast<std::uint32_t>(
      std::clamp(left, decltype(left){1}, decltype(left){kRetryAfterSecondsMax}));
}

// The text of an error, and whether the body has OpenAI's shape.
struct ErrorText {
  std::string message;
  bool is_openai = false;
};

std::optional<ErrorText> error_of(const std::string& body) {
  const auto document = json::Document::parse(body, {kDepthMax, kValuesMax});
  if (!document.ok()) return std::nullopt;
  const auto error = document->root().find("error");
  if (!error) return std::nullopt;
  if (const auto text = error->string()) return ErrorText{std::string(*text), false};
  const auto message = error->find("message");
  if (!message || !message->string()) return std::nullopt;
  return ErrorText{std::string(*message->string()), true};
}

}  // namespace

std::string shown_text(std::string_view text, std::string_view host, std::size_t bytes_max) {
  std::string shown;
  char before = ' ';
  while (!text.empty()) {
    const std::size_t address = address_length(text, host, before);
    const std::size_t bytes = address > 0 ? address : character_length(text);
    std::string_view piece = text.substr(0, std::max<std::size_t>(bytes, 1));
    before = piece.back();
    text.remove_prefix(piece.size());
    if (address > 0) piece = kAddress;
    // Control characters and invalid bytes become one blank. They must not reach logs or clients.
    if (address == 0 && (bytes == 0 || is_control(piece.front()))) piece = " ";
    if (shown.size() + piece.size() > bytes_max) break;
    if (piece != " " || (!shown.empty() && shown.back() != ' ')) shown += piece;
  }
  while (shown.ends_with(' ')) shown.pop_back();
  return shown;
}

WorkerRefusal read_refusal(const RefusalText& said, WallTime now) {
  WorkerRefusal refusal{.retry_after_s = seconds_of(said.retry_after, now), .body = {}, .text = {}};
  const auto error = error_of(said.body);
  const std::string& text = error ? error->message : said.body;
  refusal.text = shown_text(text, said.engine_host, kRefusalTextBytesMax);
  if (!error || !error->is_openai || said.body.size() > kRefusalBodyBytesMax) return refusal;
  // The escapes of JSON could hide an address, also in other members.
  const bool is_plain =
      said.body.find("\\u") == said.body.npos && said.body.find("\\/") == said.body.npos;
  const std::string shown =
      shown_text(said.body, said.engine_host, said.body.size() + kAddress.size());
  const bool is_clean = shown.find(kAddress) == std::string::npos;
  if (is_plain && is_clean) refusal.body = said.body;
  return refusal;
}

}  // namespace sightline::retry
