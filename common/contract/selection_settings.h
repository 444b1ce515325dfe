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

// How frontends and routers find each other if they are separate processes. This file gives the
// settings' meaning, unit and default. selection_settings.cc has their flags, ranges and help
// texts.
namespace sightline::contract {

// What a process does: accept requests from clients, choose workers for them, or both.
enum class Roles { Both, Frontend, Router };

constexpr bool is_frontend(Roles roles) { return roles != Roles::Router; }
constexpr bool is_router(Roles roles) { return roles != Roles::Frontend; }

// The selection API and its clients.
struct SelectionSettings {
  // The address of the selection API, in the router role.
  std::string host = "127.0.0.1";
  // 0: any free port.
  std::uint16_t port = kSelectionPort;
  // In the router role: bearer tokens. A request must carry one of them. Empty: a request needs no
  // token. In the frontend role alone: the frontend sends the first token of the file.
  std::string token_file;
  // For a process with only the frontend role: "http://HOST[:PORT]", separated by commas. A name
  // with several addresses means one router at each.
  std::string routers;
  // How often a frontend asks what its routers serve.
  std::chrono::milliseconds poll_interval{1'000};
  // How often a frontend renews its reservations.
  std::chrono::milliseconds renew_interval{5'000};
};

// These add rows to the table. The rows are bound to the field, which must outlive the table.
void add_roles(SettingTable& table, Roles& roles);
void add_selection(SettingTable& table, SelectionSettings& s);

// The most routers that a frontend may have.
inline constexpr std::size_t kRoutersMax = 64;

// A router of SelectionSettings::routers.
struct RouterAddress {
  // Without the brackets of an IPv6 address.
  std::string host;
  std::uint16_t port = kSelectionPort;

  bool operator==(const RouterAddress&) const = default;
};
// Errors: InvalidArgument for any text but a list of at most kRoutersMax of these URLs.
Result<std::vector<RouterAddress>> router_addresses(std::string_view urls);

// Checks roles and settings together. Errors: InvalidArgument that names the setting and the
// remedy.
Result<Done> check_selection(Roles roles, const SelectionSettings& s);

}  // namespace sightline::contract
