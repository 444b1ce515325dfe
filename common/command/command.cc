// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/command/command.h"

#include <cstdio>

#include <unistd.h>

#include "common/base/line_writer.h"
#include "common/base/log.h"
#include "common/contract/load_settings.h"

namespace sightline::command {

int fail(const Command& command, const std::string& message, int status) {
  // The log lines explain the message, so they come first.
  flush_log();
  write_last_words(STDERR_FILENO, std::string(command.name) + ": " + message + "\n");
  return status;
}

StartResult begin(const Command& command, const Invocation& invocation,
                  contract::SettingTable& table) {
  const auto read_file = [&command](const std::string& path) -> Result<std::string> {
    if (command.read_file) return command.read_file(path);
    return client_error(ErrorCode::Unsupported, path + ": " + std::string(command.name) +
                                                    " takes no configuration file: use flags");
  };
  const auto loaded =
      contract::load_settings(table, {invocation.arguments, invocation.environment, read_file});
  if (!loaded.ok()) {
    // Status 2, as shells use for wrong arguments.
    return {.status = fail(command, loaded.error().message, 2), .config_file = {}, .left_out = {}};
  }
  if (loaded->help) {
    std::printf("%s%s", command.introduction, contract::help_text(table).c_str());
    return {.status = 0, .config_file = {}, .left_out = {}};
  }
  if (loaded->print_config) {
    std::fputs(contract::print_settings(table).c_str(), stdout);
    return {.status = 0, .config_file = {}, .left_out = {}};
  }
  return {.status = std::nullopt, .config_file = loaded->config_file, .left_out = loaded->left_out};
}

void tell_left_out(const StartResult& begun) {
  for (const std::string& problem : begun.left_out) {
    log(LogLevel::Error, "ignored an invalid worker in the configuration file",
        {{"problem", problem}});
  }
}

}  // namespace sightline::command
