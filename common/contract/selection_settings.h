// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <string>

#include "common/base/result.h"
#include "common/contract/names.h"
#include "common/contract/setting_table.h"

// How other processes ask the router role: here the settings' meaning, unit and default; in
// selection_settings.cc their flags, ranges and help.
namespace sightline::contract {

struct SelectionSettings {
  // The selection API of the router role.
  std::string host = "127.0.0.1";
  std::uint16_t port = kSelectionPort;  // 0: any free port
  // The bearer tokens of which a request must bring one; empty: none is asked for.
  std::string token_file;
};

void add_selection(SettingTable& table, SelectionSettings& s);

// Relations that no single setting can check. Errors: InvalidArgument, naming the fix.
Result<Done> check_selection(const SelectionSettings& s);

}  // namespace sightline::contract
