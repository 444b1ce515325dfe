// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "tests/support/paths.h"

namespace sightline::test {

std::string in_sources(std::string_view path) {
  return std::string(SL_SOURCE_DIR "/").append(path);
}

std::string in_build(std::string_view path) { return std::string(SL_BINARY_DIR "/").append(path); }

}  // namespace sightline::test
