// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/openai/api_target.h"

#include <algorithm>
#include <array>
#include <optional>

namespace sightline::openai {
namespace {

constexpr std::array<std::string_view, 2> kGeneratingPaths{"/v1/chat/completions",
                                                           "/v1/completions"};

// Compares without the case of ASCII letters.
bool begins_with(std::string_view text, std::string_view lower_case) {
  const auto same = [](char c, char lower) {
    return c == lower || (c >= 'A' && c <= 'Z' && c - 'A' + 'a' == lower);
  };
  return text.size() >= lower_case.size() &&
         std::equal(lower_case.begin(), lower_case.end(), text.begin(),
                    [&](char lower, char c) { return same(c, lower); });
}

Error bad_target(std::string_view what) {
  return client_error(ErrorCode::InvalidArgument, "the request's path " + std::string(what));
}

bool is_unreserved(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '.' || c == '_' || c == '~';
}

std::optional<int> hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return std::nullopt;
}

// Returns the origin form: the part after scheme and authority.
Result<std::string_view> origin_form(std::string_view target) {
  if (target.starts_with('/')) return target;
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!begins_with(target, scheme)) continue;
    target.remove_prefix(scheme.size());
    const auto end = target.find_first_of("/?#");
    if (target.empty() || end == 0) break;
    return target.substr(std::min(end, target.size()));
  }
  return bad_target("must begin with a slash, like /v1/chat/completions");
}

// Decodes the escapes of unreserved characters (RFC 3986 section 6.2.2.2).
Result<std::string> without_needless_escapes(std::string_view path) {
  std::string plain;
  plain.reserve(path.size());
  for (std::size_t i = 0; i < path.size(); ++i) {
    // Two servers could read a backslash differently: as a slash or as a letter.
    if (path[i] == '\\') return bad_target("has a backslash. Separate segments with slashes");
    if (path[i] != '%') {
      plain += path[i];
      continue;
    }
    const auto high = i + 2 < path.size() ? hex_digit(path[i + 1]) : std::nullopt;
    const auto low = i + 2 < path.size() ? hex_digit(path[i + 2]) : std::nullopt;
    if (!high || !low) return bad_target("has a % without two hexadecimal digits after it");
    const char c = static_cast<char>(*high * 16 + *low);
    if (c == '/' || c == '\\' || c == '\0') {
      return bad_target("has an escaped slash, backslash or NUL. Write the path without it");
    }
    if (is_unreserved(c)) {
      plain += c;
    } else {
      plain.append(path.substr(i, 3));
    }
    i += 2;
  }
  return plain;
}

Result<Done> check_segments(std::string_view path) {
  for (std::size_t begin = 1; begin < path.size();) {
    const auto end = std::min(path.find('/', begin), path.size());
    const auto segment = path.substr(begin, end - begin);
    if (segment.empty()) return bad_target("has an empty segment (//). Write one slash");
    if (segment == "." || segment == "..") {
      return bad_target("has a dot segment. Write the resolved path");
    }
    begin = end + 1;
  }
  if (path.size() > 1 && path.ends_with('/')) {
    return client_error(ErrorCode::NotFound,
                        "no such path. Remove the slash at the end of the path");
  }
  return Done{};
}

}  // namespace

Result<ApiTarget> read_target(std::string_view target) {
  const std::string_view origin = SL_TRY(origin_form(target));
  // A fragment is not sent to servers, so two servers could read it differently.
  if (origin.find('#') != std::string_view::npos) {
    return bad_target("has a fragment (#), which is not sent to servers");
  }
  const auto path_end = std::min(origin.find('?'), origin.size());
  ApiTarget read;
  read.path = SL_TRY(without_needless_escapes(origin.substr(0, path_end)));
  if (read.path.empty()) read.path = "/";
  SL_TRY(check_segments(read.path));
  read.query = origin.substr(path_end);
  return read;
}

std::optional<std::string> model_of(std::string_view target) {
  constexpr std::string_view kModels = "/v1/models/";
  const auto origin = origin_form(target);
  if (!origin.ok() || !origin->starts_with(kModels)) return std::nullopt;
  const std::string_view escaped =
      origin->substr(0, origin->find_first_of("?#")).substr(kModels.size());
  if (escaped.empty()) return std::nullopt;
  std::string name;
  for (std::size_t i = 0; i < escaped.size(); ++i) {
    // An invalid escape stays as it is, because a name may have any bytes.
    const bool is_escape = escaped[i] == '%' && i + 2 < escaped.size();
    const auto high = is_escape ? hex_digit(escaped[i + 1]) : std::nullopt;
    const auto low = is_escape ? hex_digit(escaped[i + 2]) : std::nullopt;
    name += high && low ? static_cast<char>(*high * 16 + *low) : escaped[i];
    if (high && low) i += 2;
  }
  return name;
}

bool is_like_generating(std::string_view path) {
  for (const std::string_view generating : kGeneratingPaths) {
    if (begins_with(path, generating)) return true;
  }
  return false;
}

}  // namespace sightline::openai
