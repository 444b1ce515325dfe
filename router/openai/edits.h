// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "router/openai/request.h"

namespace sightline::openai {

// The client's body with a few places replaced. All other bytes stay as they are.
// Thread safety: one thread at a time, one object for each request.
class EditedBody {
 public:
  // `original` must outlive this object.
  explicit EditedBody(std::string_view original) : original_(original) {}

  // Replaces [begin, end) by text. If begin == end, inserts it. Edits may not overlap, and may come
  // in any order.
  void replace(std::size_t begin, std::size_t end, std::string text);

  // Returns the whole body as pieces to write one after the other. They are views of the original
  // and of this object, valid until the next replace().
  [[nodiscard]] std::vector<std::string_view> pieces() const;

  // Returns the sum of the pieces' sizes.
  [[nodiscard]] std::size_t size() const;

 private:
  // One replaced range of the original, in bytes.
  struct Edit {
    std::size_t begin;
    std::size_t end;
    std::string text;
  };
  std::string_view original_;
  std::vector<Edit> edits_;  // sorted by begin
};

// Gives the part the identifier `uuid`, and replaces the client's own.
void set_uuid(EditedBody& body, const MediaPart& part, std::string_view uuid);

// Replaces the client's identifier by null, which vLLM 0.32 reads as no identifier.
void clear_uuid(EditedBody& body, const MediaPart& part);

// Replaces the part's URL.
void set_url(EditedBody& body, const MediaPart& part, std::string_view url);

// Makes a streamed answer end with a usage chunk, and removes the usage from other chunks. It sets
// stream_options.include_usage to true, and a given continuous_usage_stats to false.
void ask_for_usage(EditedBody& body, const ApiRequest& request);

// Replaces the value of each member with this name, or adds a member. `value` is JSON.
void set_member(EditedBody& body, const json::Value& object, std::string_view name,
                const std::string& value);

}  // namespace sightline::openai
