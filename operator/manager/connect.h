// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"

#include "operator/kube/config/api_connection.h"
#include "operator/kube/https/https_transport.h"
#include "operator/kube/object/resource.h"
#include "operator/manager/operator_settings.h"

namespace sightline::manager {

// Finds the API server: from --kubeconfig, else KUBECONFIG, else the pod's service account, else
// ~/.kube/config. Errors: InvalidArgument that names what was tried.
Result<config::Connection> connection_for(const KubeSettings& settings,
                                          const std::map<std::string, std::string>& environment);

// True if the API server has an IPv6 address. In a pod this is the address of the Service
// "kubernetes", in the first family of the cluster. Pods have the same first family ("IPv4/IPv6
// dual-stack" in the documentation of Kubernetes). A host name does not show it: false.
bool is_ipv6(const config::Connection& connection);

// The options of a connection to the API server.
https::HttpsOptions https_options(const config::Connection& connection);
// For example "sightline-operator/1.2.3 (linux/amd64) PART".
std::string user_agent(std::string_view part);

// The Lease with which operators elect the leader.
object::Key lease_of(const ElectionSettings& settings, const config::Connection& connection);

// The most namespaces that one operator watches, because each needs its own connections. Above, let
// the operator watch all namespaces.
inline constexpr std::size_t kNamespacesMax = 64;
// Errors: InvalidArgument for too many names, a repeated name or an invalid name.
Result<Done> check_namespaces(const std::vector<std::string>& names);

// A name that no other operator has: the host's name and a random number drawn at start.
std::string identity_of_process();

}  // namespace sightline::manager
