// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"
#include "common/contract/names.h"
#include "common/contract/setting_table.h"

// How the two roles of a router find each other when they are processes of their own: here the
// settings' meaning, unit and default; in selection_settings.cc their flags, ranges and help.
namespace sightline::contract {

// What a process does: takes requests of clients, chooses workers for them, or both.
enum class Roles { Both, Frontend, Router };

constexpr bool is_frontend(Roles roles) { return roles != Roles::Router; }
constexpr bool is_router(Roles roles) { return roles != Roles::Frontend; }

struct SelectionSettings {
  // The selection API of the router role.
  std::string host = "127.0.0.1";
  std::uint16_t port = kSelectionPort;  // 0: any free port
  // Router role: the bearer tokens of which a request must bring one; empty: none is asked for.
  // Frontend role alone: the first of them is the one it brings.
  std::string token_file;
  // Of a process with the frontend role alone: "http://HOST[:PORT]" with commas between. A name
  // with several addresses means a router at each.
  std::string routers;
  std::chrono::milliseconds poll_interval{1'000};   // of a frontend: what its routers serve
  std::chrono::milliseconds renew_interval{5'000};  // of a frontend: what it has reserved
};

void add_roles(SettingTable& table, Roles& roles);
void add_selection(SettingTable& table, SelectionSettings& s);

inline constexpr std::size_t kRoutersMax = 64;

// A router of SelectionSettings::routers.
struct RouterAddress {
  std::string host;  // without the brackets of an IPv6 address
  std::uint16_t port = kSelectionPort;

  bool operator==(const RouterAddress&) const = default;
};
// Errors: InvalidArgument for text that is no list of at most kRoutersMax such URLs.
Result<std::vector<RouterAddress>> router_addresses(std::string_view urls);

// Relations of roles and settings. Errors: InvalidArgument, naming the setting and the fix.
Result<Done> check_selection(Roles roles, const SelectionSettings& s);

}  // namespace sightline::contract
