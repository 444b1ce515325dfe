// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/http/message.h"

#include <algorithm>
#include <array>

namespace sightline::http {
namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool breaks_field(char c) { return c == '\r' || c == '\n' || c == '\0'; }

std::string_view trimmed(std::string_view text) {
  const auto begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

bool lists_token(std::string_view list, std::string_view token) {
  while (!list.empty()) {
    const auto comma = std::min(list.find(','), list.size());
    if (equal_names(trimmed(list.substr(0, comma)), token)) return true;
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return false;
}

// The fields of one hop, by RFC 9110 section 7.6.1. A proxy must not forward them.
bool is_of_one_hop(std::string_view name) {
  static constexpr std::array<std::string_view, 6> kNames{
      "connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"};
  constexpr std::string_view kProxyPrefix = "proxy-";
  if (equal_names(name.substr(0, kProxyPrefix.size()), kProxyPrefix)) return true;
  return std::any_of(kNames.begin(), kNames.end(),
                     [&](std::string_view known) { return equal_names(name, known); });
}

// 499 is no registered status: nginx and its followers use it for a client that left.
struct Phrase {
  int status;
  std::string_view text;
};
constexpr std::array kPhrases{
    Phrase{100, "Continue"},
    Phrase{200, "OK"},
    Phrase{201, "Created"},
    Phrase{202, "Accepted"},
    Phrase{204, "No Content"},
    Phrase{206, "Partial Content"},
    Phrase{301, "Moved Permanently"},
    Phrase{302, "Found"},
    Phrase{304, "Not Modified"},
    Phrase{307, "Temporary Redirect"},
    Phrase{308, "Permanent Redirect"},
    Phrase{400, "Bad Request"},
    Phrase{401, "Unauthorized"},
    Phrase{403, "Forbidden"},
    Phrase{404, "Not Found"},
    Phrase{405, "Method Not Allowed"},
    Phrase{408, "Request Timeout"},
    Phrase{409, "Conflict"},
    Phrase{411, "Length Required"},
    Phrase{413, "Content Too Large"},
    Phrase{414, "URI Too Long"},
    Phrase{415, "Unsupported Media Type"},
    Phrase{417, "Expectation Failed"},
    Phrase{422, "Unprocessable Content"},
    Phrase{429, "Too Many Requests"},
    Phrase{431, "Request Header Fields Too Large"},
    Phrase{499, "Client Closed Request"},
    Phrase{500, "Internal Server Error"},
    Phrase{501, "Not Implemented"},
    Phrase{502, "Bad Gateway"},
    Phrase{503, "Service Unavailable"},
    Phrase{504, "Gateway Timeout"},
    Phrase{505, "HTTP Version Not Supported"},
};

// The place of the path within the target. An absolute target has scheme and authority before it.
std::size_t path_offset(std::string_view target) {
  const auto scheme_end = target.find("://");
  if (target.starts_with('/') || scheme_end == std::string_view::npos) return 0;
  return std::min(target.find_first_of("/?", scheme_end + 3), target.size());
}

}  // namespace

bool equal_names(std::string_view a, std::string_view b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](char x, char y) {
           // Most names are equal byte for byte, which saves the conversion.
           return x == y || lower(x) == lower(y);
         });
}

Headers::Headers(std::initializer_list<Field> fields) {
  for (const auto& field : fields) add(field.name, field.value);
}

void Headers::add(std::string_view name, std::string_view value) {
  const auto offset = text_.size();
  entries_.push_back({static_cast<std::uint32_t>(offset), static_cast<std::uint32_t>(name.size()),
                      static_cast<std::uint32_t>(value.size())});
  text_.append(name).append(value);
  // One pass over the bytes. find_first_of() would call memchr() for each byte, which took a tenth
  // of a short request.
  std::replace_if(text_.begin() + static_cast<std::ptrdiff_t>(offset), text_.end(), breaks_field,
                  ' ');
}

void Headers::set(std::string_view name, std::string_view value) {
  remove(name);
  add(name, value);
}

void Headers::remove(std::string_view name) {
  const auto has_name = [&](const Entry& entry) {
    return equal_names({text_.data() + entry.offset, entry.name_bytes}, name);
  };
  entries_.erase(std::remove_if(entries_.begin(), entries_.end(), has_name), entries_.end());
}

void Headers::clear() {
  text_.clear();
  entries_.clear();
}

std::optional<std::string_view> Headers::find(std::string_view name) const {
  for (const auto field : *this) {
    if (equal_names(field.name, name)) return field.value;
  }
  return std::nullopt;
}

bool Headers::has_token(std::string_view name, std::string_view token) const {
  return std::any_of(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    const char* const text = text_.data() + entry.offset;
    return equal_names({text, entry.name_bytes}, name) &&
           lists_token({text + entry.name_bytes, entry.value_bytes}, token);
  });
}

Field Headers::operator[](std::size_t position) const {
  const auto& entry = entries_[position];
  const char* const text = text_.data() + entry.offset;
  return {{text, entry.name_bytes}, {text + entry.name_bytes, entry.value_bytes}};
}

std::string_view Request::path() const {
  std::string_view text = target;
  text.remove_prefix(path_offset(text));
  text = text.substr(0, text.find_first_of("?#"));
  return text.empty() ? "/" : text;
}

std::string_view Request::query() const {
  std::string_view text = target;
  const auto mark = text.find('?');
  if (mark == std::string_view::npos) return {};
  text.remove_prefix(mark + 1);
  return text.substr(0, text.find('#'));
}

std::string_view reason_of(int status) {
  for (const auto& phrase : kPhrases) {
    if (phrase.status == status) return phrase.text;
  }
  return "Unknown";
}

Headers end_to_end(const Headers& headers) {
  const bool names_others = headers.find("connection").has_value();
  // The copy costs two allocations, for any number of fields.
  Headers kept = headers;
  std::erase_if(kept.entries_, [&](const Headers::Entry& entry) {
    const std::string_view name(headers.text_.data() + entry.offset, entry.name_bytes);
    return is_of_one_hop(name) || (names_others && headers.has_token("connection", name));
  });
  return kept;
}

}  // namespace sightline::http
