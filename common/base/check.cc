// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/base/check.h"

#include <cstdlib>
#include <string>

#include <unistd.h>

#include "common/base/line_writer.h"
#include "common/base/log.h"

namespace sightline {

void die(std::string_view message) {
  // The lines before the failure often explain it, so they come first.
  flush_log();
  write_last_words(STDERR_FILENO, std::string(message) + "\n");
  std::abort();
}

void fail_check(const char* file, int line, const char* condition) {
  die(std::string(file) + ":" + std::to_string(line) + ": check failed: " + condition);
}

}  // namespace sightline
