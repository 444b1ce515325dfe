// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/cli/engine_watch.h"

#include <condition_variable>
#include <mutex>
#include <utility>

#include "common/base/log.h"

namespace sightline::cli {

EngineWatch::EngineWatch(events::EventSubscriber& subscriber, const prepare::Model& model,
                         std::string scope_model)
    : subscriber_(subscriber), model_(model), scope_model_(std::move(scope_model)) {}

void EngineWatch::engine_ready(const fleet::EngineEndpoints& engine) {
  events::EngineEndpoints endpoints{.events = engine.events, .bind = engine.bind};
  if (!engine.replay.empty()) endpoints.replay = engine.replay;
  events::NormaliserOptions options{.engine = engine.engine, .model = scope_model_};
  if (engine.block_size > 0) options.block_size_configured = engine.block_size;
  const prompt::Placeholders& placeholders = model_.profile.placeholders;
  for (const auto& token : {placeholders.image, placeholders.video}) {
    if (token) options.media_tokens.push_back(*token);
  }
  const auto added = subscriber_.add(endpoints, std::move(options));
  if (added.ok()) return;
  log(LogLevel::Error, "cannot follow the events of a worker",
      {{"worker", engine.worker}, {"rank", engine.rank}, {"error", added.error().message}});
}

void EngineWatch::engine_removed(EngineId engine) { subscriber_.remove(engine); }

void EngineWatch::look(fleet::Fleet& fleet) {
  for (const events::EngineStatus& status : subscriber_.statuses()) {
    const auto size = status.block_size_conflict ? status.block_size_conflict : status.block_size;
    // A configured size that no event has confirmed is not news.
    if (!size || !status.sequence) continue;
    std::uint32_t& told = told_[status.engine];
    if (told == *size) continue;
    told = *size;
    fleet.set_block_size_from_events(status.engine, *size);
  }
}

void EngineWatch::start(fleet::Fleet& fleet) {
  thread_.emplace("engine-watch", [this, &fleet](std::stop_token stop) {
    std::mutex mutex;
    std::condition_variable_any stopped;
    std::unique_lock lock(mutex);
    while (!stop.stop_requested()) {
      look(fleet);
      stopped.wait_for(lock, stop, kInterval, [] { return false; });
    }
  });
}

void EngineWatch::stop() { thread_.reset(); }

}  // namespace sightline::cli
