// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "common/base/result.h"

namespace sightline::fleet {

// Watches a file for new content, also where it is replaced by rename or, as in mounted
// ConfigMaps, by a swapped link: the directory is watched, not the file.
// Thread safety: stop() from any thread.
class ConfigWatch {
 public:
  struct Options {
    std::string file;
    std::chrono::milliseconds debounce{100};  // quiet time after the last event
  };

  // Calls `changed` on the watch's own thread with the new content; not for the content that was
  // there at the start, and not when an event left the content as it was. An unreadable file is
  // reported as its Error. Errors: NotFound, Unavailable.
  static Result<std::unique_ptr<ConfigWatch>> create(
      Options options, std::function<void(Result<std::string>)> changed);
  ~ConfigWatch();  // as stop()

  void stop();

 private:
  struct State;
  explicit ConfigWatch(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace sightline::fleet
