// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include "common/base/result.h"
#include "common/http/exchange.h"
#include "common/http/server.h"
#include "common/runtime/task.h"

#include "router/front/relay/forward.h"

namespace sightline::relay {

// Passes an answer that is no stream to the client, as a whole if it ends within
// kAnswerHeldBytesMax and there is memory for it, else piece by piece at the client's pace: then a
// failure closes the client's connection. Errors: as forward(); TooLarge above kAnswerBytesMax.
Task<Result<Answer>> relay_whole(http::Exchange& exchange, const Attempt& attempt,
                                 http::ResponseWriter& client);

}  // namespace sightline::relay
