// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/error.h"
#include "common/contract/worker_spec.h"

#include "router/cache/keys/block_key.h"
#include "router/openai/usage.h"
#include "router/workers/fleet/load.h"
#include "router/workers/routing/candidate.h"
#include "router/workers/routing/select.h"

// What a frontend asks of the router role, and what it is told and tells: plain values that can be
// sent to another process.
namespace sightline::selection {

// Whom a request was sent to already.
struct Tried {
  std::vector<std::string> failed;  // workers not to be asked again
  std::string again;                // the worker to be asked again, as long as it is there

  bool operator==(const Tried&) const = default;
};

// Tokens of a prompt: `length` from `start` on.
struct TokenSpan {
  std::uint64_t start = 0;
  std::uint64_t length = 0;

  bool operator==(const TokenSpan&) const = default;
};

// What is asked for one attempt.
struct Inquiry {
  // The prompt's whole blocks as far as they are known, of job.block_size tokens; not null.
  std::shared_ptr<const std::vector<keys::BlockKey>> keys =
      std::make_shared<const std::vector<keys::BlockKey>>();
  routing::Job job;
  std::uint64_t first_prompt_tokens = 0;  // of the prompt that the keys are those of
  std::vector<TokenSpan> images;          // of that prompt, in its order
  std::optional<std::string> adapter;     // that a worker must have loaded
  // By engine family: the keys do not tell what its workers reuse for this request.
  std::array<bool, contract::kEngineFamilies.size()> unpredictable{};
  // Keys and job are all that the worker will report on: its counts must equal ours.
  bool is_exact = false;
  // False: the router does not read the request. It goes to the least loaded worker.
  bool is_read = true;
  Tried tried;
};

using ReservationId = std::uint64_t;

// The rank of a worker chosen for an attempt, with the work booked on it.
struct Selection {
  std::string worker;
  std::string host;
  std::uint16_t port = 0;
  std::optional<std::uint32_t> rank;  // where the worker has to be told; nothing: it has one
  contract::EngineFamily family = contract::EngineFamily::Vllm;
  std::uint64_t overlap_blocks = 0;  // X of X/Y: blocks the worker is expected to reuse
  std::uint64_t prompt_blocks = 0;   // Y: whole blocks of the prompt
  std::uint32_t block_size = 0;      // tokens; 0: the request is not read
  std::string reason;                // why this worker
  routing::Score score;              // its terms, all zero where it is not read
  ReservationId reservation = 0;
};

// How an attempt ended.
struct Ending {
  enum class Kind : std::uint8_t {
    Unused,    // nothing was learnt of the worker: not sent, or the client left
    Answered,  // with the status
    Failed,    // by the worker's fault
  };
  Kind kind = Kind::Unused;
  int status = 0;
  std::optional<openai::Usage> usage;  // as the engine reported it
  std::optional<Error> failure;        // what it was, of Failed
  std::string request_id;              // for log lines
  // From the choice to the first token. Nothing: none came, or the answer is no stream.
  std::optional<Duration> first_token;
};

// Work that goes on, to be booked where another router booked it.
struct Adoption {
  std::string worker;
  std::optional<std::uint32_t> rank;  // as in Selection
  fleet::Booking booking;
  bool is_decoding = false;  // its first token has come
};

// How a request would be routed at this moment.
struct Explanation {
  // A rank of a worker that may serve it, or a worker that may not.
  struct Entry {
    std::string worker;
    std::optional<std::uint32_t> rank;  // where the worker has several and may serve
    std::string state;                  // of the worker
    bool is_eligible = false;
    routing::Candidate candidate;  // of an eligible one, like the score
    routing::Score score;
  };
  std::vector<Entry> entries;  // in the order of the workers
  std::size_t chosen = 0;      // index into the entries
  std::string reason;
};

}  // namespace sightline::selection
