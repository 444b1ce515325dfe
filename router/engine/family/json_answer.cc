// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/engine/family/json_answer.h"

#include <utility>

#include "router/engine/family/server_facts.h"

namespace sightline::family {

Error corrupt(std::string message) {
  return worker_error(ErrorCode::Corrupt, std::move(message), false);
}

Result<json::Document> parse_object(std::string body, const std::string& path) {
  auto document = json::Document::parse(std::move(body));
  if (!document.ok()) return corrupt(path + ": " + document.error().message);
  if (!document->root().is(json::Kind::Object)) return corrupt(path + ": not a JSON object");
  return document;
}

std::string text_of(const json::Value& object, std::string_view name) {
  const auto member = object.find(name);
  const auto text = member ? member->string() : std::nullopt;
  return text && text->size() <= kNameBytesMax ? std::string(*text) : std::string();
}

}  // namespace sightline::family
