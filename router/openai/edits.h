// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "router/openai/request.h"

namespace sightline::openai {

// The client's body with a few places replaced: everything else keeps its bytes.
// Thread safety: none; one per request.
class EditedBody {
 public:
  // original must outlive this object.
  explicit EditedBody(std::string_view original) : original_(original) {}

  // Replaces [begin, end) by text; begin == end inserts. Edits may not overlap and may come in
  // any order.
  void replace(std::size_t begin, std::size_t end, std::string text);

  // The whole body as pieces to be written one after the other, views of the original and of
  // this object; valid until the next replace().
  [[nodiscard]] std::vector<std::string_view> pieces() const;

  // Sum of the pieces' sizes.
  [[nodiscard]] std::size_t size() const;

 private:
  struct Edit {
    std::size_t begin;
    std::size_t end;
    std::string text;
  };
  std::string_view original_;
  std::vector<Edit> edits_;  // sorted by begin
};

// Gives the part the identifier `uuid`, in place of any the client sent.
void set_uuid(EditedBody& body, const MediaPart& part, std::string_view uuid);

// Takes away the identifier the client sent, by null: vLLM 0.32 reads that as none.
void clear_uuid(EditedBody& body, const MediaPart& part);

// Replaces the part's URL.
void set_url(EditedBody& body, const MediaPart& part, std::string_view url);

// Makes a streaming answer end with a usage chunk, and no other chunk carry a usage:
// stream_options.include_usage = true, a continuous_usage_stats that is given = false.
void ask_for_usage(EditedBody& body, const ApiRequest& request);

// Replaces the value of every member of this name, or adds one; `value` is JSON.
void set_member(EditedBody& body, const json::Value& object, std::string_view name,
                const std::string& value);

}  // namespace sightline::openai
