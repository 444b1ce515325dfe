// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <string>
#include <string_view>

#include "common/base/error.h"

namespace sightline::openai {

// HTTP status of an error: the only mapping table. 4xx for the client's faults, 502/503/504 for
// the workers', 500 for ours.
int http_status_of(const Error& error);

// {"error":{"message","type","param","code"}} as vLLM 0.32 and OpenAI write it; type is vLLM's
// ("BadRequestError", "NotFoundError", …), code the HTTP status.
std::string error_body(const Error& error);
// The same for a status that was decided elsewhere (the HTTP server's own refusals).
std::string error_body(const Error& error, int status);

// The error for a model that is not served. A name of many bytes is cut, one that is no text left
// out.
Error no_such_model(std::string_view name);

// The error as an event of a stream that has begun: "data: {…}\n\n". No "[DONE]" follows it, so
// that a client can tell a broken stream from a finished one.
std::string error_event(const Error& error);

}  // namespace sightline::openai
