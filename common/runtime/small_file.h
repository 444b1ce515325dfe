// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <string>

#include "common/base/result.h"

namespace sightline::runtime {

// Reads a file of at most bytes_max bytes. Never waits: it refuses anything but a regular
// file, for example a pipe. Errors: InvalidArgument, with a message that continues the file's name
// ("is not a regular file").
Result<std::string> read_small_file(const std::string& path, std::size_t bytes_max);

}  // namespace sightline::runtime
