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

// What a process does in its deployment.
enum class Role : std::uint8_t { Router, Frontend, Agent };
inline constexpr std::size_t kRoleCount = 3;

// The role as announcements, metrics and logs name it: "router", "frontend" or "agent".
std::string_view name_of(Role role);

// The versions of messages that a process reads, from min to max, both included.
struct FrameVersions {
  std::uint32_t min = 0;
  std::uint32_t max = 0;

  bool operator==(const FrameVersions&) const = default;
};

// What a process announces to all others of its scope. With a proof of the identity key it says
// which processes are there. Without a proof it only shows what does not fit.
struct Announcement {
  Role role = Role::Router;
  // For people. Several processes may have the same name by mistake.
  std::string name;
  // Random, drawn when the process started. It identifies the process.
  std::uint64_t instance = 0;
  std::string scope;  // "NAMESPACE/NAME"
  std::string revision;
  std::string model_digest;  // prepare::LoadedModel::files_digest
  // The first served model name, on which block keys depend. Empty: not set.
  std::string served_model;
  // In tokens, 0: not known.
  std::uint32_t block_size = 0;
  // key_check_of() of its identity key.
  std::string key_check;
  FrameVersions frames;
  // "10.0.0.7:9090", empty: no admin port.
  std::string admin_address;
  // Of the selection API, empty: not served.
  std::string selection_address;
  // Seconds since 1970 by its own clock, only to show.
  std::int64_t started = 0;
  // The generation of its pushed list of workers. 0: no list was pushed.
  std::uint64_t generation = 0;
  // Rises with each announcement of the instance, from 1 on. A lower or equal one is a recording.
  std::uint64_t number = 0;
  // The last announcement: the process ends.
  bool leaving = false;

  bool operator==(const Announcement&) const = default;
};

// The most bytes of an accepted announcement, and of a text in it.
inline constexpr std::size_t kAnnouncementBytesMax = 8192;
inline constexpr std::size_t kAnnouncedTextBytesMax = 512;

// Returns 16 hexadecimal digits that differ between identity keys. It is BLAKE3 in key derivation
// mode with the context "sightline 2026 identity key check". It reveals nothing else about the key.
std::string key_check_of(const contract::IdentityKey& key);

// Returns one line of JSON of at most kAnnouncementBytesMax bytes. A text that takes more than
// kAnnouncedTextBytesMax bytes in JSON is cut. A text that breaks UTF-8 is sent as empty.
std::string encode(const Announcement& announcement);

// The same with one more field at the end: a proof for this subject that the sender has the
// sealer's key.
std::string encode(const Announcement& announcement, std::string_view subject,
                   const envelope::Sealer& sealer);
// Returns whether the text ends with a valid proof. It costs at most one hash of the text. A text
// without the form of a proof costs nothing.
bool is_proven(std::string_view json, std::string_view subject, const envelope::Sealer& sealer);

// Reads an announcement. Unknown fields are ignored, so later releases can add fields.
// Errors: Corrupt, with the name of the field, and TooLarge. Both blame the worker.
Result<Announcement> decode(std::string_view json);

}  // namespace sightline::membership
