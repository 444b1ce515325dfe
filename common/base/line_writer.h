// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "common/base/clock.h"

namespace sightline {

// The most text of one writer that waits for the reader. As much again may be on its way out.
inline constexpr std::size_t kHeldLineBytesMax = 4U << 20U;
// How long a writer that ends waits for a reader of its last lines.
inline constexpr Duration kLastLinesTime = std::chrono::seconds(1);

// Writes lines to a file descriptor on a thread of its own, so a slow reader never makes a caller
// wait. Lines come out whole and in order, within about 10 ms. It drops and counts lines when the
// reader is too slow or has gone, or when the disk is full. The descriptor stays open and
// unchanged, because other processes may share it.
// Thread safety: all methods from any thread.
class LineWriter {
 public:
  struct Options {
    int fd = -1;
    std::string thread_name;
    // The limit of lines that wait, in bytes. Lines above it are dropped.
    std::size_t held_bytes_max = kHeldLineBytesMax;
    // Makes the line that reports this number of dropped lines, in their place. Empty: no line
    // reports them.
    std::function<std::string(std::uint64_t)> dropped_line;
  };

  // Ends the process if the system starts no thread for it, see end_without_thread().
  explicit LineWriter(Options options);
  // Ends the thread when all lines are written, at the latest after about kLastLinesTime.
  ~LineWriter();
  LineWriter(const LineWriter&) = delete;
  LineWriter& operator=(const LineWriter&) = delete;

  // Takes whole lines, each with its end of line. Never waits for the reader.
  void write(std::string_view lines);
  // Waits until all lines so far are written or dropped. Returns false if that takes longer than
  // time_max.
  bool flush(Duration time_max);
  // The lines dropped so far.
  [[nodiscard]] std::uint64_t dropped_total() const;

 private:
  struct State;
  // Shared with the thread, which may outlive the writer.
  std::shared_ptr<State> state_;
};

// Ends the process with status 1. First it writes a message to the descriptor, which names the
// thread that the system did not start, the reason and the remedy.
[[noreturn]] void end_without_thread(int fd, std::string_view thread, std::string_view why);

// Writes the text on the calling thread, for the last message of a process. Returns after
// kLastLinesTime even if nothing reads the descriptor.
void write_last_words(int fd, std::string_view text);

}  // namespace sightline
