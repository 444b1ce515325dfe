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

// One fact of a log line, written as key=value. Values with blanks, quotes, backslashes, equals
// signs or characters beyond ASCII are quoted. Unprintable characters (printable.h) are escaped, so
// a client's input cannot forge a line or control a terminal.
struct LogField {
  std::string key;
  std::string value;

  // The constructors format the value: text as it is, numbers in decimal (doubles with 6 digits),
  // booleans as true and false.
  LogField(std::string k, std::string v) : key(std::move(k)), value(std::move(v)) {}
  LogField(std::string k, std::string_view v) : key(std::move(k)), value(v) {}
  LogField(std::string k, const char* v) : key(std::move(k)), value(v) {}
  LogField(std::string k, bool v) : key(std::move(k)), value(v ? "true" : "false") {}
  LogField(std::string k, double v);
  template <class Integer>
  requires std::is_integral_v<Integer> LogField(std::string k, Integer v)
      : key(std::move(k)), value(std::to_string(v)) {}
};

// Sets the level: "debug", "info" (the default), "warn" or "error". Errors: InvalidArgument for
// another word. From any thread, at any time.
Result<Done> start_log(std::string_view level);

// True if lines of this level are written. Check it before you make expensive fields.
bool log_enabled(LogLevel level);

// Writes one line to standard error: time in UTC, level, constant message, fields. From any thread.
// Never waits for the reader: lines that find no room are dropped, counted and reported in a later
// line. Lines from before the process ends are still written, if a reader takes them within
// kLastLinesTime. Never pass prompts, image bytes, tokens or full URLs.
void log(LogLevel level, std::string_view message, const std::vector<LogField>& fields = {});

// The lines dropped so far.
std::uint64_t log_dropped_total();
// Waits until all lines so far are written, at most kLastLinesTime.
void flush_log();

}  // namespace sightline
