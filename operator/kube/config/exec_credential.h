// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <optional>
#include <string>

#include "common/base/clock.h"
#include "common/base/result.h"

#include "operator/kube/config/api_connection.h"

namespace sightline::config {

// The credentials that a plugin printed.
struct ExecCredential {
  std::string token;
  // PEM.
  std::string certificate;
  // PEM.
  std::string key;
  std::optional<WallTime> expires;
};

// The value of KUBERNETES_EXEC_INFO for the plugin. Pure.
[[nodiscard]] std::string exec_info(const ExecPlugin& plugin, const Cluster& cluster,
                                    const std::string& authority_pem);

// Parses the output of a plugin. Errors: InvalidArgument. It never contains the text, which is
// secret. Pure.
Result<ExecCredential> parse_exec_credential(const std::string& text, const ExecPlugin& plugin);

// The most bytes that a plugin may print.
inline constexpr std::size_t kExecOutputBytesMax = 1 << 20;
// The most time that a plugin may take.
inline constexpr std::chrono::seconds kExecTimeMax{60};

// Runs the plugin and returns its output. Kills it after kExecTimeMax. It gets no input. Its
// messages go to our standard error.
Result<std::string> run_plugin(const ExecPlugin& plugin, const std::string& info);

}  // namespace sightline::config
