// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <cstdint>

// The limits of messages from peers.
namespace sightline::selection_json {

// Tokens of a prompt, and its blocks.
inline constexpr std::size_t kTokensMax = 1 << 22;
// Positions of images.
inline constexpr std::int64_t kImageTokenMax = std::int64_t{1} << 40U;
// One day.
inline constexpr double kFirstTokenSecondsMax = 86'400;
// Media items of a prompt.
inline constexpr std::size_t kMediaMax = 10'000;
// The name of a worker, adapter or media item.
inline constexpr std::size_t kNameBytesMax = 1024;
// Workers that failed.
inline constexpr std::size_t kTriedMax = 4096;
// The message of an error.
inline constexpr std::size_t kMessageBytesMax = 8192;
// The reason why a router is not ready.
inline constexpr std::size_t kReasonBytesMax = 4096;
// Workers and ranks of an explanation.
inline constexpr std::size_t kExplainedMax = 65'536;
// lease_s.
inline constexpr std::uint64_t kLeaseSecondsMax = 600;
// Tokens or blocks of a reservation. The largest body has no more tokens.
inline constexpr std::uint64_t kBookedMax = 1 << 30;
// Tokens per block.
inline constexpr std::uint64_t kBlockSizeMax = 1 << 20;
// Reservations in one part of a list.
inline constexpr std::size_t kHeldMax = 4096;
// Notes of one message.
inline constexpr std::size_t kNotesMax = 1024;
// Workers whose answers still arrive.
inline constexpr std::size_t kAliveMax = 4096;
// Served models.
inline constexpr std::size_t kModelsMax = 16'384;

}  // namespace sightline::selection_json
