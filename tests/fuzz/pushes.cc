// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
//
// Parses pushes on the admin port, and messages of routers about pushed lists.
#include <string>

#include "common/base/check.h"
#include "common/base/json.h"
#include "common/contract/live_settings.h"

#include "router/replicas/lists_exchange/list_exchange.h"
#include "router/workers/lists/list_in_force.h"
#include "router/workers/lists/pushed.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/target.h"

namespace sightline::fuzz {
namespace {

void check_workers(const std::string& body) {
  const auto pushed = lists::parse_pushed_workers(body);
  if (!pushed.ok()) {
    SL_CHECK(pushed.error().blame == Blame::Client);
    return;
  }
  SL_CHECK(pushed->generation > 0 && pushed->workers.size() <= lists::kPushedWorkersMax);
  for (const auto& worker : pushed->workers) SL_CHECK(worker.api_key_file.empty());
  SL_CHECK(lists::judge(pushed->revision, &*pushed, *pushed) == lists::ListVerdict::Same);
  const auto same = lists::difference(pushed->workers, pushed->workers);
  SL_CHECK(same.kept.size() == pushed->workers.size() && same.changed.empty());
  SL_CHECK(lists::digest_of(*pushed) == lists::digest_of(*lists::parse_pushed_workers(body)));
}

void check_settings(const std::string& body) {
  const contract::ServeSettings start;
  const auto pushed = contract::push_settings(start, start, body);
  if (!pushed.ok()) {
    SL_CHECK(pushed.error().blame == Blame::Client);
    return;
  }
  SL_CHECK(pushed->changes.size() <= pushed->pushed.size());
  for (const std::string& path : pushed->pushed) SL_CHECK(contract::is_live(path));
  const auto again = contract::push_settings(start, pushed->settings, body);
  SL_CHECK(again.ok() && again->changes.empty());
  SL_CHECK(json::Document::parse(contract::settings_json(pushed->settings, {}, {})).ok());
}

// Checks that no message makes the exchange give out a list. No request was answered with its
// nonce.
void check_message(const std::string& bytes) {
  const auto message = lists_exchange::decode(bytes);
  if (!message.ok()) return;
  const std::string written = lists_exchange::encode(*message);
  SL_CHECK(written == bytes);
  const Instant now{std::chrono::hours(1)};
  lists_exchange::ListExchange exchange(1, 77, now);
  exchange.set_own({5, 1, std::make_shared<const std::string>("{}")});
  exchange.connected(now);
  static_cast<void>(exchange.turn(now));
  exchange.hear(*message, now);
  const auto turn = exchange.turn(now);
  SL_CHECK(!turn.list && turn.asks.empty() && turn.answers.size() <= 1);
}

}  // namespace

void run(ByteView bytes) {
  Input input(bytes);
  const std::uint8_t kind = input.byte() % 3;
  const std::string text(text_of(input.rest()));
  if (kind == 0) check_workers(text);
  if (kind == 1) check_settings(text);
  if (kind == 2) check_message(text);
}

}  // namespace sightline::fuzz
