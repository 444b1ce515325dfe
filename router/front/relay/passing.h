// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include "common/http/exchange.h"
#include "common/http/message.h"

#include "router/front/relay/forward.h"

// The parts that all kinds of answers have in common.
namespace sightline::relay {

// Returns the worker's headers and the fields that the attempt adds.
http::Headers answer_headers(const http::Exchange& exchange, const Attempt& attempt);

// Shows that the worker of the attempt is alive.
inline void raise_life(const Attempt& attempt) {
  if (attempt.life) attempt.life->raise();
}

// Reports that the worker has answered.
inline void note_answer(const Attempt& attempt) {
  if (attempt.on_answer) attempt.on_answer();
}

}  // namespace sightline::relay
