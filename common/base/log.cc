// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/base/log.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <mutex>

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include "common/base/line_writer.h"
#include "common/base/printable.h"

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

// Unquoted values must be one word, so a reader can split a line at blanks and equals signs.
bool is_plain(std::string_view value) {
  if (value.empty()) return false;
  for (const char c : value) {
    if (c <= ' ' || c == '"' || c == '\\' || c == '=' || c == 127) return false;
  }
  return true;
}

void append_text_value(std::string& line, std::string_view value) {
  if (is_plain(value)) {
    line += value;
    return;
  }
  line += '"';
  while (!value.empty()) {
    const std::size_t end = std::min(value.find_first_of("\"\\"), value.size());
    append_printable(line, value.substr(0, end));
    value.remove_prefix(end);
    if (value.empty()) break;
    // append_printable() does not escape quotes and backslashes.
    line += {'\\', value.front()};
    value.remove_prefix(1);
  }
  line += '"';
}

// JSON has fewer escapes than append_printable() writes, so their backslashes are escaped too.
void append_json_string(std::string& line, std::string_view value) {
  std::string printable;
  append_printable(printable, value);
  line += '"';
  for (const char c : printable) {
    if (c == '"' || c == '\\') line += '\\';
    line += c;
  }
  line += '"';
}

std::string text_line(std::string_view message, const std::vector<LogField>& fields) {
  std::string line;
  append_printable(line, message);
  for (const LogField& field : fields) {
    line += ' ';
    line += field.key;
    line += '=';
    append_text_value(line, field.value);
  }
  return line;
}

// The members from "message" on. The pattern adds the braces and the members before.
std::string json_members(std::string_view message, const std::vector<LogField>& fields) {
  std::string line = "\"message\":";
  append_json_string(line, message);
  for (const LogField& field : fields) {
    line += ',';
    append_json_string(line, field.key);
    line += ':';
    if (field.is_text) {
      append_json_string(line, field.value);
    } else {
      line += field.value;
    }
  }
  return line;
}

constexpr char kTextPattern[] = "%Y-%m-%dT%H:%M:%S.%fZ %l %v";
constexpr char kJsonPattern[] = R"({"time":"%Y-%m-%dT%H:%M:%S.%fZ","level":"%l",%v})";

// Also the thread that writes lines reads it, for its line about dropped ones.
std::atomic<LogFormat>& log_format() {
  static std::atomic<LogFormat> format{LogFormat::Text};
  return format;
}

const char* pattern() { return log_format() == LogFormat::Json ? kJsonPattern : kTextPattern; }

std::string format_line(std::string_view message, const std::vector<LogField>& fields) {
  return log_format() == LogFormat::Json ? json_members(message, fields)
                                         : text_line(message, fields);
}

// Formatted like a log line, because it appears between log lines.
std::string dropped_line(std::uint64_t count) {
  spdlog::pattern_formatter formatter(pattern(), spdlog::pattern_time_type::utc);
  const std::string text = format_line(
      std::to_string(count) + (count == 1 ? " line was" : " lines were") + " dropped", {});
  spdlog::memory_buf_t line;
  formatter.format(spdlog::details::log_msg("", spdlog::level::warn, text), line);
  return fmt::to_string(line);
}

// Formats lines and passes them to the thread that writes them.
class QueueSink : public spdlog::sinks::base_sink<std::mutex> {
 public:
  LineWriter& writer() { return writer_; }

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    writer_.write({line.data(), line.size()});
  }
  void flush_() override {}

  LineWriter writer_{{.fd = STDERR_FILENO, .thread_name = "sl-log", .dropped_line = dropped_line}};
};

struct Log {
  Log() { logger.set_pattern(pattern(), spdlog::pattern_time_type::utc); }

  const std::shared_ptr<QueueSink> sink = std::make_shared<QueueSink>();
  spdlog::logger logger{"sightline", sink};
};

// Never replaced and never destroyed, because threads log until the process ends.
Log& the_log() {
  static Log* const only = [] {
    auto made = std::make_unique<Log>();
    // An exit flushes the lines that wait, since no destructor does.
    std::atexit(flush_log);
    return made.release();
  }();
  return *only;
}

spdlog::logger& logger() { return the_log().logger; }

}  // namespace

LogField::LogField(std::string k, double v)
    : key(std::move(k)), value(fmt::format("{:.6g}", v)), is_text(!std::isfinite(v)) {}

Result<Done> set_log_level(std::string_view level) {
  // from_str() maps unknown words to "off", so the words are compared too.
  const auto parsed = spdlog::level::from_str(std::string(level));
  if (level != "debug" && level != "info" && level != "warn" && level != "error") {
    return client_error(
        ErrorCode::InvalidArgument,
        "log level must be debug, info, warn or error, not '" + std::string(level) + "'");
  }
  logger().set_level(parsed);
  return Done{};
}

Result<Done> start_log(std::string_view level, std::string_view format) {
  if (format != "text" && format != "json") {
    return client_error(ErrorCode::InvalidArgument,
                        "log format must be text or json, not '" + std::string(format) + "'");
  }
  log_format() = format == "json" ? LogFormat::Json : LogFormat::Text;
  logger().set_pattern(pattern(), spdlog::pattern_time_type::utc);
  return set_log_level(level);
}

bool log_enabled(LogLevel level) { return logger().should_log(level_of(level)); }

void log(LogLevel level, std::string_view message, const std::vector<LogField>& fields) {
  if (!log_enabled(level)) return;
  logger().log(level_of(level), format_line(message, fields));
}

std::uint64_t log_dropped_total() { return the_log().sink->writer().dropped_total(); }

void flush_log() { the_log().sink->writer().flush(kLastLinesTime); }

}  // namespace sightline
