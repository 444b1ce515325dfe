// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "common/base/result.h"

namespace sightline::fleet {

// The largest configuration file. It is twenty times what a thousand workers need.
inline constexpr std::size_t kConfigBytesMax = 4 << 20;

// Reads the whole file. Errors: NotFound, TooLarge, Unavailable. They name the file.
Result<std::string> read_config_file(const std::string& file);

// Watches a file for new content. It watches the directory, not the file. So it also notices that
// the file is replaced by rename, or by a swapped link as in a mounted ConfigMap. It does not
// notice if a file elsewhere, to which the file is a link, is rewritten there.
// Thread safety: all methods from any thread.
class ConfigWatch {
 public:
  // The file and the times of a watch.
  struct Options {
    std::string file;
    // The quiet time after the last event. It keeps the watch from reading a half-written file.
    std::chrono::milliseconds debounce{100};
  };

  // Calls `changed` on the watch's own thread with new content. It is not called for the content at
  // the start, nor if an event left the content unchanged. A file that cannot be read any more is
  // reported once, as its Error.
  // Errors: those of read_config_file(), and Unavailable if the directory cannot be watched.
  static Result<std::unique_ptr<ConfigWatch>> create(
      Options options, std::function<void(Result<std::string>)> changed);
  struct State;
  // Called by create().
  explicit ConfigWatch(std::unique_ptr<State> state);
  // Ends the thread, then `changed` never runs again.
  ~ConfigWatch();

  // Reads the file on the watch's thread, as if it had changed. If the content is unchanged, the
  // log says so.
  void reread();

  ConfigWatch(const ConfigWatch&) = delete;
  ConfigWatch& operator=(const ConfigWatch&) = delete;

 private:
  std::unique_ptr<State> state_;
};

}  // namespace sightline::fleet
