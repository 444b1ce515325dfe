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
#include "router/replicas/frames/message.h"
#include "router/replicas/publisher/frame_publisher.h"

namespace sightline::agent {

// Largest ask that is opened, in bytes, sealed: the longest that a router makes is less than half.
inline constexpr std::size_t kAskBytesMax = 4'096;

// A rank that the agent is to read.
struct WantedStream {
  frames::StreamName name;
  std::string reason;  // why it may have no feed, as one sentence
};

// All streams of an agent. Its thread, sl-agent, seals and sends what is ready, hears what routers
// ask, makes dumps and tells whoever reads the engines what routers wish. While NATS is away, or
// takes too little, what is not sent is counted; routers ask for it later.
// Thread safety: all methods from any thread; stop() from one.
class AgentStreams {
 public:
  struct Options {
    std::string agent;  // its name, for people
    // payload_bytes_max is lowered to what the server takes, once that is known.
    publisher::PublisherOptions publisher = {};
    std::function<std::uint64_t()> draw;             // random 64 bits, from any thread
    Duration look_around = std::chrono::seconds(1);  // how often `wanted` is asked
  };
  // Called on the agent's thread.
  struct Wishes {
    std::function<void(CacheId)> look;
    std::function<void(CacheId, bool replay)> relearn;
    // All ranks of the workers that the agent has: streams of others end, once they have no feed.
    std::function<std::vector<WantedStream>()> wanted;
  };
  // All outlive it.
  struct Around {
    nats::Connection& control;  // asks, what was asked for
    nats::Connection& events;   // frames, and answers that name their position
    const envelope::Sealer& sealer;
    const contract::Subjects& subjects;
    runtime::Metrics& metrics;
    const Clock& clock;
  };

  AgentStreams(Options options, Wishes wishes, const Around& around);
  ~AgentStreams();  // as stop()
  AgentStreams(const AgentStreams&) = delete;
  AgentStreams& operator=(const AgentStreams&) = delete;

  // The rank's events come under this id, by its sink and tell(), until close(). To be called
  // before they are read.
  void open(const frames::StreamName& name, CacheId cache);
  void close(CacheId cache);
  // Takes the operations of a cache that was opened; of another one: nothing. What was told of it
  // counts as long as the sink lives, which does not outlive this.
  std::unique_ptr<operations::OperationSink> make_sink(CacheId cache);
  void tell(CacheId cache, const Told& told);

  // From now on routers are told to send the workers nothing more.
  void drain();

  // By worker and rank.
  [[nodiscard]] std::vector<StreamView> views() const;
  // Done once NATS was connected; it may be away again. The error says why not, or that the server
  // takes too small messages for anything to be told.
  [[nodiscard]] Result<Done> check() const;
  // Brings metrics up to date; called before each scrape.
  void refresh_metrics();

  // Says on each stream that the agent ends, and ends the thread. Idempotent.
  void stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sightline::agent
