// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "common/base/result.h"

#include "operator/manager/settings.h"

namespace sightline::manager {

struct OperatorOptions {
  OperatorSettings settings;
  std::map<std::string, std::string> environment;  // whole
  // The Lease is lost: the process has to end, and nothing is written any more. On a thread of the
  // app; must be short.
  std::function<void()> on_lost;
};

// `sightline-operator` put together: caches of the API server's objects, a queue, workers that
// reconcile while this process leads, and an admin port.
// Thread safety: all methods from main.
class OperatorApp {
 public:
  // Listens on the admin port when it returns; everything else begins then. Errors name what to
  // change.
  static Result<std::unique_ptr<OperatorApp>> create(OperatorOptions options);
  ~OperatorApp();  // as stop()

  [[nodiscard]] std::uint16_t admin_port() const;

  // Takes no more work, finishes what is under way, gives the Lease back. Idempotent.
  void stop();

  struct Parts;
  explicit OperatorApp(std::unique_ptr<Parts> parts);  // by create()

 private:
  std::unique_ptr<Parts> parts_;
};

}  // namespace sightline::manager
