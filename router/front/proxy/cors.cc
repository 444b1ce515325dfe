// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/front/proxy/cors.h"

#include <algorithm>

#include "common/contract/serve_settings.h"

namespace sightline::proxy {
namespace {

constexpr std::string_view kAllowOrigin = "access-control-allow-origin";

bool contains(const std::vector<std::string>& allowed, std::string_view origin) {
  return std::find(allowed.begin(), allowed.end(), origin) != allowed.end();
}

}  // namespace

void allow_origin(http::Headers& answer, const std::vector<std::string>& allowed,
                  std::optional<std::string_view> origin) {
  if (contains(allowed, contract::kAnyOrigin)) {
    if (!origin) return;
    answer.set(kAllowOrigin, contract::kAnyOrigin);
  } else {
    // The setting allows no origin, so the answer is the same for all of them.
    if (contains(allowed, contract::kNoOrigin) || allowed.empty()) return;
    // Caches must not give this answer to another origin.
    answer.set("vary", "Origin");
    if (!origin || !contains(allowed, *origin)) return;
    answer.set(kAllowOrigin, *origin);
  }
  answer.set("access-control-expose-headers", "*");
}

bool is_preflight(const http::Request& request) {
  return request.method == "OPTIONS" && request.headers.find("origin") &&
         request.headers.find("access-control-request-method");
}

http::Response preflight_answer(const http::Request& request,
                                const std::vector<std::string>& allowed) {
  http::Response answer{.status = 204, .headers = {}, .body = {}};
  allow_origin(answer.headers, allowed, request.headers.find("origin"));
  if (!answer.headers.find(kAllowOrigin)) return answer;
  // A preflight has no body that a page could read.
  answer.headers.remove("access-control-expose-headers");
  answer.headers.set("access-control-allow-methods",
                     "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS");
  const auto wanted = request.headers.find("access-control-request-headers");
  if (wanted) answer.headers.set("access-control-allow-headers", *wanted);
  answer.headers.set("access-control-max-age", "600");
  return answer;
}

}  // namespace sightline::proxy
