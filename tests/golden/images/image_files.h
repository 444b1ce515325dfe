// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <filesystem>
#include <string>

#include "common/base/bytes.h"

#include "tests/golden/images/table.h"

namespace sightline::golden {

// read_header as short text: "jpeg 40x24", "unknown", "refused" or "too large".
std::string header_seen(ByteView encoded);

// Compares the header reader with a table of what the engine's loader measured. Rows that the
// engine refuses for their pixels alone are left out: a header cannot tell.
Tally check_image_files(const std::filesystem::path& table, const std::filesystem::path& files);

}  // namespace sightline::golden
