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

// A member that an engine must not read as a client wrote it, at any depth of a body, and the JSON
// that stands in its place.
struct FixedMember {
  std::string_view name;
  std::string_view value;
};

// A request whose prompt the router does not read. Its body is searched for what makes an engine
// connect, load or name things by a client's word. Movable; all views point into its document.
struct UnreadRequest {
  struct Fix {
    json::Value old;
    std::string_view value;
  };

  std::string form;                        // a body that is no JSON, bytes untouched
  std::optional<json::Document> document;  // any other body; absent where there is none
  // What an engine would fetch; each has a url, as text that nobody has looked at yet, which is its
  // `part` too; message and position are 0.
  std::vector<MediaPart> media;
  // Values to be replaced: the fixed members, and the identifiers that clients give to media. No
  // two of these and of the media's URLs overlap.
  std::vector<Fix> fixes;

  [[nodiscard]] std::string_view text() const {
    return document ? std::string_view(document->text()) : std::string_view(form);
  }
};

struct UnreadRules {
  std::span<const FixedMember> fixed;  // outlives the request
  std::size_t media_max = 64;          // items that are fetched
  // What the request takes besides its body is charged here; outlives it. Null: nowhere.
  HeldBytes* memory = nullptr;
};

// Reads the body of a request of one of the passed paths. `content_type` as the client sent it, ""
// for none: a multipart form is not JSON, everything else is.
// A URL is a string below "image_url", "video_url", "audio_url" or "file_url", the "url" of an
// object whose "type" is one of media or "url", and any string below "image", "video", "audio" and
// their lists and "…_data" that is not base64. Tools, schemas and metadata are not looked into.
// Errors, blamed on the client: InvalidArgument for no JSON, transfer parameters, servers of tools
// and too many items; TooLarge and Overloaded as json::Document::parse(). Of the document only what
// is found stays.
Result<UnreadRequest> read_unread(std::string body, std::string_view content_type,
                                  const UnreadRules& rules);

// Refuses what only a router may send to an engine: parameters of cache transfers, which name hosts
// to connect to (vLLM 0.32, SGLang 0.5.23, TensorRT-LLM 1.3). Looks into objects in objects, not
// into arrays. Errors: InvalidArgument, blamed on the client.
Result<Done> check_no_transfer(const json::Value& root);

}  // namespace sightline::openai
