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

// What all commands of the programs share: how they begin, and how they fail.
struct Command {
  // With the program's name, for example "sightline agent".
  std::string_view name;
  // The text above the settings in --help.
  const char* introduction;
  // Reads the file of --config. Empty: the command accepts no file.
  std::function<Result<std::string>(const std::string& path)> read_file = {};
};

// Writes the last message of a command, after all its log lines. Returns `status`.
int fail(const Command& command, const std::string& message, int status);

// The result of begin().
struct StartResult {
  // The command must end with this status: help was requested, or a setting is wrong.
  std::optional<int> status;
  // The path of the configuration file as given. May be empty.
  std::string config_file;
  // See LoadedSettings.
  std::vector<std::string> left_out;
};
// Reads the settings of the table from all sources. Shows help or settings if requested.
StartResult begin(const Command& command, const Invocation& invocation,
                  contract::SettingTable& table);
// Logs the records that were left out. Call it after the log has started.
void tell_left_out(const StartResult& begun);

}  // namespace sightline::command
