// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <cstdint>

// What a peer may send at most.
namespace sightline::selection_json {

inline constexpr std::size_t kTokensMax = 1 << 22;  // of a prompt, and blocks of it
inline constexpr std::int64_t kImageTokenMax = std::int64_t{1} << 40U;  // positions of images
inline constexpr double kFirstTokenSecondsMax = 86'400;                 // a day
inline constexpr std::size_t kMediaMax = 10'000;                        // items of a prompt
inline constexpr std::size_t kNameBytesMax = 1024;       // a worker's, adapter's, media item's
inline constexpr std::size_t kTriedMax = 4096;           // workers
inline constexpr std::size_t kMessageBytesMax = 8192;    // of an error
inline constexpr std::size_t kReasonBytesMax = 4096;     // why a router is not ready
inline constexpr std::size_t kExplainedMax = 65'536;     // workers and ranks of an explanation
inline constexpr std::uint64_t kLeaseSecondsMax = 600;   // of lease_s
inline constexpr std::uint64_t kBookedMax = 1 << 30;     // tokens or blocks of a reservation: as
                                                         // many as the largest body may hold
inline constexpr std::uint64_t kBlockSizeMax = 1 << 20;  // tokens
inline constexpr std::size_t kHeldMax = 4096;            // reservations of one part of a renewal
inline constexpr std::size_t kNotesMax = 1024;           // of one message
inline constexpr std::size_t kAliveMax = 4096;           // workers whose answers go on
inline constexpr std::size_t kModelsMax = 16'384;        // served

}  // namespace sightline::selection_json
