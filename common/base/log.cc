// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/base/log.h"

#include <memory>

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

namespace sightline {
namespace {

spdlog::level::level_enum level_of(LogLevel level) {
  switch (level) {
    case LogLevel::Debug:
      return spdlog::level::debug;
    case LogLevel::Info:
      return spdlog::level::info;
    case LogLevel::Warn:
      return spdlog::level::warn;
    case LogLevel::Error:
      return spdlog::level::err;
  }
  return spdlog::level::info;
}

bool is_plain(std::string_view value) {
  if (value.empty()) return false;
  for (const char c : value) {
    if (c <= ' ' || c == '"' || c == '\\' || c == '=' || c == 127) return false;
  }
  return true;
}

void append_value(std::string& line, std::string_view value) {
  if (is_plain(value)) {
    line += value;
    return;
  }
  line += '"';
  for (const char c : value) {
    if (c == '"' || c == '\\') line += '\\';
    if (c == '\n') {
      line += "\\n";
    } else if (static_cast<unsigned char>(c) < ' ' || c == 127) {
      line += '?';
    } else {
      line += c;
    }
  }
  line += '"';
}

// Never replaced: threads may be logging when the level is set.
spdlog::logger& logger() {
  static const auto only = [] {
    auto made = std::make_shared<spdlog::logger>("sightline",
                                                 std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made->set_pattern("%Y-%m-%dT%H:%M:%S.%fZ %l %v", spdlog::pattern_time_type::utc);
    made->flush_on(spdlog::level::debug);
    return made;
  }();
  return *only;
}

}  // namespace

LogField::LogField(std::string k, double v) : key(std::move(k)), value(fmt::format("{:.6g}", v)) {}

Result<Done> start_log(std::string_view level) {
  const auto parsed = spdlog::level::from_str(std::string(level));
  if (level != "debug" && level != "info" && level != "warn" && level != "error") {
    return client_error(
        ErrorCode::InvalidArgument,
        "log level must be debug, info, warn or error, not '" + std::string(level) + "'");
  }
  logger().set_level(parsed);
  return Done{};
}

bool log_enabled(LogLevel level) { return logger().should_log(level_of(level)); }

void log(LogLevel level, std::string_view message, const std::vector<LogField>& fields) {
  if (!log_enabled(level)) return;
  std::string line(message);
  for (const LogField& field : fields) {
    line += ' ';
    line += field.key;
    line += '=';
    append_value(line, field.value);
  }
  logger().log(level_of(level), line);
}

}  // namespace sightline
