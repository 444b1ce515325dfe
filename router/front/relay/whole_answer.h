// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include "common/base/result.h"
#include "common/http/exchange.h"
#include "common/http/server.h"
#include "common/runtime/task.h"

#include "router/front/relay/forward.h"

namespace sightline::relay {

// Forwards an answer without streaming. It is sent as a whole if it ends within kAnswerHeldBytesMax
// and memory has room. Otherwise it is sent piece by piece, at the client's speed. A failure then
// closes the client's connection. Errors: as forward(), and TooLarge above kAnswerBytesMax.
Task<Result<AttemptAnswer>> relay_whole(http::Exchange& exchange, const Attempt& attempt,
                                        http::ResponseWriter& client);

}  // namespace sightline::relay
