// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/byte_budget.h"
#include "common/base/bytes.h"
#include "common/base/result.h"

namespace sightline::media {

// Bounds of downloads. Every value is per download unless it says otherwise.
struct FetchLimits {
  std::uint64_t image_bytes_max = 20U << 20U;  // encoded bytes of one image
  std::chrono::milliseconds connect_timeout{5'000};
  std::chrono::milliseconds total_timeout{20'000};  // from the call to the last byte
  std::uint32_t redirects_max = 3;
  std::uint32_t downloads_max = 64;            // at the same time, over all orders
  std::uint64_t held_bytes_max = 512U << 20U;  // arrived and not yet given up, over all orders
  ByteBudget* memory = nullptr;  // what these are charged to besides; outlives all images
  int descriptor_max = std::numeric_limits<int>::max();  // those above are left for others
  bool allow_private_addresses = false;  // loopback, private, link-local and the like
};

// One order runs at most this part of the places that are free, and at least one download: a few
// orders whose hosts never answer leave places for others.
inline constexpr std::uint32_t kFreeShare = 8;

struct FetchedImage {
  std::shared_ptr<const Bytes> bytes;  // never null; counts as held until it is given up
  std::string content_type;            // as the server said, possibly empty; not to be trusted
};

// The images that one request needs; it gets all or none.
struct FetchOrder {
  std::vector<std::string> urls;         // http or https; at least one
  std::uint64_t bytes_max = 64U << 20U;  // of all together
};

struct Fetched {
  std::vector<FetchedImage> images;  // in the order of the URLs; of no use after an error
  std::optional<Error> error;        // of the first download that failed, which ended the others
  std::size_t failed = 0;            // its place among the URLs
};

// Downloads images over http and https. The address is checked after name resolution, at the
// moment a socket is opened, so that neither a name, a redirect nor a changing DNS answer leads
// to an address that is not allowed. No proxy, cookie, .netrc or credential of ours is used.
// Downloads are never shared between callers nor cached: what a URL names may change.
// A free place goes to the order that has the fewest downloads running, the oldest of several.
// Thread safety: all methods from any thread. One thread of its own does the work.
class Fetcher {
 public:
  using Done = std::function<void(Fetched)>;
  enum class OrderId : std::uint64_t {};

  explicit Fetcher(const FetchLimits& limits);
  // Ends the running downloads: their callbacks are called with Cancelled before it returns.
  ~Fetcher();
  Fetcher(const Fetcher&) = delete;
  Fetcher& operator=(const Fetcher&) = delete;

  // Calls done exactly once, on the fetcher's thread; done must be cheap and must not call the
  // fetcher in turn.
  // Errors, blamed on the client and naming only the host as the client wrote it: TooLarge (an
  // image, or all together), Timeout, InvalidArgument (refused address or malformed URL),
  // Unsupported (the server answered an HTTP error), Unavailable (host unknown or unreachable),
  // Cancelled. Not the client's: Overloaded, when no place became free in time or too many bytes
  // are held.
  OrderId fetch(FetchOrder order, Done done);

  // For the orders that come later; memory, descriptor_max and allow_private_addresses stay as they
  // are.
  void set_limits(const FetchLimits& limits);

  // Ends an order's downloads: done is called with Cancelled, unless it was called already.
  void cancel(OrderId order);

 private:
  class Loop;
  std::unique_ptr<Loop> loop_;
};

}  // namespace sightline::media
