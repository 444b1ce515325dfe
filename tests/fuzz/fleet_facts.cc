// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
//
// What an engine says about itself, and what an operator writes about a worker.
#include <string>

#include "common/base/check.h"
#include "common/contract/worker_spec.h"

#include "router/workers/fleet/discovery.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/target.h"

namespace sightline::fuzz {
namespace {

void check_models(std::string text) {
  const auto models = fleet::parse_models(std::move(text));
  if (!models.ok()) return;
  SL_CHECK(models->size() <= fleet::kModelsMax);
  for (const auto& model : *models) SL_CHECK(model.id.size() <= fleet::kNameBytesMax);
}

void check_version(const std::string& text) {
  const auto version = fleet::parse_version(text);
  if (version.ok()) SL_CHECK(version->text.size() <= vllm::kVersionBytesMax);
  const auto plain = vllm::parse_version(text);
  if (plain) SL_CHECK(plain->text == text);
}

void check_sources(std::string text) {
  const auto sources = fleet::parse_event_sources(std::move(text));
  if (!sources.ok()) return;
  SL_CHECK(sources->size() <= fleet::kRanksMax);
  contract::WorkerSpec spec{.name = "w", .url = "http://h:1", .host = "h", .port = 1};
  fleet::Probe probe;
  probe.sources = *sources;
  const auto found = fleet::discover(spec, probe);
  SL_CHECK(found.engines.size() <= fleet::kRanksMax);
  SL_CHECK(!found.engines.empty() || !found.reason.empty());
}

void check_metrics(std::string_view text) {
  const auto load = fleet::parse_metrics(text);
  if (!load.ok()) return;
  SL_CHECK(load->kv_usage >= 0 && load->kv_usage <= 1);
  SL_CHECK(load->block_size <= fleet::kBlockSizeMax);
  SL_CHECK(load->ranks.size() <= fleet::kRanksMax);
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
      return check_sources(text);
    case 2:
      return check_metrics(text);
    case 3:
      return check_worker(text);
    default:
      (void)fleet::resolve_events_endpoint(text, "host");
      (void)fleet::resolve_replay_endpoint(text, "host");
  }
}

}  // namespace sightline::fuzz
