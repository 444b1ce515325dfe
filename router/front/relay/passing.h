// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include "common/http/exchange.h"
#include "common/http/message.h"

#include "router/front/relay/forward.h"

// What all ways of an answer to the client have in common.
namespace sightline::relay {

// The worker's header with the fields that the attempt adds.
http::Headers answer_headers(const http::Exchange& exchange, const Attempt& attempt);

inline void raise_life(const Attempt& attempt) {
  if (attempt.life) attempt.life->raise();
}

inline void note_answer(const Attempt& attempt) {
  if (attempt.on_answer) attempt.on_answer();
}

}  // namespace sightline::relay
