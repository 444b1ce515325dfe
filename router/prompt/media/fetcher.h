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

#include "router/prompt/media/proxy_rules.h"

namespace sightline::media {

// Bounds of downloads. Every value is per download unless it says otherwise.
struct FetchLimits {
  std::uint64_t image_bytes_max = 20U << 20U;  // encoded bytes of one image
  std::chrono::milliseconds connect_timeout{5'000};
  std::chrono::milliseconds total_timeout{20'000};  // from the call to the last byte
  std::uint32_t redirects_max = 10;
  std::uint32_t downloads_max = 64;            // at the same time, over all orders
  std::uint64_t held_bytes_max = 512U << 20U;  // arrived and not yet given up, over all orders
  ByteBudget* memory = nullptr;  // what these are charged to besides; outlives all images
  int descriptor_max = std::numeric_limits<int>::max();  // those above are left for others
  bool allow_private_addresses = false;  // loopback, private, link-local; no metadata services
  ProxyRules proxies = {};
  std::string ca_file = {};  // PEM, trusted beside the system's; empty: these alone
};

// A download that brings less than this for this part of its time, and these seconds at least, is
// ended: a host that is silent or drips holds no place for long.
inline constexpr std::uint32_t kLeastBytesPerSecond = 1024;
inline constexpr std::uint32_t kSilenceShare = 4;
inline constexpr std::chrono::seconds kSilenceMin{5};
// A download that failed in a way that may pass is tried once more, after this time.
inline constexpr std::chrono::milliseconds kRetryPause{100};

// One order runs at most this part of the places that are free, and at least one download: a few
// orders whose hosts never answer leave places for others.
inline constexpr std::uint32_t kFreeShare = 8;
// Of one host (name and port) no more run than places are free, so that a host that never answers
// leaves half of them to others; this many may in any case.
inline constexpr std::size_t kHostDownloadsMin = 2;

struct FetchedImage {
  std::shared_ptr<const Bytes> bytes;  // never null; counts as held until it is given up
  std::string content_type;            // as the server said, possibly empty; not to be trusted
};

// The images that one request needs; it gets all or none.
struct FetchOrder {
  std::vector<std::string> urls;         // http or https; at least one
  std::uint64_t bytes_max = 64U << 20U;  // of all together
  // So many leading URLs are of images, each within image_bytes_max; the others are not.
  std::size_t images = std::numeric_limits<std::size_t>::max();
};

struct Fetched {
  std::vector<FetchedImage> images;  // in the order of the URLs; of no use after an error
  std::optional<Error> error;        // of the first download that failed, which ended the others
  std::size_t failed = 0;            // its place among the URLs
};

// Downloads images over http and https. The address is checked after name resolution, at the
// moment a socket is opened, so that neither a name, a redirect nor a changing DNS answer leads
// to an address that is not allowed. Where a proxy is asked, which resolves names itself, only a
// host that is written as an address, or as localhost, is checked.
// Bodies in gzip or deflate are decoded, within the limits; 200, 203 and a 206 of the whole are
// answers. After a 429, 500, 502, 503 or 504, a connection that is refused, reset or ends early,
// one more attempt is made. No cookie, .netrc or credential of ours is used.
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

  // For the orders that come later; memory, descriptor_max, allow_private_addresses, proxies and
  // ca_file stay as they are.
  void set_limits(const FetchLimits& limits);

  // Ends an order's downloads: done is called with Cancelled, unless it was called already.
  void cancel(OrderId order);

 private:
  class Loop;
  std::unique_ptr<Loop> loop_;
};

}  // namespace sightline::media
