// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/replicas/publisher/ask_limits.h"

namespace sightline::publisher {

bool ReaderLimits::admit(const std::string& reader, Instant now) {
  const auto is_over = [now](const Second& second) {
    return now - second.since >= std::chrono::seconds(1);
  };
  if (readers_.size() >= options_.readers_max && !readers_.contains(reader)) {
    std::erase_if(readers_, [&](const auto& one) { return is_over(one.second); });
    if (readers_.size() >= options_.readers_max) return false;
  }
  const auto [known, is_new] = readers_.try_emplace(reader);
  Second& second = known->second;
  if (is_new || is_over(second)) second = {.since = now};
  if (second.asks >= options_.asks_max || second.bytes >= options_.reply_bytes_max) return false;
  ++second.asks;
  return true;
}

void ReaderLimits::charge(const std::string& reader, std::size_t bytes) {
  const auto known = readers_.find(reader);
  if (known != readers_.end()) known->second.bytes += bytes;
}

}  // namespace sightline::publisher
