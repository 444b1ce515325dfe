// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <atomic>
#include <list>

#include "common/base/clock.h"

namespace sightline::http {

class ServerConnection;

// The connections of one I/O thread that wait for a request. The one that waits longest is first.
// The server closes it when it needs a descriptor, a place or memory for a new connection.
// Thread safety: waits_since() from any thread, the rest on the I/O thread.
class IdleConnections {
 public:
  IdleConnections() = default;
  ~IdleConnections() = default;
  IdleConnections(const IdleConnections&) = delete;
  IdleConnections& operator=(const IdleConnections&) = delete;

  // The place of a connection in the list. The list and the connection outlive it.
  class Entry {
   public:
    Entry(IdleConnections& all, ServerConnection& connection) : all_(all) {
      here_.push_back({&connection, {}});
    }
    ~Entry() { leave(); }
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;
    // Appends the connection to the list. If the list has it already, it keeps its place.
    void enter(Instant now);
    // Removes the connection. No effect if the list does not have it.
    void leave();

   private:
    friend class IdleConnections;
    struct Node {
      ServerConnection* connection;
      Instant since;
    };
    IdleConnections& all_;
    // The node while the list does not have it. To move a node between lists needs no memory.
    std::list<Node> here_;
    // Its position while the list has it.
    std::list<Node>::iterator node_;
  };

  // Since when the first connection waits. Instant::max(): the list is empty.
  [[nodiscard]] Instant waits_since() const { return since_.load(std::memory_order_relaxed); }
  // Closes the first connection whose client has sent nothing. Returns false without one.
  bool close_longest();

 private:
  // Publishes the first waiting time for other threads.
  void publish() {
    since_.store(waiting_.empty() ? Instant::max() : waiting_.front().since,
                 std::memory_order_relaxed);
  }

  std::list<Entry::Node> waiting_;
  std::atomic<Instant> since_ = Instant::max();
};

}  // namespace sightline::http
