// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/contract/selection_settings.h"

#include <algorithm>
#include <charconv>

namespace sightline::contract {
namespace {

using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;

constexpr std::size_t kHostBytesMax = 255;

Error invalid(const std::string& message) {
  return client_error(ErrorCode::InvalidArgument, message);
}

bool is_host(std::string_view host) {
  return !host.empty() && host.size() <= kHostBytesMax &&
         std::all_of(host.begin(), host.end(), [](unsigned char c) {
           return std::isalnum(c) != 0 || c == '.' || c == '-' || c == '_' || c == ':';
         });
}

bool is_loopback(std::string_view host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

Result<RouterAddress> router_address(std::string_view url) {
  constexpr std::string_view kScheme = "http://";
  const Error wrong = invalid("selection.routers: '" + std::string(url.substr(0, kHostBytesMax)) +
                              "' is not of the form http://HOST[:PORT] (no path, no https)");
  if (!url.starts_with(kScheme)) return wrong;
  url.remove_prefix(kScheme.size());
  if (url.ends_with('/')) url.remove_suffix(1);
  RouterAddress address;
  const bool is_v6 = url.starts_with('[');
  const std::size_t end = is_v6 ? url.find(']') : url.find(':');
  if (is_v6 && end == std::string_view::npos) return wrong;
  address.host = is_v6 ? url.substr(1, end - 1) : url.substr(0, end);
  std::string_view port = end == std::string_view::npos ? "" : url.substr(is_v6 ? end + 1 : end);
  if (!is_host(address.host) || (!is_v6 && address.host.find(':') != std::string::npos)) {
    return wrong;
  }
  if (port.empty()) return address;
  if (!port.starts_with(':')) return wrong;
  port.remove_prefix(1);
  const auto read = std::from_chars(port.data(), port.data() + port.size(), address.port);
  if (read.ec != std::errc() || read.ptr != port.data() + port.size() || address.port == 0) {
    return wrong;
  }
  return address;
}

}  // namespace

void add_roles(SettingTable& table, Roles& roles) {
  table.add_enum<Roles>(
      {"roles", "roles", "ROLES",
       "What this process does. frontend: accepts client requests. router: watches the workers and "
       "chooses one for each request. A process with one role works with processes that have the "
       "other role."},
      roles,
      {{"frontend,router", Roles::Both}, {"frontend", Roles::Frontend}, {"router", Roles::Router}});
}

void add_selection(SettingTable& table, SelectionSettings& s) {
  table.add_text({"selection.host", "selection-host", "ADDRESS",
                  "Address of the selection API of the router role. An address that other machines "
                  "reach needs selection.token_file."},
                 s.host);
  table.add_integer<std::uint16_t>(
      {"selection.port", "selection-port", "N",
       "Port of the selection API, for frontends and other callers. 0: any free port. A process "
       "with both roles opens it only if this is set."},
      s.port, {0, 65535});
  table.add_text({"selection.token_file", "selection-token-file", "FILE",
                  "Bearer tokens of the selection API, one a line, read again when the file "
                  "changes. A router accepts any of them. A frontend sends the first one."},
                 s.token_file);
  table.add_text(
      {"selection.routers", "routers", "URLS",
       "The routers that a process with only the frontend role uses, http://HOST:PORT with commas "
       "between. If a name has several addresses, each address is a router."},
      s.routers);
  table.add_duration(
      {"selection.poll_interval", "selection-poll-interval", "TIME",
       "How often a frontend polls each router for its health and for what its workers serve."},
      s.poll_interval, {50ms, 60s});
  table.add_duration({"selection.renew_interval", "selection-renew-interval", "TIME",
                      "How often a frontend sends its routers the list of all its reservations. "
                      "After 15 s without a message, they release the reservations."},
                     s.renew_interval, {50ms, 10s});
}

Result<std::vector<RouterAddress>> router_addresses(std::string_view urls) {
  std::vector<RouterAddress> addresses;
  while (true) {
    const std::size_t comma = urls.find(',');
    addresses.push_back(SL_TRY(router_address(urls.substr(0, comma))));
    // Checked for each URL, so a long text cannot take much memory.
    if (addresses.size() > kRoutersMax) {
      return invalid("selection.routers: more than " + std::to_string(kRoutersMax) + " URLs");
    }
    if (comma == std::string_view::npos) return addresses;
    urls.remove_prefix(comma + 1);
  }
}

Result<Done> check_selection(Roles roles, const SelectionSettings& s) {
  if (is_router(roles)) {
    if (!s.routers.empty()) {
      return invalid(
          "selection.routers is for a process with only the frontend role: give --roles frontend, "
          "or remove --routers");
    }
    if (s.token_file.empty() && !is_loopback(s.host)) {
      return invalid(
          "selection.host " + s.host +
          " is reached from other machines, and without a token all of them could reserve load: "
          "give --selection-token-file FILE, or --selection-host 127.0.0.1");
    }
    return Done{};
  }
  if (s.routers.empty()) {
    return invalid(
        "a process with only the frontend role needs routers, which choose a worker for each "
        "request: give --routers http://HOST:PORT at least once, or --roles frontend,router");
  }
  SL_TRY(router_addresses(s.routers));
  return Done{};
}

}  // namespace sightline::contract
