// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/byte_budget.h"
#include "common/base/json.h"
#include "common/base/result.h"

#include "router/openai/request.h"

namespace sightline::openai {

// At any depth of a body, an engine must not read this member as a client wrote it. `value` is the
// JSON that replaces its value.
struct FixedMember {
  std::string_view name;
  std::string_view value;
};

// A request whose prompt the router does not parse. The router searches its body for values by
// which a client makes an engine connect, load or name things. Movable. All views point into its
// document.
struct UnreadRequest {
  // A value and its replacement.
  struct Fix {
    json::Value old;
    std::string_view value;
  };

  std::string form;                        // a body without JSON, with the client's bytes.
  std::optional<json::Document> document;  // any other body. Empty if there is no body.
  // Media that an engine would fetch. Each has a url, which is also its `part`. The url is an
  // unchecked text. message and position are 0.
  std::vector<MediaPart> media;
  // Values to replace: the fixed members, and the identifiers that clients give to media. No two of
  // these values and of the media's URLs overlap.
  std::vector<Fix> fixes;

  // Returns the body's bytes.
  [[nodiscard]] std::string_view text() const {
    return document ? std::string_view(document->text()) : std::string_view(form);
  }
};

// What read_unread() looks for, and its limits.
struct UnreadRules {
  std::span<const FixedMember> fixed;  // outlives the request
  std::size_t media_max = 64;          // limit of items to fetch
  // Charged with the memory of the request besides its body. Outlives the request. Null: no charge.
  HeldBytes* memory = nullptr;
};

// Reads the body of a request for one of the passed paths. `content_type` is the client's header,
// or empty. A multipart form is not JSON. Any other body is.
//
// A string is a URL if it is
// - below "image_url", "video_url", "audio_url" or "file_url",
// - the "url" of an object whose "type" is one of media or "url",
// - below "image", "video", "audio", their lists or "…_data", unless it is base64.
//
// Tools, schemas and metadata are not searched.
//
// Errors, blamed on the client: InvalidArgument for a body other than JSON, transfer parameters,
// servers of tools and too many items. TooLarge and Overloaded as in json::Document::parse(). Of
// the document, only the found values stay in memory.
Result<UnreadRequest> read_unread(std::string body, std::string_view content_type,
                                  const UnreadRules& rules);

// Refuses parameters of cache transfers, which name hosts to connect to (vLLM 0.32, SGLang 0.5.23,
// TensorRT-LLM 1.3). Only a router may send them to an engine. It searches objects in objects, but
// not arrays. Error: InvalidArgument, blamed on the client.
Result<Done> check_no_transfer(const json::Value& root);

}  // namespace sightline::openai
