// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "common/contract/setting_table.h"

namespace sightline::contract {

// Where settings come from, strongest first: arguments, environment, YAML file.
struct SettingSources {
  std::vector<std::string> arguments;              // after the subcommand
  std::map<std::string, std::string> environment;  // whole; names without the prefix are ignored
  // Reads the file that --config names. Its error message is shown as it is.
  std::function<Result<std::string>(const std::string& path)> read_file;
};

// What was asked for besides settings.
struct LoadedSettings {
  std::string config_file;  // empty: none
  bool help = false;
  bool print_config = false;
  // Records of the file that are wrong, each in the words of an error, and are left out: a file may
  // come from a program, and a process that does not start serves none of the others.
  std::vector<std::string> left_out;
};

// Fills the table from all sources. Unknown flags and YAML keys are refused with the nearest known
// name; errors name the setting, the source (flag, variable, file:line) and what is allowed. With
// --help nothing else is looked at. Variables without a value, and "tcp://..." for a number (what
// Kubernetes sets as SIGHTLINE_PORT beside a Service named sightline), count as not set; lists in
// variables are separated by ';'. A wrong record of the file is no error: see left_out.
// Errors: InvalidArgument, blamed on the client (the person who typed it).
Result<LoadedSettings> load_settings(SettingTable& table, const SettingSources& sources);

// For --help: the flags by section, with meaning, default, range and environment name.
std::string help_text(const SettingTable& table);

// For --print-config: the settings as YAML that loads to the same settings, each line with the
// source of its value as a comment.
std::string print_settings(const SettingTable& table);

}  // namespace sightline::contract
