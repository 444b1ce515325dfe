// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/replicas/agent/agent_streams.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <optional>
#include <set>
#include <stop_token>
#include <utility>
#include <variant>

#include "common/base/log.h"
#include "common/base/mutex.h"
#include "common/contract/metrics_agents.h"
#include "common/nats/inbox.h"
#include "common/runtime/worker_thread.h"

#include "router/replicas/agent/agent_metrics.h"
#include "router/replicas/frames/stream_codec.h"

namespace sightline::agent {
namespace {

// Many routers may ask at the same moment after NATS returned. They repeat requests that found no
// room.
constexpr nats::Inbox::Limits kInboxLimits{.messages_max = 16'384, .bytes_max = 16U << 20U};
// The most requests that are read before the streams have their turn.
constexpr int kAsksPerTurn = 256;

// Why a request is dropped before a stream sees it.
enum class DropReason : std::uint8_t { TooLarge, TooShort, OtherVersion, WrongTag, Malformed };
constexpr std::array<std::string_view, 5> kUnheardNames = {
    "too-large", "too-short", "other-version", "wrong-tag", "malformed"};

DropReason unheard_by(envelope::Refusal refusal) {
  switch (refusal) {
    case envelope::Refusal::TooShort:
      return DropReason::TooShort;
    case envelope::Refusal::OtherVersion:
      return DropReason::OtherVersion;
    case envelope::Refusal::WrongTag:
      break;
  }
  return DropReason::WrongTag;
}

using Name = std::pair<std::string, std::uint32_t>;

Name key_of(const frames::StreamName& name) { return {name.worker, name.rank}; }

// A stream and its subjects.
struct Entry {
  frames::StreamName name;
  std::string events;  // subject of its messages to all
  std::string asks;    // subject of requests to it
  std::unique_ptr<RankStream> stream;
  std::atomic<std::uint64_t> unsent = 0;
};

// Keeps the stream of a feed alive while the feed is read.
class FeedSink final : public operations::OperationSink {
 public:
  FeedSink(std::shared_ptr<Entry> entry, CacheId cache) : entry_(std::move(entry)), cache_(cache) {
    entry_->stream->begin_feed(cache_);
  }
  ~FeedSink() override { entry_->stream->end_feed(cache_); }
  FeedSink(const FeedSink&) = delete;
  FeedSink& operator=(const FeedSink&) = delete;

  void take(const operations::CacheName& cache, const operations::Operation& operation) override {
    entry_->stream->take(cache_, cache, operation);
  }

 private:
  const std::shared_ptr<Entry> entry_;
  const CacheId cache_;
};

// For a cache that was closed before its reading began.
class NoSink final : public operations::OperationSink {
 public:
  void take(const operations::CacheName& /*cache*/,
            const operations::Operation& /*operation*/) override {}
};

}  // namespace

struct AgentStreams::State {
  State(Options given, Wishes wished, const Deps& with)
      : options(std::move(given)), wishes(std::move(wished)), deps(with), metrics(with.metrics) {
    for (std::size_t i = 0; i < kUnheardNames.size(); ++i) {
      unheard[i] = with.metrics.counter(contract::kAgentAsksRefusedTotal, {kUnheardNames[i]});
    }
  }

  std::shared_ptr<Entry> entry_of(const frames::StreamName& name) SL_REQUIRES(mutex);
  void run(const std::stop_token& stop);
  void renew_present();
  void turn();
  [[nodiscard]] Instant plan();
  void hear_some(Instant until);
  void hear(const nats::Message& message);
  void look_around(Instant now);
  void say_bye(Entry& entry);
  void learn_limit();
  void serve(Entry& entry, Instant now);
  void send(Entry& entry, const publisher::Outgoing& message);

  const Options options;
  const Wishes wishes;
  const Deps deps;
  AgentMetrics metrics;
  std::array<runtime::Counter, kUnheardNames.size()> unheard;
  const std::shared_ptr<nats::Inbox> inbox = std::make_shared<nats::Inbox>(kInboxLimits);
  // Until when the thread sleeps. A time in the past: it is awake, and looks at all streams before
  // it sleeps.
  std::atomic<Instant> planned = Instant::min();

  mutable Mutex mutex;  // held for memory work only
  std::map<Name, std::shared_ptr<Entry>> entries SL_GUARDED_BY(mutex);
  std::map<CacheId, std::shared_ptr<Entry>> feeds SL_GUARDED_BY(mutex);  // the open ones
  std::size_t payload_max SL_GUARDED_BY(mutex) = 0;  // of the servers, 0: never connected
  bool draining SL_GUARDED_BY(mutex) = false;
  std::uint64_t changes SL_GUARDED_BY(mutex) = 0;  // of entries

  // Members that only the thread uses.
  std::map<std::string, std::shared_ptr<Entry>> present;  // by the subject of requests
  std::uint64_t changes_seen = 0;
  Instant next_look{};

