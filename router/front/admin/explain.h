// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <atomic>
#include <cstddef>
#include <string>

#include "common/admin_port/admin_server.h"

#include "router/front/proxy/pipeline.h"
#include "router/front/proxy/services.h"

namespace sightline::admin {

// The most explanations at the same time. Each may wait for slow image hosts, and keeps its body in
// memory.
inline constexpr std::size_t kExplainsMax = 16;

// POST /v1/explain: shows how a chat or completions body would be routed at this moment, without
// sending it. The answer has the prompt, its expanded tokens, media and block digests, the terms of
// every worker, and the choice. A request that would be rejected gets its client error. Images with
// URLs are downloaded, because their identity depends on their bytes.
//
// Thread safety: any thread may call run(), which does not wait. Both arguments must live longer
// than this object. This object must live longer than its answers.
class Explain {
 public:
  Explain(const proxy::Deps& services, const proxy::Pipeline& pipeline)
      : services_(services), pipeline_(pipeline) {}

  // Answers from an I/O thread, or immediately if too many explanations are running.
  void run(std::string body, admin_port::AdminServer::Respond respond);

 private:
  Task<Result<std::string>> explain(std::string body) const;

  const proxy::Deps& services_;
  const proxy::Pipeline& pipeline_;
  std::atomic<std::size_t> running_ = 0;
};

}  // namespace sightline::admin
