// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/base/result.h"
#include "common/contract/subjects.h"
#include "common/nats/connection.h"
#include "common/runtime/metrics.h"

#include "router/cache/operations/operation.h"
#include "router/replicas/agent/rank_stream.h"
#include "router/replicas/envelope/envelope.h"
#include "router/replicas/frames/stream_message.h"
#include "router/replicas/publisher/frame_publisher.h"

namespace sightline::agent {

// The most bytes of a request that the agent opens, with its seal. The longest request of a router
// has less than half as many.
inline constexpr std::size_t kAskBytesMax = 4'096;

// A rank that the agent should read.
struct WantedStream {
  frames::StreamName name;
  // Why it may have no feed, as one sentence.
  std::string reason;
};

// All streams of an agent. Its thread, sl-agent, seals and sends ready messages, answers routers'
// requests and makes dumps. It passes routers' requests about an engine to the reader of the
// engine. While NATS is away or too slow, unsent messages are only counted. Routers request them
// later. Thread safety: all methods from any thread, stop() from one.
class AgentStreams {
 public:
  // Settings of the agent.
  struct Options {
    // Its name, for people.
    std::string agent;
    // payload_bytes_max is lowered to the NATS servers' limit as soon as it is known.
    publisher::PublisherOptions publisher = {};
    // 64 random bits, from any thread.
    std::function<std::uint64_t()> draw;
    // The pause between calls of `wanted`.
    Duration look_around = std::chrono::seconds(1);
  };
  // Called on the agent's thread.
  struct Wishes {
    // Read the engine's events now, and then call `tell()`.
    std::function<void(CacheId)> look;
    // Resync the cache, from the engine's replay if it has one.
    std::function<void(CacheId, bool replay)> relearn;
    // Returns all ranks of the agent's workers. Streams of other ranks end when they have no feed.
    std::function<std::vector<WantedStream>()> wanted;
  };
  // The objects that it uses. All outlive it.
  struct Deps {
    // The connection for requests and for replies to them.
    nats::Connection& control;
    // The connection for frames, and for answers that name a position in them.
    nats::Connection& events;
    const envelope::Sealer& sealer;
    const contract::Subjects& subjects;
    runtime::Metrics& metrics;
    const Clock& clock;
  };

  // Starts the thread.
  AgentStreams(Options options, Wishes wishes, const Deps& deps);
  ~AgentStreams();  // calls stop()
  AgentStreams(const AgentStreams&) = delete;
  AgentStreams& operator=(const AgentStreams&) = delete;

  // From now on the rank's events come under this id, by its sink and `tell()`, until close(). Call
  // it before they are read.
  void open(const frames::StreamName& name, CacheId cache);
  void close(CacheId cache);
  // Returns the sink for a cache that was opened. For another cache it ignores everything. `tell()`
  // counts for this cache as long as the sink lives. The sink must not outlive this object.
  std::unique_ptr<operations::OperationSink> make_sink(CacheId cache);
  // Sets the facts of a cache. Ignores an unknown one.
  void tell(CacheId cache, const CacheReport& told);

  // From now on the streams request that routers send the workers no more requests.
  void drain();

  // All streams, by worker and rank.
  [[nodiscard]] std::vector<StreamView> views() const;
  // Returns Done once NATS was connected, even if it is away again. The error says why it never
  // was, or that the server's largest message is too small.
  [[nodiscard]] Result<Done> check() const;
  // Brings the metrics up to date. Called before each scrape.
  void refresh_metrics();

  // Announces on each stream that the agent ends, and ends the thread. May be called twice.
  void stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sightline::agent