  std::optional<WorkerThread> thread;  // ends before all of the above
};

// A new stream gets the payload limit of the others, and drains if they drain.
std::shared_ptr<Entry> AgentStreams::State::entry_of(const frames::StreamName& name) {
  std::shared_ptr<Entry>& entry = entries[key_of(name)];
  if (entry) return entry;
  entry = std::make_shared<Entry>();
  entry->name = name;
  entry->events = deps.subjects.events(name.worker, name.rank);
  entry->asks = deps.subjects.asks(name.worker, name.rank);
  RankStream::Deps setup;
  setup.name = name;
  // The number is of this stream alone. When it ends, routers reject the number, but a stream of
  // the same name may begin later.
  setup.agent = {.name = options.agent, .number = options.draw()};
  setup.options = options.publisher;
  setup.draw = options.draw;
  setup.is_draining = draining;
  setup.told_due = [this](Instant due) {
    // The thread would wake later than this stream needs.
    if (due < planned.load()) inbox->wake();
  };
  entry->stream = std::make_unique<RankStream>(std::move(setup), deps.clock);
  if (payload_max >= publisher::kPayloadBytesMin) entry->stream->limit_payload(payload_max);
  ++changes;
  // Subscribed under the mutex, as look_around() unsubscribes. So the last call belongs to the
  // present stream.
  deps.control.subscribe(entry->asks, inbox);
  return entry;
}

void AgentStreams::State::run(const std::stop_token& stop) {
  // A turn that runs out of memory may lose frames. They are gaps for routers, which request them,
  // repeatedly if needed.
  while (!stop.stop_requested()) run_step([this] { turn(); });
  renew_present();
  for (const auto& [subject, entry] : present) {
    deps.control.unsubscribe(entry->asks, inbox);
    say_bye(*entry);
  }
}

void AgentStreams::State::turn() {
  renew_present();
  hear_some(plan());
  const Instant now = deps.clock.now();
  if (now >= next_look) look_around(now);
  for (const auto& [subject, entry] : present) {
    if (entry->stream->due() <= now) serve(*entry, now);
  }
}

void AgentStreams::State::renew_present() {
  const MutexLock lock(mutex);
  if (changes_seen == changes) return;
  present.clear();
  for (const auto& [name, entry] : entries) present.emplace(entry->asks, entry);
  changes_seen = changes;
}

// While the thread looks at the streams, each change of due() must wake it. So `planned` is far in
// the future first.
Instant AgentStreams::State::plan() {
  planned = Instant::max();
  Instant until = next_look;
  for (const auto& [subject, entry] : present) until = std::min(until, entry->stream->due());
  planned = until;
  return until;
}

void AgentStreams::State::hear_some(Instant until) {
  auto event = inbox->take(until);
  // From here on the thread is awake and needs no wake-up.
  planned = Instant::min();
  for (int left = kAsksPerTurn; event;) {
    if (const auto* message = std::get_if<nats::Message>(&*event)) hear(*message);
    if (std::holds_alternative<nats::Connected>(*event)) learn_limit();
    // Routers repeat lost requests.
    event = --left > 0 ? inbox->take_now() : std::nullopt;
  }
}

void AgentStreams::State::hear(const nats::Message& message) {
  const auto refuse = [this](DropReason why) { unheard[static_cast<std::size_t>(why)].add(); };
  const auto found = present.find(message.subject);
  if (found == present.end()) return;  // the stream has ended
  // The size is checked before the hash is computed.
  if (message.payload.size() > kAskBytesMax) return refuse(DropReason::TooLarge);
  const auto opened = deps.sealer.open(message.subject, message.payload, envelope::kAskVersion);
  if (const auto* refusal = std::get_if<envelope::Refusal>(&opened)) {
    return refuse(unheard_by(*refusal));
  }
  const auto ask = frames::decode(std::get<std::string_view>(opened));
  if (!ask.ok()) return refuse(DropReason::Malformed);
  found->second->stream->hear(*ask, deps.clock.now());
}

// Creates streams of ranks that are not read yet, so routers receive the reason why there are no
// events. Ends the streams of workers that have left.
void AgentStreams::State::look_around(Instant now) {
  next_look = now + options.look_around;
  learn_limit();
  std::set<Name> wanted;
  for (const WantedStream& one : wishes.wanted()) {
    wanted.insert(key_of(one.name));
    std::shared_ptr<Entry> entry;
    {
      const MutexLock lock(mutex);
      entry = entry_of(one.name);
    }
    entry->stream->explain(one.reason);
  }
  std::vector<std::shared_ptr<Entry>> ended;
  {
    const MutexLock lock(mutex);
    std::set<Entry*> open;
    for (const auto& [cache, entry] : feeds) open.insert(entry.get());
    std::erase_if(entries, [&](const auto& one) {
      const auto& entry = one.second;
      if (wanted.contains(one.first) || open.contains(entry.get()) || entry->stream->has_feed()) {
        return false;
      }
      ended.push_back(entry);
      // Before another stream of this name can be opened, which must receive its requests.
      deps.control.unsubscribe(entry->asks, inbox);
      return true;
    });
    if (!ended.empty()) ++changes;
  }
  for (const auto& entry : ended) say_bye(*entry);
  renew_present();
}

void AgentStreams::State::say_bye(Entry& entry) {
  for (const auto& message : entry.stream->bye()) send(entry, message);
}

// The two connections may have different servers, so the smaller limit counts.
void AgentStreams::State::learn_limit() {
  if (!deps.control.connected() || !deps.events.connected()) return;
  const std::size_t server_max = std::min(deps.control.payload_max(), deps.events.payload_max());
  const std::size_t bytes = server_max - std::min(server_max, envelope::kSealBytes);
  std::vector<std::shared_ptr<Entry>> all;
  {
    const MutexLock lock(mutex);
    if (payload_max == bytes) return;
    payload_max = bytes;
    // check() reports it. Frames would not fit.
    if (bytes < publisher::kPayloadBytesMin) return;
    for (const auto& [name, entry] : entries) all.push_back(entry);
  }
  for (const auto& entry : all) entry->stream->limit_payload(bytes);
}

void AgentStreams::State::serve(Entry& entry, Instant now) {
  const auto turn = entry.stream->turn(now);
  for (const auto& message : turn.outgoing) send(entry, message);
  if (turn.look) wishes.look(*turn.look);
  if (!turn.relearn) return;
  log(LogLevel::Warn, "a router requested a resync of a rank",
      {{"worker", entry.name.worker}, {"rank", entry.name.rank}, {"replay", turn.has_replay}});
  wishes.relearn(*turn.relearn, turn.has_replay);
}

void AgentStreams::State::send(Entry& entry, const publisher::Outgoing& message) {
  // On the other connection, an answer could overtake the frames before it. Routers would then see
  // a gap that does not exist.
  nats::Connection& connection = message.is_in_order ? deps.events : deps.control;
  const std::string subject =
      message.reader.empty() ? entry.events : deps.subjects.replies(message.reader);
  const bool is_sent = connection.connected() &&
                       connection.publish(subject, deps.sealer.seal(subject, message.payload));
  if (!is_sent) ++entry.unsent;
}

AgentStreams::AgentStreams(Options options, Wishes wishes, const Deps& deps)
    : state_(std::make_unique<State>(std::move(options), std::move(wishes), deps)) {
  State* shared = state_.get();  // the thread ends before the state
  state_->thread.emplace("sl-agent", [shared](const std::stop_token& stop) { shared->run(stop); });
}

AgentStreams::~AgentStreams() { stop(); }

void AgentStreams::open(const frames::StreamName& name, CacheId cache) {
  const MutexLock lock(state_->mutex);
  state_->feeds[cache] = state_->entry_of(name);
}

void AgentStreams::close(CacheId cache) {
  const MutexLock lock(state_->mutex);
  state_->feeds.erase(cache);
}

std::unique_ptr<operations::OperationSink> AgentStreams::make_sink(CacheId cache) {
  std::shared_ptr<Entry> entry;
  {
    const MutexLock lock(state_->mutex);
    const auto found = state_->feeds.find(cache);
    if (found != state_->feeds.end()) entry = found->second;
  }
  if (!entry) return std::make_unique<NoSink>();
  return std::make_unique<FeedSink>(std::move(entry), cache);
}

void AgentStreams::tell(CacheId cache, const CacheReport& told) {
  std::shared_ptr<Entry> entry;
  {
    const MutexLock lock(state_->mutex);
    const auto found = state_->feeds.find(cache);
    if (found == state_->feeds.end()) return;
    entry = found->second;
  }
  entry->stream->tell(cache, told);
}

void AgentStreams::drain() {
  std::vector<std::shared_ptr<Entry>> all;
  {
    const MutexLock lock(state_->mutex);
    state_->draining = true;
    for (const auto& [name, entry] : state_->entries) all.push_back(entry);
  }
  for (const auto& entry : all) entry->stream->drain();
}

std::vector<StreamView> AgentStreams::views() const {
  std::vector<std::shared_ptr<Entry>> all;
  {
    const MutexLock lock(state_->mutex);
    for (const auto& [name, entry] : state_->entries) all.push_back(entry);
  }
  std::vector<StreamView> views;
  for (const auto& entry : all) {
    views.push_back(entry->stream->view());
    views.back().unsent = entry->unsent;
  }
  return views;
}

Result<Done> AgentStreams::check() const {
  const MutexLock lock(state_->mutex);
  const std::size_t bytes = state_->payload_max;
  if (bytes >= publisher::kPayloadBytesMin) return Done{};
  if (bytes == 0) {
    return internal_error("not yet connected to NATS: " + state_->deps.control.trouble());
  }
  return internal_error("the NATS server accepts messages of at most " +
                        std::to_string(bytes + envelope::kSealBytes) +
                        " bytes, but the agent needs " +
                        std::to_string(publisher::kPayloadBytesMin + envelope::kSealBytes) +
                        ": raise the server's max_payload");
}

void AgentStreams::refresh_metrics() { state_->metrics.tell(views()); }

void AgentStreams::stop() {
  if (!state_->thread) return;
  state_->thread->request_stop();
  state_->inbox->wake();
  state_->thread->join();
}

}  // namespace sightline::agent
