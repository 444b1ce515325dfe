// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/replicas/load_exchange/load_exchange.h"

#include <algorithm>
#include <optional>
#include <stop_token>
#include <utility>
#include <variant>

#include <unistd.h>

#include "common/base/bytes.h"
#include "common/base/check.h"
#include "common/base/log.h"
#include "common/base/mutex.h"
#include "common/runtime/worker_thread.h"

#include "router/replicas/load_exchange/tallies.h"

namespace sightline::load_exchange {
namespace {

using load::BookCall;
using load::ReservationName;
using load::TakenNames;

// Several seconds of the messages of 64 routers in a large deployment.
constexpr nats::Inbox::Limits kInboxLimits{.messages_max = 65'536, .bytes_max = 32U << 20U};
// The most events that are read before a turn. A flood must not delay this router's own messages.
constexpr std::size_t kEventsPerTurnMax = 256;

// From the kernel's generator, so no other process can guess it.
std::uint64_t draw() {
  std::uint64_t number = 0;
  SL_CHECK(::getentropy(&number, sizeof number) == 0);
  return number;
}

}  // namespace

struct LoadExchange::State {
  State(const Me& me, const Deps& deps, LoadExchangeOptions given)
      : sealer(deps.sealer),
        load_subject(deps.subjects.load()),
        ask_subject(deps.subjects.load_asks()),
        instance(me.instance),
        options(std::move(given)),
        connection(deps.connection),
        book(deps.book),
        clock(deps.clock),
        queue(deps.queue),
        inbox(std::make_shared<nats::Inbox>(kInboxLimits)),
        tallies(deps.metrics),
        own(me.instance, me.name, options.own),
        others(me.instance, draw, options.others),
        taken(me.instance, options.taken) {
    // The lambda holds the inbox, not this object: request threads may call it until close().
    queue->open([kept = inbox] { kept->wake(); });
  }

  // The result of a turn, to carry out after the lock is released.
  struct TurnResult {
    std::vector<BookCall> calls;
    std::vector<load::LoadAsk> asks;
    std::vector<std::string> messages;
  };

  void run(const std::stop_token& stop);
  void listen_and_tell() SL_EXCLUDES(mutex);
  void lose() SL_EXCLUDES(mutex);
  void end();
  [[nodiscard]] Instant due() const SL_EXCLUDES(mutex);
  void hear_some(std::optional<nats::Event> event, Instant now) SL_EXCLUDES(mutex);
  void take(const nats::Event& event, Instant now) SL_REQUIRES(mutex);
  void hear(const nats::Message& message, Instant now) SL_REQUIRES(mutex);
  void connected(Instant now) SL_REQUIRES(mutex);
  TurnResult turn(Instant now) SL_EXCLUDES(mutex);
  [[nodiscard]] bool tells(Instant now) const SL_EXCLUDES(mutex);
  [[nodiscard]] LoadQueue::Content take_booked() const;
  void tell(TurnResult& outcome, Instant now) SL_REQUIRES(mutex);
  void count(Instant now) SL_REQUIRES(mutex);
  void act(const TurnResult& outcome, Instant now);
  void apply(const BookCall& call, Instant now);
  void publish(const std::string& subject, const std::string& message);

  const envelope::Sealer& sealer;
  const std::string load_subject;
  const std::string ask_subject;
  const std::uint64_t instance;
  const LoadExchangeOptions options;
  nats::Connection& connection;
  fleet::LoadBook& book;
  const Clock& clock;
  const std::shared_ptr<LoadQueue> queue;
  const std::shared_ptr<nats::Inbox> inbox;
  LoadQueue::Content booked;  // taken from the queue and not sent yet. Only the thread uses it.
  std::optional<WorkerThread> thread;

