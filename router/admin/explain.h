// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <string>

#include "common/runtime/admin_server.h"

#include "router/proxy/pipeline.h"
#include "router/proxy/services.h"

namespace sightline::admin {

// POST /v1/explain: how a chat or completions body would be routed at this moment, without
// sending it anywhere: prompt, expanded tokens, media, block digests, every worker's terms and the
// choice. A request that would be refused gives the client's error. Images given by URL are
// downloaded, since their identity is that of their bytes.
// Thread safety: run() from any thread that is not of the pool; it waits for the answer. Both
// outlive this.
class Explain {
 public:
  Explain(const proxy::Services& services, const proxy::Pipeline& pipeline)
      : services_(services), pipeline_(pipeline) {}

  [[nodiscard]] runtime::AdminResponse run(const std::string& body) const;

 private:
  Task<Result<std::string>> explain(std::string body) const;

  const proxy::Services& services_;
  const proxy::Pipeline& pipeline_;
};

}  // namespace sightline::admin
