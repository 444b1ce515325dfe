// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/openai/usage.h"

#include <string>

#include "common/base/json.h"

namespace sightline::openai {
namespace {

std::optional<std::uint64_t> count(const json::Value& object, std::string_view name) {
  const auto value = object.find(name);
  if (!value) return std::nullopt;
  const auto integer = value->integer();
  if (!integer || *integer < 0) return std::nullopt;
  return static_cast<std::uint64_t>(*integer);
}

}  // namespace

std::optional<Usage> usage_of(std::string_view json_text) {
  // The usage object is at the end of a body and alone in a chunk: search from the back.
  if (json_text.rfind("\"prompt_tokens\"") == std::string_view::npos) return std::nullopt;
  const auto document = json::Document::parse(std::string(json_text));
  if (!document.ok()) return std::nullopt;
  const json::Value root = document->root();
  const auto object = root.find("usage");
  if (!object) return std::nullopt;
  const auto prompt_tokens = count(*object, "prompt_tokens");
  if (!prompt_tokens) return std::nullopt;
  Usage usage{.prompt_tokens = *prompt_tokens};
  usage.completion_tokens = count(*object, "completion_tokens").value_or(0);
  if (const auto details = object->find("prompt_tokens_details")) {
    usage.cached_tokens = count(*details, "cached_tokens");
  }
  const auto choices = root.find("choices");
  usage.alone = choices && choices->is(json::Kind::Array) && choices->size() == 0;
  return usage;
}

}  // namespace sightline::openai
