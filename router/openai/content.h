// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "router/openai/request.h"

namespace sightline::openai {

// The media items of all messages, in order of appearance, as vLLM 0.32 reads content parts:
// image_url (object or string), input_image, untyped {"image_url": …}, and the same for video and
// audio, whose URL may be missing; raw audio and embedding parts are listed without a URL, and so
// is every part with a uuid. Errors: InvalidArgument for more than images_max items, for a payload
// that is not a string, and for a part that names a uuid without a payload: the router replaces
// every uuid by one derived from the bytes, so it needs the bytes.
Result<std::vector<MediaPart>> find_media(const json::Value& messages, std::size_t images_max);

// True if every character is one of base64 (RFC 4648 section 4): bytes, no URL.
bool is_base64(std::string_view text);

// The error of a request with more media items than that.
Error too_many_media(std::size_t images_max, std::string param);

}  // namespace sightline::openai
