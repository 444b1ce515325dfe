// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"

#include "operator/kube/config/connection.h"
#include "operator/kube/https/https_transport.h"
#include "operator/kube/object/resource.h"
#include "operator/manager/settings.h"

namespace sightline::manager {

// Where the API server is: as --kubeconfig says, else KUBECONFIG, else the pod's service account,
// else ~/.kube/config. Errors: InvalidArgument that names what was tried.
Result<config::Connection> connection_for(const KubeSettings& settings,
                                          const std::map<std::string, std::string>& environment);

// True if the API server's address is an IPv6 address. In a pod it is that of the Service
// "kubernetes", which has the cluster's first family of addresses, as pods have ("IPv4/IPv6
// dual-stack" in the documentation of Kubernetes). A name says nothing: false.
bool is_ipv6(const config::Connection& connection);

https::HttpsOptions https_options(const config::Connection& connection);
// "sightline-operator/1.2.3 (linux/amd64) PART".
std::string user_agent(std::string_view part);

// By which operators choose one that acts.
object::Key lease_of(const ElectionSettings& settings, const config::Connection& connection);

// Namespaces that one operator watches, each by its own connections; more are for one that watches
// all.
inline constexpr std::size_t kNamespacesMax = 64;
// Error: InvalidArgument for more, one named twice, or what is no name of a namespace.
Result<Done> check_namespaces(const std::vector<std::string>& names);

// Unlike that of any other operator: the host's name and a number drawn at start.
std::string identity_of_process();

}  // namespace sightline::manager
