// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <atomic>
#include <list>

#include "common/base/clock.h"

namespace sightline::http {

class ServerConnection;

// The connections of one I/O thread that wait for a request, the one that waits longest first.
// Thread safety: waits_since() from any thread, the rest on that I/O thread.
class IdleConnections {
 public:
  IdleConnections() = default;
  ~IdleConnections() = default;
  IdleConnections(const IdleConnections&) = delete;
  IdleConnections& operator=(const IdleConnections&) = delete;

  // A connection's place in the list, which both outlive.
  class Entry {
   public:
    Entry(IdleConnections& all, ServerConnection& connection) : all_(all) {
      here_.push_back({&connection, {}});
    }
    ~Entry() { leave(); }
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;
    // Keeps its place if it is in the list.
    void enter(Instant now);
    // Does nothing if it is not in the list.
    void leave();

   private:
    friend class IdleConnections;
    struct Node {
      ServerConnection* connection;
      Instant since;
    };
    IdleConnections& all_;
    std::list<Node> here_;  // the node while it is not in the list: moving it takes no memory
    std::list<Node>::iterator node_;  // while it is
  };

  // Since when the first of the list waits; Instant::max(): it is empty.
  [[nodiscard]] Instant waits_since() const { return since_.load(std::memory_order_relaxed); }
  // Has the first give way whose client has sent nothing. False: there is none.
  bool close_longest();

 private:
  void publish() {
    since_.store(waiting_.empty() ? Instant::max() : waiting_.front().since,
                 std::memory_order_relaxed);
  }

  std::list<Entry::Node> waiting_;
  std::atomic<Instant> since_ = Instant::max();
};

}  // namespace sightline::http
