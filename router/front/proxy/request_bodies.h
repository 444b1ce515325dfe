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

// The client's body in the form for workers. It is edited once for each engine family.
//
// Not thread-safe: it belongs to one request. Its arguments must live longer.
class RequestBodies {
 public:
  RequestBodies(const Deps& services, const openai::ApiRequest& request,
                const prepare::Prepared& prepared)
      : services_(services),
        settings_(services.settings.read()),
        request_(request),
        prepared_(prepared) {}

  // Returns whether the router must request the usage of a stream itself, to audit its prediction.
  [[nodiscard]] bool asks_for_usage() const;

  // Edits the body for all families of the fleet. Large downloaded images are written into it on
  // the compute threads. Errors: Cancelled, and TooLarge or Overloaded if memory has no room.
  [[nodiscard]] Task<Result<Done>> edit(const fleet::Served& served, Requester& requester);
  // Returns the body for a family. It edits the body if the first worker of the family has just
  // joined.
  [[nodiscard]] std::vector<std::string_view> pieces_for(contract::EngineFamily family);

 private:
  // Returns the body for one family, with media and usage as the settings want them.
  [[nodiscard]] openai::EditedBody edited(contract::EngineFamily family) const;

  const Deps& services_;
  // The same settings for all of its bodies.
  const std::shared_ptr<const contract::ServeSettings> settings_;
  const openai::ApiRequest& request_;
  const prepare::Prepared& prepared_;
  // One body for each family of engines.
  std::map<contract::EngineFamily, openai::EditedBody> bodies_;
};

// Returns the body for workers of a request whose prompt is not read. Its URLs are replaced by the
// downloads, on the compute threads. The request must live longer. Errors: as edit() above.
Task<Result<openai::EditedBody>> edit_unread(const Deps& services,
                                             const openai::UnreadRequest& request,
                                             const prepare::Downloads& downloads,
                                             Requester& requester);

}  // namespace sightline::proxy
