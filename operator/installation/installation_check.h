// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/result.h"

#include "operator/kube/client/api_client.h"
#include "operator/kube/object/resource.h"

namespace sightline::installation {

// What an installation needs to manage objects.
struct CheckOptions {
  // The namespaces whose objects are managed. Empty: all.
  std::vector<std::string> name_spaces;
  // The Lease of the operators. Without a name: one operator acts alone, without a Lease.
  object::Key lease;
  // The time for all this to become true.
  Duration time_max{};
};

// What the check uses.
struct CheckAround {
  client::ApiClient& api;
  const Clock& clock;
  // Waits. Returns false if the process stops.
  std::function<bool(Duration)> pause;
  // Called with a line for the person who waits.
  std::function<void(const std::string&)> said;
};

// Waits until the API server knows MultimodalRouters and allows to read them, and an operator has
// renewed its Lease. Errors: InvalidArgument, NotFound or Unavailable that names the missing part
// and the remedy. Does not wait for what a person must repair.
Result<Done> check_installation(const CheckOptions& options, const CheckAround& deps);

}  // namespace sightline::installation