  mutable Mutex mutex;
  Tallies tallies SL_GUARDED_BY(mutex);
  load::OwnLoad own SL_GUARDED_BY(mutex);
  load::OthersLoad others SL_GUARDED_BY(mutex);
  TakenNames taken SL_GUARDED_BY(mutex);
  std::vector<ReservationName> superseded SL_GUARDED_BY(mutex);  // for supersede
};

void LoadExchange::State::run(const std::stop_token& stop) {
  connection.subscribe(load_subject, inbox);
  connection.subscribe(ask_subject, inbox);
  while (!stop.stop_requested()) {
    // If a turn ran out of memory, the messages of others that it lost are requested again.
    // Messages of ours that it lost are a gap for the others.
    if (!run_step([this] { listen_and_tell(); })) run_step([this] { lose(); });
  }
  end();
}

void LoadExchange::State::listen_and_tell() {
  auto event = inbox->take(due());
  // One time for the whole turn: the book and `others` then agree on who is silent.
  const Instant now = clock.now();
  // Takeovers of others are applied before ours are sent. A booking that was not sent yet counts as
  // the earlier one, on both sides.
  hear_some(std::move(event), now);
  act(turn(now), now);
}

void LoadExchange::State::lose() {
  const MutexLock lock(mutex);
  tallies.lost();
  others.missed(clock.now());
}

// From here on, no other router's load counts here, and the farewell removes ours there.
void LoadExchange::State::end() {
  connection.unsubscribe(load_subject, inbox);
  connection.unsubscribe(ask_subject, inbox);
  // Before the farewell: later bookings could not be sent.
  queue->close();
  std::string farewell;
  std::vector<load::OthersLoad::RouterLoad> sources;
  {
    const MutexLock lock(mutex);
    farewell = own.farewell();
    sources = others.sources(clock.now());
  }
  publish(load_subject, farewell);
  for (const auto& source : sources) book.forget(to_hex(source.instance));
}

Instant LoadExchange::State::due() const {
  const MutexLock lock(mutex);
  const Instant due = std::min(own.due(), others.due());
  return queue->is_empty() ? due : std::min(due, own.next_changes());
}

void LoadExchange::State::hear_some(std::optional<nats::Event> event, Instant now) {
  std::vector<ReservationName> ended;
  {
    const MutexLock lock(mutex);
    for (std::size_t i = 0; event && i < kEventsPerTurnMax; ++i) {
      take(*event, now);
      // The last place is not read beyond the limit, because its event would be lost.
      event = i + 1 < kEventsPerTurnMax ? inbox->take_now() : std::nullopt;
    }
    ended.swap(superseded);
  }
  // Outside of the lock, because the callback ends reservations, which puts changes into the queue.
  if (!ended.empty() && options.supersede) options.supersede(ended);
}

bool LoadExchange::State::tells(Instant now) const {
  const MutexLock lock(mutex);
  return own.due() <= now || own.next_changes() <= now;
}

LoadQueue::Content LoadExchange::State::take_booked() const {
  LoadQueue::Content content = queue->take();
  if (options.stands) {
    std::erase_if(content.taken, [this](const auto& name) { return !options.stands(name); });
  }
  return content;
}

LoadExchange::State::TurnResult LoadExchange::State::turn(Instant now) {
  // The queue is emptied only when a message is due. Until then it adds up changes.
  const bool is_telling = tells(now);
  if (is_telling && booked.deltas.empty()) booked = take_booked();
  TurnResult outcome;
  const MutexLock lock(mutex);
  if (is_telling) tell(outcome, now);
  auto theirs = others.turn(now);
  outcome.calls = std::move(theirs.calls);
  outcome.asks = std::move(theirs.asks);
  count(now);
  return outcome;
}

void LoadExchange::State::take(const nats::Event& event, Instant now) {
  if (const auto* message = std::get_if<nats::Message>(&event)) {
    hear(*message, now);
  } else if (std::holds_alternative<nats::Connected>(event)) {
    connected(now);
  } else if (std::holds_alternative<nats::Lost>(event)) {
    tallies.lost();
    others.missed(now);
  }
  // Without a connection no message arrives. Routers that are silent for too long stop counting by
  // their timeout.
}

void LoadExchange::State::hear(const nats::Message& message, Instant now) {
  const auto opened = sealer.open(message.subject, message.payload);
  if (const auto* refusal = std::get_if<envelope::Refusal>(&opened)) {
    // The metric counts by reason, so forged messages are visible.
    return tallies.left_aside(envelope::name_of(*refusal));
  }
  const auto read = load::decode(std::get<std::string_view>(opened));
  if (!read.ok()) return tallies.left_aside("malformed");
  if (const auto* told = std::get_if<load::LoadReport>(&*read)) {
    others.hear(*told, now);
  } else if (const auto* ask = std::get_if<load::LoadAsk>(&*read)) {
    own.asked(*ask);
  } else if (const auto* gone = std::get_if<load::Leave>(&*read)) {
    others.hear(*gone, now);
  } else if (const auto& theirs = std::get<load::Takeover>(*read); others.hear(theirs, now)) {
    auto names = taken.hear(theirs);
    std::move(names.begin(), names.end(), std::back_inserter(superseded));
  }
}

void LoadExchange::State::connected(Instant now) {
  const std::size_t room = connection.payload_max();
  const std::size_t least = load::kMessageBytesMin + envelope::kSealBytes;
  if (room < least) {
    log(LogLevel::Error, "the NATS server's max_payload is too small for load messages: raise it",
        {{"max_payload", room}, {"needed", least}});
  } else {
    own.set_message_bytes_max(std::min(options.own.message_bytes_max, room - envelope::kSealBytes));
    taken.set_message_bytes_max(
        std::min(options.taken.message_bytes_max, room - envelope::kSealBytes));
  }
  own.connected(now);
  others.connected(now);
}

void LoadExchange::State::tell(TurnResult& outcome, Instant now) {
  // One by one: a change that runs out of memory stays for the next turn.
  for (auto& deltas = booked.deltas; !deltas.empty(); deltas.erase(deltas.begin())) {
    own.take(deltas.begin()->first, deltas.begin()->second, now);
  }
  taken.take(std::move(booked.taken), now);
  tallies.taken_left_out(std::exchange(booked.taken_left_out, 0));
  const auto before = own.statistics();
  outcome.messages = own.turn(now);
  const auto& after = own.statistics();
  TakenNames::Again again = TakenNames::Again::Nothing;
  if (after.snapshots > before.snapshots) again = TakenNames::Again::Young;
  if (after.answers > before.answers) again = TakenNames::Again::ToAskers;
  // After the snapshot: it makes a router that asked count us, and takeovers of unknown routers are
  // ignored.
  auto names = taken.tell(again, now);
  std::move(names.begin(), names.end(), std::back_inserter(outcome.messages));
}

void LoadExchange::State::count(Instant now) {
  Duration age{};
  const auto sources = others.sources(now);
  for (const auto& source : sources) age = std::max(age, source.age);
  tallies.count({.own = own.statistics(),
                 .others = others.statistics(),
                 .taken = taken.statistics(),
                 .sources = sources.size(),
                 .age = age});
}

void LoadExchange::State::act(const TurnResult& outcome, Instant now) {
  for (const BookCall& call : outcome.calls) apply(call, now);
  for (const std::string& message : outcome.messages) publish(load_subject, message);
  for (const load::LoadAsk& ask : outcome.asks) publish(ask_subject, load::encode(ask));
}

// The book ignores a rank that this router does not know yet. The next snapshot repeats it.
void LoadExchange::State::apply(const BookCall& call, Instant now) {
  if (const auto* set = std::get_if<load::SetOthers>(&call)) {
    book.set_others(set->source, set->told.rank, set->told.load, now);
  } else if (const auto* heard = std::get_if<load::HearSource>(&call)) {
    book.hear(heard->source, now);
  } else {
    book.forget(std::get<load::ForgetSource>(call).source);
  }
}

// A message that cannot be sent is a gap for the others, and they ask.
void LoadExchange::State::publish(const std::string& subject, const std::string& message) {
  connection.publish(subject, sealer.seal(subject, message));
}

LoadExchange::LoadExchange(const Me& me, const Deps& deps, LoadExchangeOptions options)
    : state_(std::make_unique<State>(me, deps, std::move(options))) {
  state_->thread.emplace("sl-load",
                         [state = state_.get()](const std::stop_token& stop) { state->run(stop); });
}

LoadExchange::~LoadExchange() { stop(); }

std::string LoadExchange::json() const {
  const MutexLock lock(state_->mutex);
  return R"({"instance":")" + to_hex(state_->instance) + R"(","ranks":)" +
         std::to_string(state_->own.ranks()) + R"(,"sources":)" +
         state_->others.json(state_->clock.now()) + "}";
}

std::size_t LoadExchange::sources() const {
  const MutexLock lock(state_->mutex);
  return state_->others.sources(state_->clock.now()).size();
}

void LoadExchange::stop() {
  if (!state_->thread) return;
  state_->thread->request_stop();
  state_->inbox->wake();
  state_->thread->join();
  state_->thread.reset();
}

}  // namespace sightline::load_exchange
