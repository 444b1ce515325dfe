// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <variant>

#include "common/nats/connection.h"

#include "tests/support/eventually.h"
#include "tests/support/nats_server.h"

namespace sightline::nats {

// A connection with one inbox.
struct Peer {
  explicit Peer(const std::string& urls, contract::NatsSettings settings = {},
                Inbox::Limits limits = {}, Sending sending = Sending::AtOnce)
      : inbox(std::make_shared<Inbox>(limits)) {
    settings.urls = urls;
    auto made = Connection::create({settings, "peer", sending}, metrics, system_clock());
    if (made.ok()) connection = std::move(*made);
  }

  // The next event in short: the payload of a message, "+", "-" or "lost N".
  std::string next() {
    const auto event = inbox->take(system_clock().now() + std::chrono::seconds(40));
    if (!event) return "nothing";
    if (const auto* message = std::get_if<Message>(&*event)) return message->payload;
    if (const auto* connected = std::get_if<Connected>(&*event)) return "+" + connected->subject;
    if (std::holds_alternative<Disconnected>(*event)) return "-";
    return "lost " + std::to_string(std::get<Lost>(*event).messages);
  }
  [[nodiscard]] bool has(const std::string& line) const {
    return metrics.scrape().find(line) != std::string::npos;
  }

  runtime::Metrics metrics;
  std::shared_ptr<Inbox> inbox;
  std::unique_ptr<Connection> connection;
};

}  // namespace sightline::nats
