// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <optional>
#include <string>

#include "common/base/clock.h"
#include "common/base/result.h"

#include "operator/kube/config/connection.h"

namespace sightline::config {

// What a plugin gave.
struct ExecCredential {
  std::string token;
  std::string certificate;  // PEM
  std::string key;          // PEM
  std::optional<WallTime> expires;
};

// What the plugin is told (KUBERNETES_EXEC_INFO). Pure.
[[nodiscard]] std::string exec_info(const ExecPlugin& plugin, const Cluster& cluster,
                                    const std::string& authority_pem);

// Errors: InvalidArgument; never holds the text, which is secret. Pure.
Result<ExecCredential> parse_exec_credential(const std::string& text, const ExecPlugin& plugin);

inline constexpr std::size_t kExecOutputBytesMax = 1 << 20;
inline constexpr std::chrono::seconds kExecTimeMax{60};

// Runs the plugin, which is killed after kExecTimeMax, and gives what it printed. It reads nothing;
// its messages go where ours go.
Result<std::string> run_plugin(const ExecPlugin& plugin, const std::string& info);

}  // namespace sightline::config
