// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "router/openai/request.h"

namespace sightline::openai {

// Returns the media items of all messages, in order of appearance, as vLLM 0.32 reads content
// parts:
// - image_url (object or string), input_image, untyped {"image_url": …},
// - the same for video and audio, whose URL may be missing,
// - raw audio, embeddings and unknown parts with a uuid, without a URL.
//
// Error: InvalidArgument for more than images_max items, for a URL of another kind than a string,
// and for an image without bytes. A uuid does not replace the bytes, because the router replaces
// every uuid by one derived from the bytes.
Result<std::vector<MediaPart>> find_media(const json::Value& messages, std::size_t images_max);

// Returns true if every character is one of base64 (RFC 4648 section 4). Then the text is bytes,
// not a URL.
bool is_base64(std::string_view text);

// Returns the error for a request with more than images_max media items.
Error too_many_media(std::size_t images_max, std::string param);

}  // namespace sightline::openai
