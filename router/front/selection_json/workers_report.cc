// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/front/selection_json/workers_report.h"

#include <limits>
#include <utility>

#include "common/base/json.h"

#include "router/front/selection_json/json_fields.h"
#include "router/front/selection_json/limits.h"

namespace sightline::selection_json {
namespace {

constexpr std::uint64_t kNumber32Max = std::numeric_limits<std::uint32_t>::max();

Result<Done> read_models(json::Value models, fleet::ServedNames& names) {
  for (const json::Value value : models) {
    Fields fields(value, "models");
    const std::string id = fields.needed_text("id", kNameBytesMax);
    const auto parent = fields.text("parent", kNameBytesMax);
    SL_TRY(fields.check());
    names.add(id, parent.value_or(""));
  }
  return Done{};
}

}  // namespace

std::string write_told(const WorkersReport& told) {
  const fleet::Served& served = told.served;
  std::string out = R"({"identity":)" + json::to_quoted(told.identity) + R"(,"block_size":)" +
                    (served.block_size ? std::to_string(*served.block_size) : "null") +
                    R"(,"prompt_tokens_max":)" + std::to_string(served.prompt_tokens_max) +
                    R"(,"models":[)";
  std::size_t count = 0;
  for (const auto& model : served.models.all()) {
    const bool fits = model.id.size() <= kNameBytesMax && model.parent.size() <= kNameBytesMax;
    // read_told() would reject the whole report because of one long name.
    if (!fits || ++count > kModelsMax) continue;
    out += (out.back() == '[' ? R"({"id":)" : R"(,{"id":)") + json::to_quoted(model.id);
    if (!model.parent.empty()) out += R"(,"parent":)" + json::to_quoted(model.parent);
    out += "}";
  }
  out += R"(],"families":[)";
  for (const auto family : served.families) {
    out += (out.back() == '[' ? "" : ",") + json::to_quoted(contract::name_of(family));
  }
  out += "]";
  if (told.known) out += R"(,"known":)" + std::to_string(*told.known);
  if (!told.not_ready.empty()) out += R"(,"not_ready":)" + json::to_quoted(told.not_ready);
  if (!told.stale.empty()) out += R"(,"stale":)" + json::to_quoted(told.stale);
  return out + "}";
}

Result<WorkersReport> read_told(std::string body) {
  const json::Document document = SL_TRY(parse_object(std::move(body)));
  Fields fields(document.root());
  WorkersReport told;
  told.identity = fields.needed_text("identity", kNameBytesMax);
  if (fields.find("block_size")) {
    told.served.block_size = static_cast<std::uint32_t>(fields.number("block_size", kBlockSizeMax));
    if (*told.served.block_size == 0) fields.refuse("block_size", "must not be 0");
  }
  told.served.prompt_tokens_max =
      static_cast<std::uint32_t>(fields.number("prompt_tokens_max", kNumber32Max, 0));
  const auto models = fields.list("models", kModelsMax);
  const auto families = fields.list("families", contract::kEngineFamilies.size());
  if (fields.find("known")) {
    told.known = static_cast<std::uint32_t>(fields.number("known", kNumber32Max));
  }
  told.not_ready = fields.text("not_ready", kReasonBytesMax).value_or("");
  told.stale = fields.text("stale", kReasonBytesMax).value_or("");
  SL_TRY(fields.check());
  if (models) SL_TRY(read_models(*models, told.served.models));
  if (!families) return told;
  for (const json::Value value : *families) {
    const auto name = value.string().value_or("");
    bool is_known = false;
    for (const auto family : contract::kEngineFamilies) {
      if (contract::name_of(family) != name) continue;
      told.served.families.push_back(family);
      is_known = true;
    }
    if (!is_known) fields.refuse("families", "must be engine families");
  }
  SL_TRY(fields.check());
  return told;
}

}  // namespace sightline::selection_json
