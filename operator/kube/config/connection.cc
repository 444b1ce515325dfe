// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/kube/config/connection.h"

#include <cstddef>
#include <cstdint>

#include "common/base/number.h"
#include "common/runtime/small_file.h"

namespace sightline::config {
namespace {

constexpr std::size_t kNamespaceBytesMax = 253;

int base64_digit(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  if (c == '+') return 62;
  return c == '/' ? 63 : -1;
}

}  // namespace

std::optional<std::string> from_base64(std::string_view text) {
  std::string out;
  std::uint32_t held = 0;
  std::size_t digits = 0;
  std::size_t padding = 0;
  for (const char c : text) {
    if (c == '\n' || c == '\r') continue;
    if (c == '=') {
      ++padding;
      continue;
    }
    const int digit = base64_digit(c);
    if (digit < 0 || padding > 0) return std::nullopt;
    held = (held << 6U) | static_cast<std::uint32_t>(digit);
    if (++digits % 4 == 0) {
      for (const unsigned shift : {16U, 8U, 0U}) out += static_cast<char>(held >> shift);
    }
  }
  if ((digits + padding) % 4 != 0 || padding > 2) return std::nullopt;
  if (padding == 1) {
    out += static_cast<char>(held >> 10U);
    out += static_cast<char>(held >> 2U);
  } else if (padding == 2) {
    out += static_cast<char>(held >> 4U);
  }
  return out;
}

Result<Connection> in_cluster(std::string_view host, std::string_view port,
                              const std::string& directory) {
  if (host.empty() || !whole_number(port, 65535)) {
    return client_error(ErrorCode::InvalidArgument,
                        "not in a cluster: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are "
                        "not both set; name a kubeconfig instead");
  }
  auto name_space = runtime::read_small_file(directory + "/namespace", kNamespaceBytesMax);
  if (!name_space.ok()) {
    return with_context(std::move(name_space).error(), directory + "/namespace");
  }
  const bool is_ipv6 = host.find(':') != std::string_view::npos;
  Connection connection;
  connection.cluster.server = "https://" + std::string(is_ipv6 ? "[" : "") + std::string(host) +
                              (is_ipv6 ? "]" : "") + ":" + std::string(port);
  connection.cluster.authority.file = directory + "/ca.crt";
  connection.user.token_file = directory + "/token";
  connection.name_space = *name_space;
  return connection;
}

}  // namespace sightline::config
