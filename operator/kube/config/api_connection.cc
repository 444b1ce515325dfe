// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/kube/config/api_connection.h"

#include <cstddef>
#include <cstdint>

#include "common/base/number.h"
#include "common/runtime/small_file.h"

namespace sightline::config {
namespace {

constexpr std::size_t kNamespaceBytesMax = 253;

}  // namespace

Result<Connection> in_cluster(std::string_view host, std::string_view port,
                              const std::string& directory) {
  if (host.empty() || !whole_number(port, 65535)) {
    return client_error(ErrorCode::InvalidArgument,
                        "not in a cluster: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are "
                        "not both set. Use a kubeconfig instead");
  }
  auto name_space = runtime::read_small_file(directory + "/namespace", kNamespaceBytesMax);
  if (!name_space.ok()) {
    return with_context(std::move(name_space).error(), directory + "/namespace");
  }
  // RFC 3986, section 3.2.2: an IPv6 address in a URL has brackets.
  const bool is_ipv6 = host.find(':') != std::string_view::npos;
  Connection connection;
  connection.cluster.server = "https://" + std::string(is_ipv6 ? "[" : "") + std::string(host) +
                              (is_ipv6 ? "]" : "") + ":" + std::string(port);
  // Named as files, because Kubernetes renews them while the pod runs.
  connection.cluster.authority.file = directory + "/ca.crt";
  connection.user.token_file = directory + "/token";
  connection.name_space = *name_space;
  return connection;
}

}  // namespace sightline::config
