// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"
#include "common/command/invocation.h"
#include "common/contract/setting_table.h"

namespace sightline::command {

// What all commands have in common: how they begin, and how they fail.
struct Command {
  std::string_view name;     // with the program's: "sightline agent"
  const char* introduction;  // above the settings in --help
  // What --config names; empty: the command knows no such file.
  std::function<Result<std::string>(const std::string& path)> read_file = {};
};

// The last words of a command, behind all of its log lines; gives the status.
int fail(const Command& command, const std::string& message, int status);

struct Begun {
  std::optional<int>
      status;               // with which the command ends at once: help was asked for, or a mistake
  std::string config_file;  // as given; may be empty
  std::vector<std::string> left_out;  // as LoadedSettings has it
};
// Reads the settings of the table from all their sources, and shows help or settings if asked to.
Begun begin(const Command& command, const Invocation& invocation, contract::SettingTable& table);
// Logs what was left out, for a log that has been started.
void tell_left_out(const Begun& begun);

}  // namespace sightline::command
