// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <map>
#include <string>

#include "common/base/result.h"

#include "operator/kube/config/connection.h"
#include "operator/manager/settings.h"

namespace sightline::manager {

// Where the API server is: as --kubeconfig says, else KUBECONFIG, else the pod's service account,
// else ~/.kube/config. Errors: InvalidArgument that names what was tried.
Result<config::Connection> connection_for(const KubeSettings& settings,
                                          const std::map<std::string, std::string>& environment);

// Unlike that of any other operator: the host's name and a number drawn at start.
std::string identity_of_process();

}  // namespace sightline::manager
