// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/engine/family/models.h"

#include <algorithm>
#include <utility>

#include "router/engine/family/json_answer.h"

namespace sightline::family {
namespace {

// Returns the path of a model. Of a longer path it keeps the last kRootBytesMax bytes.
std::string root_of(const json::Value& entry) {
  const auto member = entry.find("root");
  const auto text = member ? member->string() : std::nullopt;
  if (!text) return {};
  return std::string(text->substr(text->size() - std::min(text->size(), kRootBytesMax)));
}

ServedModel model_of(const json::Value& entry) {
  ServedModel model;
  model.id = text_of(entry, "id");
  model.parent = text_of(entry, "parent");
  model.owner = text_of(entry, "owned_by");
  model.root = root_of(entry);
  const auto created = entry.find("created");
  const auto time_s = created ? created->integer() : std::nullopt;
  if (time_s && *time_s > 0) model.created_s = static_cast<double>(*time_s);
  const auto length = entry.find("max_model_len");
  const auto tokens = length ? length->integer() : std::nullopt;
  // An impossible length counts as not reported. It does not break the rest of the answer.
  if (tokens && *tokens > 0 && *tokens <= kModelLenMax) {
    model.max_model_len = static_cast<std::uint32_t>(*tokens);
  }
  return model;
}

}  // namespace

Result<std::vector<ServedModel>> parse_models(std::string body) {
  const auto document = SL_TRY(parse_object(std::move(body), "/v1/models"));
  const auto entries = document.root().find("data");
  if (!entries || !entries->is(json::Kind::Array)) return corrupt("/v1/models: no list 'data'");
  if (entries->size() > kModelsMax) return corrupt("/v1/models: more than 256 entries");
  std::vector<ServedModel> models;
  for (const json::Value entry : *entries) {
    ServedModel model = model_of(entry);
    if (model.id.empty()) return corrupt("/v1/models: an entry without a usable id");
    models.push_back(std::move(model));
  }
  return models;
}

Result<bool> parse_sleep(std::string body, const std::string& path) {
  const auto document = SL_TRY(parse_object(std::move(body), path));
  const auto member = document.root().find("is_sleeping");
  const auto is_asleep = member ? member->boolean() : std::nullopt;
  if (!is_asleep) return corrupt(path + ": no flag 'is_sleeping'");
  return *is_asleep;
}

bool ServedModel::operator==(const ServedModel& other) const {
  return id == other.id && parent == other.parent && owner == other.owner &&
         max_model_len == other.max_model_len && root == other.root;
}

}  // namespace sightline::family
