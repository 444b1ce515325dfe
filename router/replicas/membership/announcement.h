// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/result.h"
#include "common/contract/identity_key.h"

#include "router/replicas/envelope/envelope.h"

namespace sightline::membership {

enum class Role : std::uint8_t { Router, Frontend, Agent };
inline constexpr std::size_t kRoleCount = 3;

// "router", "frontend", "agent".
std::string_view name_of(Role role);

// Versions of the frames that a process reads, both ends included.
struct FrameVersions {
  std::uint32_t min = 0;
  std::uint32_t max = 0;

  bool operator==(const FrameVersions&) const = default;
};

// What a process tells of itself to all others of its scope. With the proof of the identity key it
// names who is there; without, only who does not fit.
struct Announcement {
  Role role = Role::Router;
  std::string name;            // in people's words; several processes may have one by mistake
  std::uint64_t instance = 0;  // drawn when it started: no two processes have the same
  std::string scope;           // "namespace/name"
  std::string revision;
  std::string model_digest;  // prepare::LoadedModel::files_digest
  std::string served_model;  // the canonical name, which block keys depend on; empty: none is set
  std::uint32_t block_size = 0;  // tokens; 0: not known
  std::string key_check;         // key_check_of() its identity key
  FrameVersions frames;
  std::string admin_address;      // "10.0.0.7:9090"; empty: none
  std::string selection_address;  // likewise, of the selection API
  std::int64_t started = 0;       // seconds since 1970 by its own clock: to be shown only
  std::uint64_t generation = 0;   // of the list of workers that it was given by push; 0: none was
  std::uint64_t number = 0;       // counts up with each announcement of the instance, from 1 on
  bool leaving = false;           // the last one: the process ends

  bool operator==(const Announcement&) const = default;
};

// Longest announcement that is read, in bytes, and longest text in it.
inline constexpr std::size_t kAnnouncementBytesMax = 8192;
inline constexpr std::size_t kAnnouncedTextBytesMax = 512;

// 16 hexadecimal digits that tell one identity key from another: BLAKE3 in key derivation mode,
// context "sightline 2026 identity key check". Says nothing else of the key.
std::string key_check_of(const contract::IdentityKey& key);

// One line of JSON, no larger than kAnnouncementBytesMax. Texts that take more than
// kAnnouncedTextBytesMax there are cut, whatever is not UTF-8 is left out.
std::string encode(const Announcement& announcement);

// The same with a proof for that subject as its last field: that its sender has the sealer's key.
std::string encode(const Announcement& announcement, std::string_view subject,
                   const envelope::Sealer& sealer);
// Whether the text ends with such a proof. Costs no more than a hash of the text, and nothing where
// it does not look like one.
bool is_proven(std::string_view json, std::string_view subject, const envelope::Sealer& sealer);

// Fields that are not known are left aside, so that later versions can tell more.
// Errors: Corrupt, which names the field; TooLarge.
Result<Announcement> decode(std::string_view json);

}  // namespace sightline::membership
