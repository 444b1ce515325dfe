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

// A configuration file is refused beyond this: twenty times what a thousand workers need.
inline constexpr std::size_t kConfigBytesMax = 4 << 20;

// The file's content. Errors: NotFound, TooLarge, Unavailable, naming the file.
Result<std::string> read_config_file(const std::string& file);

// Watches a file for new content, also where it is replaced by rename or, as in mounted
// ConfigMaps, by a swapped link: the directory is watched, not the file. A link to a file elsewhere
// that is rewritten there is not noticed.
// Thread safety: all methods from any thread.
class ConfigWatch {
 public:
  struct Options {
    std::string file;
    // Quiet time after the last event, so that a file is not read half-written.
    std::chrono::milliseconds debounce{100};
  };

  // Calls `changed` on the watch's own thread with the new content; not for the content that was
  // there at the start, and not when an event left the content as it was. A file that cannot be
  // read any more is reported once, as its Error. Errors: those of read_config_file; Unavailable
  // when the directory cannot be watched.
  static Result<std::unique_ptr<ConfigWatch>> create(
      Options options, std::function<void(Result<std::string>)> changed);
  struct State;
  explicit ConfigWatch(std::unique_ptr<State> state);  // by create()
  ~ConfigWatch();  // ends the thread; no call of `changed` runs after it

  // Reads the file as if it had changed, on the watch's thread; content that is as it was is said
  // so in the log.
  void reread();

  ConfigWatch(const ConfigWatch&) = delete;
  ConfigWatch& operator=(const ConfigWatch&) = delete;

 private:
  std::unique_ptr<State> state_;
};

}  // namespace sightline::fleet
