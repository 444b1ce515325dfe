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

// Text: "TIME LEVEL MESSAGE key=value ...", times in UTC. Values with blanks, quotes, backslashes,
// equals signs or characters beyond ASCII are quoted.
// Json: one object per line with the members time (RFC 3339, UTC), level, message and one member
// per field. Numbers and booleans are not quoted.
// In both, unprintable characters (printable.h) are escaped in the same way, so a client's input
// cannot forge a line or control a terminal. In Json the escape itself is text: "\\n".
enum class LogFormat { Text, Json };

// One fact of a log line. The key is a plain word, and not "time", "level" or "message".
struct LogField {
  std::string key;
  std::string value;
  // False for numbers and booleans. True for doubles that JSON has no number for.
  bool is_text = true;

  // The constructors format the value: text as it is, numbers in decimal (doubles with 6 digits),
  // booleans as true and false.
  LogField(std::string k, std::string v) : key(std::move(k)), value(std::move(v)) {}
  LogField(std::string k, std::string_view v) : key(std::move(k)), value(v) {}
  LogField(std::string k, const char* v) : key(std::move(k)), value(v) {}
  LogField(std::string k, bool v)
      : key(std::move(k)), value(v ? "true" : "false"), is_text(false) {}
  LogField(std::string k, double v);
  template <class Integer>
  requires std::is_integral_v<Integer> LogField(std::string k, Integer v)
      : key(std::move(k)), value(std::to_string(v)), is_text(false) {}
};

// Sets the level: "debug", "info" (the default), "warn" or "error". Errors: InvalidArgument for
// another word. From any thread, at any time.
Result<Done> set_log_level(std::string_view level);

// Sets the level and the format: "text" (the default) or "json". Errors: InvalidArgument for
// another word. Call it before other threads log.
Result<Done> start_log(std::string_view level, std::string_view format = "text");

// True if lines of this level are written. Check it before you make expensive fields.
bool log_enabled(LogLevel level);

// Writes one line to standard error: time, level, constant message, fields. From any thread.
// Never waits for the reader: lines that find no room are dropped, counted and reported in a later
// line. Lines from before the process ends are still written, if a reader takes them within
// kLastLinesTime. Never pass prompts, image bytes, tokens or full URLs.
void log(LogLevel level, std::string_view message, const std::vector<LogField>& fields = {});

// The lines dropped so far.
std::uint64_t log_dropped_total();
// Waits until all lines so far are written, at most kLastLinesTime.
void flush_log();

}  // namespace sightline
