// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/http/idle_connections.h"

#include <cstddef>
#include <iterator>

#include "common/http/server_connection.h"

namespace sightline::http {
namespace {

// How many connections one call asks. Those whose client has just sent bytes refuse.
constexpr std::size_t kAskedMax = 16;

}  // namespace

void IdleConnections::Entry::enter(Instant now) {
  if (here_.empty()) return;
  here_.front().since = now;
  // To the end, so the list stays in the order of waiting.
  all_.waiting_.splice(all_.waiting_.end(), here_);
  node_ = std::prev(all_.waiting_.end());
  all_.publish();
}

void IdleConnections::Entry::leave() {
  if (!here_.empty()) return;
  here_.splice(here_.end(), all_.waiting_, node_);
  all_.publish();
}

bool IdleConnections::close_longest() {
  std::size_t asked = 0;
  for (auto node = waiting_.begin(); node != waiting_.end() && asked < kAskedMax; ++asked) {
    // A connection that gives way may leave the list in this call.
    auto* const connection = (node++)->connection;
    if (connection->give_way()) return true;
  }
  return false;
}

}  // namespace sightline::http
