// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/front/push/put_guard.h"

#include <string>
#include <utility>

#include "common/contract/metrics_process.h"

namespace sightline::push {

using runtime::AdminRequest;
using runtime::AdminResponse;

runtime::AdminServer::Route guarded(std::string_view what, runtime::TokenFile* tokens,
                                    runtime::Metrics& metrics, runtime::AdminServer::Route route) {
  return [what = std::string(what), tokens, &metrics,
          route = std::move(route)](const AdminRequest& request) -> AdminResponse {
    if (tokens != nullptr && tokens->admits(request.authorization)) return route(request);
    metrics.counter(contract::kPushesTotal, {what, "unauthorized"}).add();
    if (tokens == nullptr) {
      return runtime::admin_error(
          403,
          "nothing may be changed here: this process was started without admin.token_file; give "
          "--admin-token-file FILE with a token, and send it as 'Authorization: Bearer TOKEN'");
    }
    return runtime::admin_error(
        401, request.authorization.empty()
                 ? "a token is asked for: send 'Authorization: Bearer TOKEN' with one of the file "
                   "that --admin-token-file names"
                 : "the token is none of the file that --admin-token-file names");
  };
}

}  // namespace sightline::push
