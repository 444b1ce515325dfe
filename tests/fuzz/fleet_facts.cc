// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
//
// Parses what an engine reports about itself, and what an operator writes about a worker.
#include <string>

#include "common/base/check.h"
#include "common/contract/worker_spec.h"

#include "router/engine/families/families.h"
#include "router/engine/family/models.h"
#include "router/workers/fleet/discovery.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/target.h"

namespace sightline::fuzz {
namespace {

void check_models(std::string text) {
  const auto models = family::parse_models(std::move(text));
  if (!models.ok()) return;
  SL_CHECK(models->size() <= family::kModelsMax);
  for (const auto& model : *models) SL_CHECK(model.id.size() <= family::kNameBytesMax);
}

void check_version(const std::string& text) {
  for (const auto family : contract::kEngineFamilies) {
    const auto version = families::family_of(family).parse_version(text);
    if (version.ok()) SL_CHECK(version->text.size() <= family::kVersionBytesMax);
  }
  const auto plain = family::parse_version(text);
  if (plain) SL_CHECK(plain->text == text);
}

void check_sources(const std::string& text, contract::EngineFamily family) {
  const auto sources = families::family_of(family).parse_sources(text);
  if (!sources.ok()) return;
  SL_CHECK(sources->size() <= contract::kRanksMax);
  contract::WorkerSpec spec{.name = "w", .url = "http://h:1", .host = "h", .port = 1};
  fleet::Probe probe;
  probe.sources = *sources;
  const auto found = fleet::discover(spec, probe);
  SL_CHECK(!found.ranks.empty() && found.ranks.size() <= contract::kRanksMax);
  SL_CHECK(found.has_events() == found.reason.empty());
}

void check_load(const std::string& text, contract::EngineFamily family) {
  const auto load = families::family_of(family).parse_load(text);
  if (!load.ok()) return;
  SL_CHECK(load->kv_usage >= 0 && load->kv_usage <= 1);
  SL_CHECK(load->block_size <= family::kBlockSizeMax);
  SL_CHECK(load->ranks.size() <= contract::kRanksMax);
}

void check_worker(std::string_view text) {
  const auto worker = contract::parse_worker(text);
  if (!worker.ok()) return;
  const auto again = contract::parse_worker(contract::worker_text(*worker));
  SL_CHECK(again.ok() && *again == *worker);
}

}  // namespace

void run(ByteView bytes) {
  Input input(bytes);
  const auto kind = input.byte();
  const std::string text(input.text());
  switch (kind % 5) {
    case 0:
      check_version(text);
      return check_models(text);
    case 1:
      for (const auto family : contract::kEngineFamilies) check_sources(text, family);
      return;
    case 2:
      for (const auto family : contract::kEngineFamilies) check_load(text, family);
      return;
    case 3:
      return check_worker(text);
    default:
      (void)family::resolve_events_endpoint(text, "host");
      (void)family::resolve_replay_endpoint(text, "host");
  }
}

}  // namespace sightline::fuzz
