// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

namespace sightline::https {

// Makes cpprestsdk start four threads instead of 40, and creates its global objects, which its
// first users would otherwise create on several threads. Call it before any use of the library.
// Further calls have no effect.
// Thread safety: from any thread.
void prepare_cpprest();

}  // namespace sightline::https
