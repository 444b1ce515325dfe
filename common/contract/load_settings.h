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

// The sources of settings, strongest first: arguments, environment, YAML file.
struct SettingSources {
  // The arguments after the subcommand.
  std::vector<std::string> arguments;
  // The whole environment. Names without the prefix are ignored.
  std::map<std::string, std::string> environment;
  // Reads the file that --config names. Its error message is shown unchanged.
  std::function<Result<std::string>(const std::string& path)> read_file;
};

// What the sources request besides settings.
struct LoadedSettings {
  // The path of the configuration file. Empty: there is no file.
  std::string config_file;
  bool help = false;
  bool print_config = false;
  // The invalid records of the file, each as an error message. They are left out, not refused: a
  // program may write the file, and a process that does not start serves no worker at all.
  std::vector<std::string> left_out;
};

// Fills the table from all sources. Refuses unknown flags and YAML keys, with the nearest known
// name. Errors name the setting, the source (flag, variable, file:line) and the allowed values.
// With --help it reads nothing else.
//
// Variables without a value do not count. Nor does "tcp://..." for a number: Kubernetes sets it as
// SIGHTLINE_PORT beside a Service named sightline. Lists in variables are separated by `;`. An
// invalid record of the file is no error, see left_out.
//
// Errors: InvalidArgument. They blame the client, here the person who typed the settings.
Result<LoadedSettings> load_settings(SettingTable& table, const SettingSources& sources);

// The text of --help: the flags by section, with meaning, default, range and environment name.
std::string help_text(const SettingTable& table);

// The text of --print-config: the settings as YAML, which loads to the same settings. A comment on
// each line names the source of the value.
std::string print_settings(const SettingTable& table);

}  // namespace sightline::contract
