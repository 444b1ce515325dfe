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

inline constexpr std::size_t kApiKeyBytesMax = 4096;  // without the line end

// The key in the content of its file: one line whose characters may stand in a header; the line
// end is left out. Errors never hold the content. Pure.
Result<std::string> parse_api_key(std::string_view content);

// The workers' API keys, read from the workers' files for the router's own calls. Nothing else is
// done with them: they are shown nowhere.
// Thread safety: none; one thread.
class ApiKeys {
 public:
  // A file is not read again sooner, however often its key is refused.
  static constexpr Duration kRereadAfter = std::chrono::seconds(1);

  // Files that cannot be used are looked for again; a file that is no regular one is not waited
  // for.
  struct Key {
    std::string key;      // empty: there is none
    std::string problem;  // why; empty: there is one, or none is configured
  };
  // The key of the worker's file, which is read when it is asked for first, and again as long as it
  // cannot be used.
  const Key& of(const contract::WorkerSpec& spec, Instant now);
  // The worker refused its key: reads its file again.
  void refused(const contract::WorkerSpec& spec, Instant now);
  // Forgets the files that none of these names.
  void keep(const std::vector<contract::WorkerSpec>& workers);

 private:
  struct File {
    Key key;
    Instant read_at;
  };
  static void read(const std::string& path, File& file, Instant now);

  const Key none_{};
  std::map<std::string, File> files_;  // by path
};

}  // namespace sightline::fleet
