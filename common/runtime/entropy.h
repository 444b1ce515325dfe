// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <span>

// Random bytes of the kernel's generator (getentropy(2)), for secrets and for ids that others must
// not guess.
// Thread safety: from any thread.
namespace sightline::runtime {

// Fills at most 256 bytes, the limit of getentropy(2). More end the process, as does a failure.
void fill_unguessable(std::span<std::uint8_t> bytes);
// 64 random bits. A failure ends the process.
std::uint64_t secure_random_u64();

}  // namespace sightline::runtime
