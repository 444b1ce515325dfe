// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>

namespace sightline::cli {

// Raises the process's limit of open files as far as it may go, at most to a million, and says how
// far that is. Call before threads start.
std::size_t raise_open_files();

// Warns if that is too little to follow the events of so many engines and serve requests beside.
void check_open_files(std::size_t limit, std::size_t engines);

}  // namespace sightline::cli
