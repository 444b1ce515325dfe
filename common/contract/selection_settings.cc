// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/contract/selection_settings.h"

#include <string_view>

namespace sightline::contract {
namespace {

Error invalid(const std::string& message) {
  return client_error(ErrorCode::InvalidArgument, message);
}

bool is_loopback(std::string_view host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

}  // namespace

void add_selection(SettingTable& table, SelectionSettings& s) {
  table.add_text({"selection.host", "selection-host", "ADDRESS",
                  "Address of the selection API of the router role. One that other machines reach "
                  "needs selection.token_file."},
                 s.host);
  table.add_integer<std::uint16_t>(
      {"selection.port", "selection-port", "N",
       "Port of the selection API, which frontends and others ask. 0 takes any free one."},
      s.port, {0, 65535});
  table.add_text({"selection.token_file", "selection-token-file", "FILE",
                  "Bearer tokens of the selection API, one a line, read again when it changes; any "
                  "of them is let in."},
                 s.token_file);
}

Result<Done> check_selection(const SelectionSettings& s) {
  if (s.token_file.empty() && !is_loopback(s.host)) {
    return invalid("selection.host " + s.host +
                   " is reached from other machines, where anybody could book load: give "
                   "--selection-token-file FILE, or --selection-host 127.0.0.1");
  }
  return Done{};
}

}  // namespace sightline::contract
