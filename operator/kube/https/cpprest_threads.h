// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

namespace sightline::https {

// Gives cpprestsdk four threads instead of the 40 it would start, and makes what its first users,
// perhaps several threads, would make. Whoever uses the library calls this before; further calls
// do nothing. Thread safety: from any thread.
void prepare_cpprest();

}  // namespace sightline::https
