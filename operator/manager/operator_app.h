// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "common/base/result.h"

#include "operator/manager/operator_settings.h"

namespace sightline::manager {

// What an operator is made with.
struct OperatorOptions {
  OperatorSettings settings;
  // The whole environment.
  std::map<std::string, std::string> environment;
  // Called when the Lease is lost: the process must end, and writes nothing more. On a thread of
  // the app, so it must not wait.
  std::function<void()> on_lost;
};

// The parts of `sightline-operator`, connected: caches of the API server's objects, a queue,
// workers that reconcile while this process leads, and an admin port.
// Thread safety: all methods from main.
class OperatorApp {
 public:
  // Returns when the admin port listens. The rest starts afterwards. Errors say what to change.
  static Result<std::unique_ptr<OperatorApp>> create(OperatorOptions options);
  // Calls stop().
  ~OperatorApp();

  // The port that the admin port has bound.
  [[nodiscard]] std::uint16_t admin_port() const;

  // Takes no more work, completes the work under way and releases the Lease. Further calls have no
  // effect.
  void stop();

  struct Parts;
  // For create() only.
  explicit OperatorApp(std::unique_ptr<Parts> parts);

 private:
  std::unique_ptr<Parts> parts_;
};

}  // namespace sightline::manager
