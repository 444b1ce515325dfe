// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <span>

// What nobody can guess: of the kernel's generator. Thread safety: from any thread.
namespace sightline::runtime {

// At most 256 bytes.
void fill_unguessable(std::span<std::uint8_t> bytes);
std::uint64_t number_nobody_knows();

}  // namespace sightline::runtime
