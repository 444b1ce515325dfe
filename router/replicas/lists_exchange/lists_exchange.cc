// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/replicas/lists_exchange/lists_exchange.h"

#include <algorithm>
#include <optional>
#include <stop_token>
#include <utility>
#include <variant>

#include "common/base/bytes.h"
#include "common/base/log.h"
#include "common/contract/metrics_process.h"
#include "common/contract/metrics_requests.h"
#include "common/runtime/worker_thread.h"

namespace sightline::lists_exchange {
namespace {

// All replicas may ask at the same moment, and a list comes in parts.
constexpr nats::Inbox::Limits kInboxLimits{.messages_max = 8192, .bytes_max = 16U << 20U};
// How often announcements are read.
constexpr Duration kLookAtAnnouncements = std::chrono::milliseconds(500);
// The most events that are read before a turn. Others can send as many as they like, and each turn
// costs work.
constexpr int kEventsPerTurn = 64;

}  // namespace

struct ListsExchange::State {
  State(const Deps& given, Hooks called, ListExchangeOptions options)
      : deps(given),
        hooks(std::move(called)),
        answers_subject(deps.subjects.lists(deps.instance)),
        inbox(std::make_shared<nats::Inbox>(kInboxLimits)),
        exchange(deps.instance, deps.seed, deps.clock.now(), options) {}

  const Deps deps;
  const Hooks hooks;
  const std::string answers_subject;
  const std::shared_ptr<nats::Inbox> inbox;
  std::optional<WorkerThread> thread;

  // Members that only the thread uses.
  ListExchange exchange;
  Instant next_look{};             // at announcements
  std::uint64_t told_fork_of = 0;  // the last generation of which a fork was logged

  void run(const std::stop_token& stop) {
    deps.connection.subscribe(deps.subjects.list_asks(), inbox);
    deps.connection.subscribe(answers_subject, inbox);
    // A turn that runs out of memory loses messages. They are requested again.
    while (!stop.stop_requested()) run_step([this] { turn(); });
    deps.connection.unsubscribe(deps.subjects.list_asks(), inbox);
    deps.connection.unsubscribe(answers_subject, inbox);
  }

  void turn() {
    auto event = inbox->take(std::min(exchange.due(), next_look));
    // The list may have changed since the last turn. Answers must name the present one.
    exchange.set_own(hooks.own());
    for (int left = kEventsPerTurn; event;) {
      take(*event);
      event = --left > 0 ? inbox->take_now() : std::nullopt;
    }
    look_at_announcements(deps.clock.now());
    act(exchange.turn(deps.clock.now()));
  }

  void look_at_announcements(Instant now) {
    if (now < next_look) return;
    next_look = now + kLookAtAnnouncements;
    exchange.announced(hooks.announced(), now);
  }

  void take(const nats::Event& event) {
    if (const auto* message = std::get_if<nats::Message>(&event)) return hear(*message);
    const auto* connected = std::get_if<nats::Connected>(&event);
    if (connected == nullptr) return;  // lost messages are requested again
    const std::size_t around_bytes = kPartHeadBytes + envelope::kSealBytes;
    const std::size_t room = deps.connection.payload_max();
    exchange.set_part_bytes_max(room - std::min(room, around_bytes));
    exchange.connected(deps.clock.now());
  }

  void hear(const nats::Message& message) {
    // Answers arrive on our own subject, questions on the subject of all.
    const bool is_asked = message.subject != answers_subject;
    const auto opened = deps.sealer.open(message.subject, message.payload, version(is_asked));
    const auto* bytes = std::get_if<std::string_view>(&opened);
    if (bytes == nullptr) return count("forged");
    auto said = decode(*bytes);
    // A question on our own subject, or an answer on that of all, is no message of a replica.
    if (!said.ok() || std::holds_alternative<ListAsk>(*said) != is_asked) return count("malformed");
    exchange.hear(std::move(*said), deps.clock.now());
  }

  void act(ListExchange::Actions turn) {
    for (const ListAsk& ask : turn.asks) say(deps.subjects.list_asks(), ask);
    for (const auto& [asker, answer] : turn.answers) say(deps.subjects.lists(asker), answer);
    if (turn.unanswered > 0) {
      deps.metrics.counter(contract::kLimitHitsTotal, {"list-answers"})
          .add(static_cast<double>(turn.unanswered));
    }
    if (turn.repeated > 0) {
      deps.metrics.counter(contract::kPushesTotal, {"peers", "repeated"})
          .add(static_cast<double>(turn.repeated));
    }
    if (turn.forked) tell_fork(*turn.forked);
    if (turn.list) hooks.offer(std::move(*turn.list));
    if (turn.does_without) hooks.does_without();
  }

  void say(const std::string& subject, const Message& message) {
    const bool is_ask = std::holds_alternative<ListAsk>(message);
    deps.connection.publish(subject, deps.sealer.seal(subject, encode(message), version(is_ask)));
  }

  static std::uint8_t version(bool is_ask) {
    return is_ask ? envelope::kAskVersion : envelope::kVersion;
  }

  void tell_fork(std::uint64_t peer) {
    count("forked");
    const std::uint64_t generation = hooks.own().generation;
    // A peer repeats its answer to each question, so one line for a generation is enough.
    if (std::exchange(told_fork_of, generation) == generation) return;
    log(LogLevel::Error,
        "a peer has another worker list of the same generation: push a list of a higher generation",
        {{"generation", generation}, {"peer", to_hex(peer)}});
  }

  void count(std::string_view result) {
    deps.metrics.counter(contract::kPushesTotal, {"peers", result}).add();
  }
};

ListsExchange::ListsExchange(const Deps& deps, Hooks hooks, ListExchangeOptions options)
    : state_(std::make_unique<State>(deps, std::move(hooks), options)) {
  state_->thread.emplace("sl-lists",
                         [state = state_.get()](const std::stop_token& stop) { state->run(stop); });
}

ListsExchange::~ListsExchange() { stop(); }

void ListsExchange::own_changed() { state_->inbox->wake(); }

void ListsExchange::stop() {
  if (!state_->thread) return;
  state_->thread->request_stop();
  state_->inbox->wake();
  state_->thread->join();
  state_->thread.reset();
}

}  // namespace sightline::lists_exchange
