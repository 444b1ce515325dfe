// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/openai/edits.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"

namespace sightline::openai {
namespace {

// Adds a member at the end of an object, before its closing brace.
void append_member(EditedBody& body, const json::Value& object, std::string member) {
  const std::size_t at = object.end_offset() - 1;
  body.replace(at, at, (object.size() > 0 ? "," : "") + std::move(member));
}

}  // namespace

void EditedBody::replace(std::size_t begin, std::size_t end, std::string text) {
  SL_CHECK(begin <= end && end <= original_.size());
  // Edits must not overlap: a byte can have one replacement only.
  const auto after = std::upper_bound(
      edits_.begin(), edits_.end(), begin,
      [](std::size_t position, const Edit& edit) { return position < edit.begin; });
  SL_CHECK(after == edits_.begin() || std::prev(after)->end <= begin);
  SL_CHECK(after == edits_.end() || end <= after->begin);
  edits_.insert(after, Edit{begin, end, std::move(text)});
}

std::vector<std::string_view> EditedBody::pieces() const {
  std::vector<std::string_view> pieces;
  pieces.reserve(edits_.size() * 2 + 1);
  std::size_t at = 0;
  for (const Edit& edit : edits_) {
    if (edit.begin > at) pieces.push_back(original_.substr(at, edit.begin - at));
    if (!edit.text.empty()) pieces.emplace_back(edit.text);
    at = edit.end;
  }
  if (at < original_.size()) pieces.push_back(original_.substr(at));
  return pieces;
}

std::size_t EditedBody::size() const {
  std::size_t size = original_.size();
  for (const Edit& edit : edits_) size += edit.text.size() - (edit.end - edit.begin);
  return size;
}

void set_uuid(EditedBody& body, const MediaPart& part, std::string_view uuid) {
  set_member(body, part.part, "uuid", json::to_quoted(uuid));
}

void clear_uuid(EditedBody& body, const MediaPart& part) {
  // Replaces each duplicate, because engines may use the first or the last one.
  for (const json::Value& value : part.part.find_all("uuid")) {
    body.replace(value.begin_offset(), value.end_offset(), "null");
  }
}

void set_url(EditedBody& body, const MediaPart& part, std::string_view url) {
  SL_CHECK(part.url.has_value());
  body.replace(part.url->begin_offset(), part.url->end_offset(), json::to_quoted(url));
}

void ask_for_usage(EditedBody& body, const ApiRequest& request) {
  const json::Value root = request.document.root();
  const auto options = root.find("stream_options");
  if (!options) {
    append_member(body, root, R"("stream_options":{"include_usage":true})");
    return;
  }
  if (!options->is(json::Kind::Object)) {
    body.replace(options->begin_offset(), options->end_offset(), R"({"include_usage":true})");
    return;
  }
  set_member(body, *options, "include_usage", "true");
  // This option has an effect only with include_usage. Then each chunk carries a usage (vLLM 0.32,
  // should_include_usage).
  for (const json::Value& continuous : options->find_all("continuous_usage_stats")) {
    body.replace(continuous.begin_offset(), continuous.end_offset(), "false");
  }
}

void set_member(EditedBody& body, const json::Value& object, std::string_view name,
                const std::string& value) {
  const auto given = object.find_all(name);
  for (const json::Value& old : given) body.replace(old.begin_offset(), old.end_offset(), value);
  if (given.empty()) append_member(body, object, json::to_quoted(name) + ":" + value);
}

}  // namespace sightline::openai
