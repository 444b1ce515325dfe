// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/clock.h"
#include "common/base/result.h"
#include "common/contract/worker_spec.h"

namespace sightline::fleet {

// Without the line end.
inline constexpr std::size_t kApiKeyBytesMax = 4096;

// Returns the key in the content of a key file. The file has one line, whose characters must be
// permitted in an HTTP header. The line end is removed. Errors never contain the content. Pure.
Result<std::string> parse_api_key(std::string_view content);

// The workers' API keys for the router's own calls, read from the files that the workers name. Keys
// are used for nothing else and shown nowhere.
// Thread safety: one thread at a time.
class ApiKeys {
 public:
  // The least pause between two readings of a file, no matter how often a worker refuses its key.
  static constexpr Duration kRereadAfter = std::chrono::seconds(1);

  // A key, or why there is no key. An unusable file is read again later. Only regular files are
  // read, so no reading ever waits.
  struct KeyState {
    // Empty: there is no key.
    std::string key;
    // Why not, empty if there is a key or no file is configured.
    std::string problem;
  };
  // Returns the key of the worker's file. The file is read at the first call, and again while it
  // cannot be used.
  const KeyState& of(const contract::WorkerSpec& spec, Instant now);
  // The worker refused its key. Reads the file again, because the key may have been replaced.
  void refused(const contract::WorkerSpec& spec, Instant now);
  // Drops the files that no worker of the list names.
  void keep(const std::vector<contract::WorkerSpec>& workers);

 private:
  // What was read of a file.
  struct File {
    KeyState key;
    Instant read_at;
  };
  // Reads the file and logs a new problem.
  static void read(const std::string& path, File& file, Instant now);

  const KeyState none_{};
  std::map<std::string, File> files_;  // by path
};

}  // namespace sightline::fleet
