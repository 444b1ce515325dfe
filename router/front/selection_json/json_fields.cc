// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/front/selection_json/json_fields.h"

#include "common/base/memory_ledger.h"

namespace sightline::selection_json {

Fields::Fields(json::Value object, std::string path) : object_(object), path_(std::move(path)) {
  if (!object_.is(json::Kind::Object)) refuse("", "must be an object");
}

std::optional<json::Value> Fields::find(std::string_view name) const {
  const auto found = object_.find(name);
  if (!found || found->is(json::Kind::Null)) return std::nullopt;
  return found;
}

void Fields::refuse(std::string_view name, std::string_view why) {
  // The first error explains the later ones.
  if (error_) return;
  std::string at = path_;
  if (!at.empty() && !name.empty()) at += '.';
  at += name;
  error_ = client_error(ErrorCode::InvalidArgument,
                        (at.empty() ? "the body" : "`" + at + "`") + " " + std::string(why), at);
}

std::uint64_t Fields::number(std::string_view name, std::uint64_t max,
                             std::optional<std::uint64_t> otherwise) {
  const auto found = find(name);
  if (!found && otherwise) return *otherwise;
  const auto value = found ? found->integer() : std::nullopt;
  if (value && *value >= 0 && static_cast<std::uint64_t>(*value) <= max) {
    return static_cast<std::uint64_t>(*value);
  }
  refuse(name, "must be an integer from 0 to " + std::to_string(max));
  return 0;
}

double Fields::real(std::string_view name) {
  const auto found = find(name);
  const auto value = found ? found->number() : std::nullopt;
  if (!value) refuse(name, "must be a number");
  return value.value_or(0);
}

bool Fields::flag(std::string_view name, bool otherwise) {
  const auto found = find(name);
  if (!found) return otherwise;
  const auto value = found->boolean();
  if (!value) refuse(name, "must be true or false");
  return value.value_or(otherwise);
}

std::optional<std::string> Fields::text(std::string_view name, std::size_t bytes_max) {
  const auto found = find(name);
  if (!found) return std::nullopt;
  const auto value = found->string();
  if (value && value->size() <= bytes_max) return std::string(*value);
  refuse(name, "must be a string of at most " + std::to_string(bytes_max) + " bytes");
  return std::nullopt;
}

std::string Fields::needed_text(std::string_view name, std::size_t bytes_max) {
  auto value = text(name, bytes_max);
  if (!value) refuse(name, "is missing");
  return value.value_or("");
}

std::optional<json::Value> Fields::list(std::string_view name, std::size_t count_max) {
  const auto found = find(name);
  if (!found) return std::nullopt;
  if (found->is(json::Kind::Array) && found->size() <= count_max) return found;
  refuse(name, "must be an array of at most " + std::to_string(count_max) + " elements");
  return std::nullopt;
}

Result<Done> Fields::check() const {
  if (error_) return *error_;
  return Done{};
}

Result<json::Document> parse_object(std::string body, HeldBytes* memory) {
  // The body is counted before it is parsed. A peer could otherwise use memory without a limit.
  if (memory != nullptr && !memory->add(body.size())) {
    return memory_error(*memory, body.size(), "the request's body");
  }
  auto document = SL_TRY(json::Document::parse(std::move(body), {.memory = memory}));
  if (document.root().is(json::Kind::Object)) return document;
  return client_error(ErrorCode::InvalidArgument, "the body must be an object");
}

}  // namespace sightline::selection_json
