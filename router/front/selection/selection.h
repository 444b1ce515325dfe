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

// The messages between a frontend and the router role. They are plain values, which can be sent to
// another process.
namespace sightline::selection {

// The workers that have already received a request.
struct Tried {
  // These workers must not get it again.
  std::vector<std::string> failed;
  // This worker must get it again, as long as it exists.
  std::string again;

  bool operator==(const Tried&) const = default;
};

// A range of a prompt's tokens: `length` tokens from `start` on.
struct TokenSpan {
  std::uint64_t start = 0;
  std::uint64_t length = 0;

  bool operator==(const TokenSpan&) const = default;
};

// A frontend's question for one attempt of a request.
struct Inquiry {
  // The keys of the leading whole blocks that the router knows. A block has job.block_size
  // tokens. Never null.
  std::shared_ptr<const std::vector<keys::BlockKey>> keys =
      std::make_shared<const std::vector<keys::BlockKey>>();
  routing::Job job;
  // Tokens of the prompt that the keys belong to.
  std::uint64_t first_prompt_tokens = 0;
  // The images in this prompt, in its order.
  std::vector<TokenSpan> images;
  // The adapter that a worker must have loaded.
  std::optional<std::string> adapter;
  // By engine family: true if the keys do not show what its workers reuse for this request.
  std::array<bool, contract::kEngineFamilies.size()> unpredictable{};
  // True if the keys and the job describe the whole prompt. The worker's token counts must then
  // equal the router's.
  bool is_exact = false;
  // False if the router does not read this request. It then goes to the worker with the fewest
  // requests.
  bool is_read = true;
  Tried tried;
};

// The number of a reservation, never 0. It names a reservation within one Selector.
using ReservationId = std::uint64_t;

// The chosen rank of a worker for an attempt, and the reservation of its load.
struct Selection {
  std::string worker;
  std::string host;
  std::uint16_t port = 0;
  // The rank to name in the request to the worker. Absent if the worker has only one rank.
  std::optional<std::uint32_t> rank;
  contract::EngineFamily family = contract::EngineFamily::Vllm;
  // X of X/Y: the blocks that the worker is expected to reuse.
  std::uint64_t overlap_blocks = 0;
  // Y: the whole blocks of the prompt.
  std::uint64_t prompt_blocks = 0;
  // Tokens per block, 0 if the router does not read the request.
  std::uint32_t block_size = 0;
  // Why this worker was chosen.
  std::string reason;
  // The terms of its cost. All are zero if the router does not read the request.
  routing::Score score;
  ReservationId reservation = 0;
};

// How an attempt ended.
struct Ending {
  // Only Failed and Answered say something about the worker.
  enum class Kind : std::uint8_t {
    // The request was not sent, or the client left.
    Unused,
    // The worker answered with `status`.
    Answered,
    // The attempt failed because of the worker.
    Failed,
  };
  Kind kind = Kind::Unused;
  int status = 0;
  // Token counts as the engine reported them.
  std::optional<openai::Usage> usage;
  // The reason of Failed.
  std::optional<Error> failure;
  // For log lines.
  std::string request_id;
  // The time from the choice to the first token. Absent if no token came or the answer is not a
  // stream.
  std::optional<Duration> first_token;
};

// A request that already runs and whose load another router had reserved. The new router reserves
// it too.
struct Adoption {
  std::string worker;
  // As in Selection.
  std::optional<std::uint32_t> rank;
  fleet::Booking booking;
  // Its first token has arrived.
  bool is_decoding = false;
};

// How a request would be routed at this moment.
struct Explanation {
  // A rank of a worker that may serve the request, or a worker that may not.
  struct Entry {
    std::string worker;
    // Present if the worker has several ranks and may serve.
    std::optional<std::uint32_t> rank;
    // The worker's state.
    std::string state;
    bool is_eligible = false;
    // Valid for an eligible entry, as the score is.
    routing::Candidate candidate;
    routing::Score score;
  };
  // In the order of the workers.
  std::vector<Entry> entries;
  // Index into the entries.
  std::size_t chosen = 0;
  std::string reason;
};

}  // namespace sightline::selection
