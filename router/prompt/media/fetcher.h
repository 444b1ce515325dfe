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

// Limits of downloads. Each value holds for one download, unless it says otherwise.
struct FetchLimits {
  // media.image_bytes_max: encoded bytes of one image.
  std::uint64_t image_bytes_max = 20U << 20U;
  // media.connect_timeout.
  std::chrono::milliseconds connect_timeout{5'000};
  // media.fetch_timeout: from fetch() to the last byte.
  std::chrono::milliseconds total_timeout{20'000};
  // media.redirects_max.
  std::uint32_t redirects_max = 10;
  // media.downloads_max: downloads at the same time, of all orders.
  std::uint32_t downloads_max = 64;
  // media.held_bytes_max: bytes of images that exist, of all orders.
  std::uint64_t held_bytes_max = 512U << 20U;
  // A second budget that these bytes count towards, or null. It must live longer than all images.
  ByteBudget* memory = nullptr;
  // Sockets with this number or a higher one are closed. These descriptors are for other users.
  int descriptor_max = std::numeric_limits<int>::max();
  // media.allow_private_addresses: loopback, private and link-local addresses. Metadata services
  // stay forbidden.
  bool allow_private_addresses = false;
  ProxyRules proxies = {};
  // media.ca_file: PEM certificates that are trusted in addition to those of the system.
  std::string ca_file = {};
};

// The slowest download that may continue. The fetcher ends a download slower than
// kLeastBytesPerSecond for 1/kSilenceShare of its total_timeout, and for kSilenceMin at least. A
// silent or dripping host therefore does not hold a slot for long.
inline constexpr std::uint32_t kLeastBytesPerSecond = 1024;
inline constexpr std::uint32_t kSilenceShare = 4;
inline constexpr std::chrono::seconds kSilenceMin{5};
// The pause before the one retry of a download whose failure may be temporary.
inline constexpr std::chrono::milliseconds kRetryPause{100};

// One order runs at most 1/kFreeShare of the free slots, and at least one download. A few orders
// whose hosts never answer therefore leave slots for others.
inline constexpr std::uint32_t kFreeShare = 8;
// Downloads of one host (name and port) that may always run. Above this number, no more downloads
// of a host run than slots are free. A host that never answers therefore leaves half of the slots
// to others.
inline constexpr std::size_t kHostDownloadsMin = 2;

// A downloaded image.
struct FetchedImage {
  // Never null. The bytes count towards held_bytes_max while any owner exists.
  std::shared_ptr<const Bytes> bytes;
  // The server's Content-Type, perhaps empty. It may be wrong.
  std::string content_type;
};

// The downloads that one request needs. The request gets all of them or an error.
struct FetchOrder {
  // http or https URLs, at least one.
  std::vector<std::string> urls;
  // The most bytes of all downloads together.
  std::uint64_t bytes_max = 64U << 20U;
  // The number of leading URLs that are images. Only these have the limit image_bytes_max.
  std::size_t images = std::numeric_limits<std::size_t>::max();
};

struct Fetched {
  // In the order of the URLs. Not valid after an error.
  std::vector<FetchedImage> images;
  // The error of the first download that failed. The fetcher has ended the others.
  std::optional<Error> error;
  // The index of the URL that failed.
  std::size_t failed = 0;
};

// Downloads images over HTTP and HTTPS.
//
// It checks each address after name resolution, when libcurl opens a socket. So no name, redirect
// or changing DNS answer leads to a forbidden address. A proxy resolves names itself. The fetcher
// then checks only hosts written as an IP address or as localhost.
//
// It decodes bodies in gzip or deflate, within the limits. It accepts the statuses 200 and 203, and
// 206 with the whole body. It makes one more attempt after 429, 500, 502, 503 and 504. It does the
// same if a connection is refused, reset or ends early. It uses no cookies, no .netrc and no
// credentials of the router.
//
// Callers never share downloads, and nothing is cached, because the content of a URL may change. A
// free slot goes to the order with the fewest running downloads, and to the oldest of several.
//
// Thread safety: any thread may call any method. One thread of the fetcher does the work.
class Fetcher {
 public:
  using Done = std::function<void(Fetched)>;
  enum class OrderId : std::uint64_t {};

  explicit Fetcher(const FetchLimits& limits);
  // Ends the running downloads. It calls their callbacks with Cancelled before it returns.
  ~Fetcher();
  Fetcher(const Fetcher&) = delete;
  Fetcher& operator=(const Fetcher&) = delete;

  // Starts an order. Calls `done` exactly once, on the fetcher's thread. `done` must be cheap and
  // must not call the fetcher.
  //
  // These errors blame the client, and name only the host as the client wrote it:
  // - TooLarge: an image, or all images together.
  // - Timeout.
  // - InvalidArgument: a forbidden address or a malformed URL.
  // - Unsupported: the server answered with an HTTP error.
  // - Unavailable: the host is unknown or unreachable.
  // - Cancelled.
  //
  // Overloaded does not blame the client: no slot became free in time, or too many bytes are held.
  OrderId fetch(FetchOrder order, Done done);

  // Sets the limits of later orders. memory, descriptor_max, allow_private_addresses, proxies and
  // ca_file keep their first values.
  void set_limits(const FetchLimits& limits);

  // Ends the downloads of an order. Calls `done` with Cancelled, unless the order has already
  // ended.
  void cancel(OrderId order);

 private:
  class Loop;
  std::unique_ptr<Loop> loop_;
};

}  // namespace sightline::media
