// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <map>
#include <memory>
#include <string_view>
#include <vector>

#include "common/base/result.h"
#include "common/contract/serve_settings.h"
#include "common/contract/worker_spec.h"
#include "common/runtime/task.h"

#include "router/front/proxy/pipeline.h"
#include "router/front/proxy/services.h"
#include "router/openai/edits.h"
#include "router/openai/request.h"
#include "router/openai/unread_request.h"
#include "router/prompt/prepare/prepare.h"
#include "router/workers/fleet/served.h"

namespace sightline::proxy {

// The client's body as workers get it: edited once for each engine family.
// Thread safety: none; of one request. What it is given outlives it.
class RequestBodies {
 public:
  RequestBodies(const Services& services, const openai::ApiRequest& request,
                const prepare::Prepared& prepared)
      : services_(services),
        settings_(services.settings.read()),
        request_(request),
        prepared_(prepared) {}

  // True if the router has to ask for the usage of a stream itself, to audit its prediction.
  [[nodiscard]] bool asks_for_usage() const;

  // For the families that there are; downloaded images of many bytes are written into it on the
  // compute threads. Errors: Cancelled; TooLarge and Overloaded where memory has no room.
  [[nodiscard]] Task<Result<Done>> edit(const fleet::Served& served, Requester& requester);
  // Edits the body once more where the first worker of a family has joined just now.
  [[nodiscard]] std::vector<std::string_view> pieces_for(contract::EngineFamily family);

 private:
  [[nodiscard]] openai::EditedBody edited(contract::EngineFamily family) const;

  const Services& services_;
  const std::shared_ptr<const contract::ServeSettings> settings_;  // of all of its bodies
  const openai::ApiRequest& request_;
  const prepare::Prepared& prepared_;
  std::map<contract::EngineFamily, openai::EditedBody> bodies_;
};

// The body of a request that is not read as workers get it; its URLs are replaced, on the compute
// threads, by what was downloaded for them. The request outlives it. Errors: as of edit() above.
Task<Result<openai::EditedBody>> edit_unread(const Services& services,
                                             const openai::UnreadRequest& request,
                                             const prepare::Downloads& downloads,
                                             Requester& requester);

}  // namespace sightline::proxy
