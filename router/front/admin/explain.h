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

// Explanations at the same time; each may wait for slow image hosts and keeps its body.
inline constexpr std::size_t kExplainsMax = 16;

// POST /v1/explain: how a chat or completions body would be routed at this moment, without
// sending it anywhere: prompt, expanded tokens, media, block digests, every worker's terms and the
// choice. A request that would be refused gives the client's error. Images given by URL are
// downloaded, since their identity is that of their bytes.
// Thread safety: run() from any thread; it does not wait. Both outlive this, and this its answers.
class Explain {
 public:
  Explain(const proxy::Services& services, const proxy::Pipeline& pipeline)
      : services_(services), pipeline_(pipeline) {}

  // Responds from an I/O thread, or at once if too many are under way.
  void run(std::string body, admin_port::AdminServer::Respond respond);

 private:
  Task<Result<std::string>> explain(std::string body) const;

  const proxy::Services& services_;
  const proxy::Pipeline& pipeline_;
  std::atomic<std::size_t> running_ = 0;
};

}  // namespace sightline::admin
