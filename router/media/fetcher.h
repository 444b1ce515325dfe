// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "common/base/bytes.h"
#include "common/base/result.h"

namespace sightline::media {

// Bounds of downloads. Every value is per download unless it says otherwise.
struct FetchLimits {
  std::uint64_t image_bytes_max = 20U << 20U;  // encoded bytes of one image
  std::chrono::milliseconds connect_timeout{5'000};
  std::chrono::milliseconds total_timeout{20'000};  // from the call to the last byte
  std::uint32_t redirects_max = 3;
  std::uint32_t downloads_max = 64;      // at the same time, over all requests
  std::uint32_t waiting_max = 1'024;     // downloads that wait for one of those
  bool allow_private_addresses = false;  // loopback, private, link-local and the like
};

struct FetchedImage {
  std::shared_ptr<const Bytes> bytes;  // never null
  std::string content_type;            // as the server said, possibly empty; not to be trusted
};

// Downloads images over http and https. The address is checked after name resolution, at the
// moment a socket is opened, so that neither a name, a redirect nor a changing DNS answer leads
// to an address that is not allowed. No proxy, cookie, .netrc or credential of ours is used.
// Downloads are never shared between callers nor cached: what a URL names may change.
// Thread safety: fetch() from any thread. One thread of its own does the work.
class Fetcher {
 public:
  using Done = std::function<void(Result<FetchedImage>)>;

  explicit Fetcher(const FetchLimits& limits);
  // Ends the running downloads: their callbacks are called with Cancelled before it returns.
  ~Fetcher();
  Fetcher(const Fetcher&) = delete;
  Fetcher& operator=(const Fetcher&) = delete;

  // Calls done exactly once, on the fetcher's thread (or on the caller's when the waiting list is
  // full); done must be cheap and must not call fetch() in turn.
  // Errors, blamed on the client and naming only the host as the client wrote it: TooLarge,
  // Timeout, InvalidArgument (refused address or malformed URL), Unsupported (the server answered
  // an HTTP error), Unavailable (host unknown or unreachable), Overloaded, Cancelled.
  void fetch(std::string url, Done done);

 private:
  class Loop;
  std::unique_ptr<Loop> loop_;
};

}  // namespace sightline::media
