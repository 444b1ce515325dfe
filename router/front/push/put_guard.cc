// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/front/push/put_guard.h"

#include <optional>
#include <string>
#include <utility>

#include "common/contract/metrics_process.h"

namespace sightline::push {

using admin_port::AdminRequest;
using admin_port::AdminResponse;

admin_port::Entry guarded(std::string_view what, runtime::TokenFile* tokens,
                          runtime::Metrics& metrics, std::size_t body_bytes_max) {
  auto guard = [what = std::string(what), tokens,
                &metrics](const AdminRequest& head) -> std::optional<AdminResponse> {
    // The guard sees the header only. Without a valid token no body is read.
    if (tokens != nullptr && tokens->admits(head.authorization)) return std::nullopt;
    metrics.counter(contract::kPushesTotal, {what, "unauthorized"}).add();
    if (tokens == nullptr) {
      return admin_port::admin_error(
          403,
          "changes are refused because admin.token_file is not set. Start this process with "
          "--admin-token-file FILE, and send a token from it as 'Authorization: Bearer TOKEN'");
    }
    return admin_port::admin_error(
        401, head.authorization.empty()
                 ? "a token is required: send 'Authorization: Bearer TOKEN' with a token from the "
                   "file of --admin-token-file"
                 : "the token is not in the file of --admin-token-file");
  };
  return {.body_bytes_max = body_bytes_max, .guard = std::move(guard)};
}

}  // namespace sightline::push
