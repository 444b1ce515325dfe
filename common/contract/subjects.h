// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

// The subjects of NATS that routers and agents of one scope and revision use. All begin with
// "sl.NAMESPACE.NAME.", answers included: one line of permissions, "sl.NAMESPACE.NAME.>", parts
// tenants.
namespace sightline::contract {

// A name as one token of a subject, never empty, at most kSubjectTokenBytesMax bytes: letters,
// digits, '_', '-' and ':' as they are, other bytes as %XX. Different names give different tokens;
// of those that would be longer the rest is a 64-bit digest.
std::string subject_token(std::string_view name);

inline constexpr std::size_t kSubjectTokenBytesMax = 200;

// Pure; thread safety: const methods from any thread.
class Subjects {
 public:
  // scope: "namespace/name" as of ReplicaSettings.
  Subjects(std::string_view scope, std::string_view revision);

  // What a rank of a worker holds: its agent -> all routers.
  [[nodiscard]] std::string events(std::string_view worker, std::uint32_t rank) const;
  // Questions on it: a router -> its agent.
  [[nodiscard]] std::string asks(std::string_view worker, std::uint32_t rank) const;
  // Answers to one router, by the name that it gave.
  [[nodiscard]] std::string replies(std::string_view reader) const;
  // By which a router measures how late NATS is: to itself. Not replies(): a router may not send
  // what looks like an agent's answer.
  [[nodiscard]] std::string returns(std::string_view reader) const;
  // What routers have under way: each -> all others.
  [[nodiscard]] std::string load() const { return prefix_ + "load"; }
  [[nodiscard]] std::string load_asks() const { return prefix_ + "ask-load"; }
  // Which list of workers was pushed: a router -> all others; the answers, to one by its instance.
  [[nodiscard]] std::string list_asks() const { return prefix_ + "ask-lists"; }
  [[nodiscard]] std::string lists(std::uint64_t instance) const;
  // Who is there, of this revision and of any.
  [[nodiscard]] std::string members() const { return prefix_ + "members"; }
  [[nodiscard]] std::string all_members() const { return scope_prefix_ + "*.members"; }

 private:
  std::string scope_prefix_;  // "sl.NAMESPACE.NAME."
  std::string prefix_;        // with "REVISION."
};

}  // namespace sightline::contract
