// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/front/adapters/adapter_change.h"

#include <utility>

#include "common/base/json.h"

namespace sightline::adapters {
namespace {

constexpr std::string_view kVersion = "/v1";
constexpr std::string_view kLoad = "/load_lora_adapter";
constexpr std::string_view kUnload = "/unload_lora_adapter";

std::string_view version_of(std::string_view path) {
  return path.starts_with(kVersion) ? kVersion : std::string_view();
}

std::string text_of(const json::Value& object, std::string_view name) {
  const auto member = object.find(name);
  return std::string(member ? member->string().value_or("") : "");
}

}  // namespace

bool changes_adapters(std::string_view path) {
  path.remove_prefix(version_of(path).size());
  return path == kLoad || path == kUnload;
}

bool AdapterChange::is_done_at(std::string_view loaded_from) const {
  if (!is_load) return loaded_from.empty();
  return !is_in_place && !loaded_from.empty() && loaded_from == source;
}

// The undo uses the same form of path as the change, because each engine has only one form.
UndoRequest undo_of(const AdapterChange& change, std::string_view loaded_from) {
  const std::string version(version_of(change.path));
  const std::string name = R"({"lora_name":)" + json::to_quoted(change.name);
  if (loaded_from.empty()) return {version + std::string(kUnload), name + "}"};
  // Another adapter of this name is loaded now. It must be replaced in place.
  const std::string_view again = change.is_load ? R"(,"load_inplace":true})" : "}";
  return {version + std::string(kLoad),
          name + R"(,"lora_path":)" + json::to_quoted(loaded_from) + std::string(again)};
}

Result<AdapterChange> read_change(std::string_view path, const std::string& body) {
  if (body.size() > kChangeBytesMax) {
    return limit_error(ErrorCode::TooLarge, "adapter-change-bytes-max",
                       "a request that loads or unloads an adapter may have at most " +
                           std::to_string(kChangeBytesMax) + " bytes");
  }
  const auto document = SL_TRY(json::Document::parse(body));
  const json::Value root = document.root();
  if (!root.is(json::Kind::Object)) {
    return client_error(ErrorCode::InvalidArgument, "the body must be a JSON object");
  }
  AdapterChange change{.is_load = path.ends_with(kLoad), .path = std::string(path)};
  change.name = text_of(root, "lora_name");
  if (change.name.empty()) {
    return client_error(ErrorCode::InvalidArgument, "lora_name: the adapter's name is missing",
                        "lora_name");
  }
  change.source = text_of(root, "lora_path");
  const auto again = root.find("load_inplace");
  change.is_in_place = again && again->boolean().value_or(false);
  return change;
}

}  // namespace sightline::adapters
