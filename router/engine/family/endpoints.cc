// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/engine/family/endpoints.h"

#include <optional>

#include "common/base/number.h"

#include "router/engine/family/json_answer.h"
#include "router/engine/family/server_facts.h"

namespace sightline::family {
namespace {

struct HostPort {
  std::string_view host;
  std::string_view port;
};

// Splits "tcp://host:port". The port is a number above 0.
std::optional<HostPort> tcp_endpoint(std::string_view text) {
  constexpr std::string_view kScheme = "tcp://";
  const std::size_t colon = text.rfind(':');
  if (!text.starts_with(kScheme) || colon < kScheme.size()) return std::nullopt;
  const HostPort endpoint{text.substr(kScheme.size(), colon - kScheme.size()),
                          text.substr(colon + 1)};
  const auto port = whole_number(endpoint.port, 65535);
  if (endpoint.host.empty() || !port || *port == 0) return std::nullopt;
  return endpoint;
}

bool is_wildcard(std::string_view host) { return host == "*" || host == "[::]" || host == "::"; }

std::string tcp_text(std::string_view host, std::string_view port) {
  // An IPv6 address needs brackets before the port.
  const bool needs_brackets = host.find(':') != std::string_view::npos && !host.starts_with('[');
  std::string text = "tcp://";
  text += needs_brackets ? "[" + std::string(host) + "]" : std::string(host);
  return text + ":" + std::string(port);
}

bool is_ipc(std::string_view text) { return text.starts_with("ipc://") && text.size() > 6; }

Error bad_endpoint(std::string_view text) {
  return corrupt("'" + std::string(text.substr(0, kNameBytesMax)) +
                 "' is not an endpoint of the form tcp://HOST:PORT or ipc://PATH");
}

}  // namespace

Result<ResolvedEndpoint> resolve_events_endpoint(std::string_view engine_side,
                                                 std::string_view worker_host) {
  if (is_ipc(engine_side)) return ResolvedEndpoint{std::string(engine_side), false};
  const auto endpoint = tcp_endpoint(engine_side);
  if (!endpoint) return bad_endpoint(engine_side);
  if (is_wildcard(endpoint->host)) {
    return ResolvedEndpoint{tcp_text(worker_host, endpoint->port), false};
  }
  if (engine_side.find("::") != std::string_view::npos) {
    return ResolvedEndpoint{std::string(engine_side), false};
  }
  if (endpoint->host == "0.0.0.0") {
    return corrupt(
        "the engine connects to " + std::string(engine_side) +
        ", where no process listens: configure it with tcp://*:" + std::string(endpoint->port));
  }
  return ResolvedEndpoint{tcp_text("*", endpoint->port), true};
}

Result<std::string> resolve_replay_endpoint(std::string_view engine_side,
                                            std::string_view worker_host) {
  if (is_ipc(engine_side)) return std::string(engine_side);
  const auto endpoint = tcp_endpoint(engine_side);
  if (!endpoint) return bad_endpoint(engine_side);
  // The replay socket always binds, so 0.0.0.0 means all addresses here.
  const bool is_any = is_wildcard(endpoint->host) || endpoint->host == "0.0.0.0";
  return is_any ? tcp_text(worker_host, endpoint->port) : std::string(engine_side);
}

}  // namespace sightline::family
