// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include "operator/kube/client/api_client.h"
#include "operator/kube/rest/line_splitter.h"
#include "operator/kube/rest/transport.h"

namespace sightline::rest {

// A watch in the API server's form: one JSON object a line.
// Thread safety: next() from one thread, cancel() from any.
class RestWatch : public client::Watch {
 public:
  RestWatch(std::unique_ptr<Stream> stream, std::size_t line_bytes_max)
      : stream_(std::move(stream)), lines_(line_bytes_max) {}

  client::Answer<client::WatchEvent> next(Duration time_max) override;
  void cancel() override { stream_->cancel(); }

 private:
  const std::unique_ptr<Stream> stream_;
  LineSplitter lines_;
};

}  // namespace sightline::rest
