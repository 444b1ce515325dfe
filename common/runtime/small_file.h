// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <string>

#include "common/base/result.h"

namespace sightline::runtime {

// The content of a file of at most bytes_max bytes. Waits for nobody: what is no regular file is
// refused. Errors: InvalidArgument, made to follow the file's name ("is no regular file").
Result<std::string> read_small_file(const std::string& path, std::size_t bytes_max);

}  // namespace sightline::runtime
