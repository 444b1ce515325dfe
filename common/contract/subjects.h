// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

// The NATS subjects that routers and agents of one scope and revision use. All subjects begin with
// "sl.NAMESPACE.NAME.", also those of answers. One line of permissions, "sl.NAMESPACE.NAME.>", thus
// separates tenants.
namespace sightline::contract {

// The name as one token of a subject, never empty, at most kSubjectTokenBytesMax bytes. Letters,
// digits, '_', '-' and ':' stay, other bytes become %XX. Different names give different tokens. In
// a token that would be longer, a 64-bit digest replaces the rest.
std::string subject_token(std::string_view name);

// The most bytes of a token.
inline constexpr std::size_t kSubjectTokenBytesMax = 200;

// The subjects. Pure.
// Thread safety: const methods from any thread.
class Subjects {
 public:
  // `scope` is "namespace/name", as in ReplicaSettings.
  Subjects(std::string_view scope, std::string_view revision);

  // The KV events of one rank of a worker, from its agent to all routers.
  [[nodiscard]] std::string events(std::string_view worker, std::uint32_t rank) const;
  // Requests about this rank, from a router to its agent.
  [[nodiscard]] std::string asks(std::string_view worker, std::uint32_t rank) const;
  // The replies to one router, which gives its name.
  [[nodiscard]] std::string replies(std::string_view reader) const;
  // A router's messages to itself, which measure the delay of NATS. Not replies(): a router must
  // not be able to send what looks like an agent's reply.
  [[nodiscard]] std::string returns(std::string_view reader) const;
  // The load of a router, to all others, and the requests for it.
  [[nodiscard]] std::string load() const { return prefix_ + "load"; }
  [[nodiscard]] std::string load_asks() const { return prefix_ + "ask-load"; }
  // Which worker list was pushed: a router's question to all others, and the answers to the
  // instance that asked.
  [[nodiscard]] std::string list_asks() const { return prefix_ + "ask-lists"; }
  [[nodiscard]] std::string lists(std::uint64_t instance) const;
  // The announcements of peers: of this revision, and of all.
  [[nodiscard]] std::string members() const { return prefix_ + "members"; }
  [[nodiscard]] std::string all_members() const { return scope_prefix_ + "*.members"; }

 private:
  // "sl.NAMESPACE.NAME.".
  std::string scope_prefix_;
  // scope_prefix_ and "REVISION.".
  std::string prefix_;
};

}  // namespace sightline::contract
