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

// What an installation has to be to look after objects.
struct CheckOptions {
  std::vector<std::string> name_spaces;  // whose objects are looked after; none: all
  object::Key lease;    // of the operators; no name: one alone acts, without a Lease
  Duration time_max{};  // for all of it to be so
};

struct CheckAround {
  client::ApiClient& api;
  const Clock& clock;
  std::function<bool(Duration)> pause;           // waits; false: the process stops
  std::function<void(const std::string&)> said;  // a line for whoever waits
};

// Waits until the API server knows MultimodalRouters and lets them be read, and an operator was
// seen to renew its Lease. Errors: InvalidArgument, NotFound or Unavailable with what is missing
// and how it is mended; what a person has to mend is not waited for.
Result<Done> check_installation(const CheckOptions& options, const CheckAround& around);

}  // namespace sightline::installation
