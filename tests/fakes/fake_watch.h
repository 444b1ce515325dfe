// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "operator/kube/client/api_client.h"

namespace sightline::fakes {

// Whether an object is one of the selection: label requirements "a=b", "a==b", "a!=b", "a", "!a",
// and the fields metadata.name and metadata.namespace.
[[nodiscard]] bool is_selected(const client::Selection& selection, const object::Value& object);

// What a watch of the fake server has still to tell; the server writes, the watch reads.
// Thread safety: all methods from any thread.
class FakeStream {
 public:
  void push(std::string type, object::Value object);
  // After what was pushed: an end, or a failure.
  void end(std::optional<client::Failure> failure = {});
  [[nodiscard]] bool is_over() const;
  client::Answer<client::WatchEvent> next(Duration time_max);

 private:
  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::deque<client::WatchEvent> events_;
  bool is_over_ = false;
  std::optional<client::Failure> failure_;
};

class FakeWatch : public client::Watch {
 public:
  explicit FakeWatch(std::shared_ptr<FakeStream> stream) : stream_(std::move(stream)) {}
  ~FakeWatch() override { stream_->end(); }
  client::Answer<client::WatchEvent> next(Duration time_max) override {
    return stream_->next(time_max);
  }
  void cancel() override { stream_->end(); }

 private:
  std::shared_ptr<FakeStream> stream_;
};

}  // namespace sightline::fakes
