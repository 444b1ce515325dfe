// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/result.h"

namespace sightline {

enum class LogLevel { Debug, Info, Warn, Error };

// One fact of a log line, written as key=value; values with blanks, quotes or what is not ASCII are
// quoted, and what is not printable (printable.h) escaped: a line is text, whatever a client sent.
struct LogField {
  std::string key;
  std::string value;

  LogField(std::string k, std::string v) : key(std::move(k)), value(std::move(v)) {}
  LogField(std::string k, std::string_view v) : key(std::move(k)), value(v) {}
  LogField(std::string k, const char* v) : key(std::move(k)), value(v) {}
  LogField(std::string k, bool v) : key(std::move(k)), value(v ? "true" : "false") {}
  LogField(std::string k, double v);
  template <class Integer>
  requires std::is_integral_v<Integer> LogField(std::string k, Integer v)
      : key(std::move(k)), value(std::to_string(v)) {}
};

// Sets the level: "debug", "info" (what it is without a call), "warn" or "error". From any thread,
// at any time.
Result<Done> start_log(std::string_view level);

// True if lines of this level are written: guards the making of expensive fields.
bool log_enabled(LogLevel level);

// Says one line on standard error: time, level, constant message, fields. Thread-safe. Never waits
// for whoever reads: lines that find no room are dropped, counted and told of in a line. What was
// said before the process ends comes out, if somebody reads it within kLastLinesTime. Never pass
// prompts, image bytes, tokens or full URLs.
void log(LogLevel level, std::string_view message, const std::vector<LogField>& fields = {});

// Lines dropped so far.
std::uint64_t log_dropped_total();
// Waits, for kLastLinesTime at most, until all lines so far are out.
void flush_log();

}  // namespace sightline
