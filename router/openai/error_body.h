// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <string>
#include <string_view>

#include "common/base/error.h"

namespace sightline::openai {

// Returns the HTTP status of an error. This is the only mapping: 4xx for the client's faults, 502,
// 503 or 504 for the workers', 500 for the router's own.
int http_status_of(const Error& error);

// Returns {"error":{"message","type","param","code"}} as vLLM 0.32 and OpenAI write it. The type is
// vLLM's ("BadRequestError", "NotFoundError", …), the code is the HTTP status.
std::string error_body(const Error& error);
// The same for a status that was decided elsewhere: by the HTTP server's own refusals.
std::string error_body(const Error& error, int status);

// Returns the error for an unknown model. Cuts a long name, and leaves out a name without valid
// UTF-8.
Error no_such_model(std::string_view name);

// Returns the error as an event of a stream that has begun: "data: {…}\n\n". No "[DONE]" follows
// it. So a client can distinguish a broken stream from a finished one.
std::string error_event(const Error& error);

}  // namespace sightline::openai
