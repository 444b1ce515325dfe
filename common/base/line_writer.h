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

// Text that waits for its reader, of one writer; as much again may be on its way out.
inline constexpr std::size_t kHeldLineBytesMax = 4U << 20U;
// For what is held when a writer ends and nobody reads.
inline constexpr Duration kLastLinesTime = std::chrono::seconds(1);

// Writes lines to a file descriptor on a thread of its own, so that whoever has something to say
// never waits for whoever reads it. Lines come out whole and in order, within some 10 ms. When the
// reader is too slow, has gone, or the disk is full, lines are dropped and counted. The descriptor
// stays open and is not changed: other processes may share it.
// Thread safety: all methods from any thread.
class LineWriter {
 public:
  struct Options {
    int fd = -1;
    std::string thread_name;
    std::size_t held_bytes_max = kHeldLineBytesMax;
    // The line that tells of so many dropped ones, where they would have stood; none: untold.
    std::function<std::string(std::uint64_t)> dropped_line;
  };

  // Without a thread for it the process ends, see end_without_thread().
  explicit LineWriter(Options options);
  // Ends the thread when all is written, or after kLastLinesTime.
  ~LineWriter();
  LineWriter(const LineWriter&) = delete;
  LineWriter& operator=(const LineWriter&) = delete;

  // Takes whole lines, each with its end of line.
  void write(std::string_view lines);
  // Waits until all lines so far are out or dropped. False: not within that time.
  bool flush(Duration time_max);
  // Lines dropped so far.
  [[nodiscard]] std::uint64_t dropped_total() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// Ends the process with status 1, with last words on the descriptor that name the thread which the
// system does not start, its reason and the remedy.
[[noreturn]] void end_without_thread(int fd, std::string_view thread, std::string_view why);

// Writes the text from the calling thread, for the last words of a process; gives up after
// kLastLinesTime.
void write_last_words(int fd, std::string_view text);

}  // namespace sightline
