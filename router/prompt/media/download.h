// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <curl/curl.h>

#include "common/base/byte_budget.h"
#include "common/base/bytes.h"
#include "common/base/clock.h"
#include "common/base/memory_ledger.h"
#include "common/base/result.h"

#include "router/prompt/media/fetcher.h"
#include "router/prompt/media/remote_url.h"

namespace sightline::media {

// The bytes of an image while it arrives. They count towards media.held_bytes_max while this object
// exists. It shares ownership of the budget, because an image may live longer than the fetcher.
class Body {
 public:
  explicit Body(std::shared_ptr<ByteBudget> held) : held_(std::move(held)) {}
  ~Body() { held_->release(share_); }
  Body(const Body&) = delete;
  Body& operator=(const Body&) = delete;

  // Adds bytes. Returns false and adds nothing if the budget has no room for them.
  bool append(std::span<const std::uint8_t> more) {
    if (!held_->add(share_, more.size(), claim_of(share_ + more.size()))) return false;
    bytes_.insert(bytes_.end(), more.begin(), more.end());
    return true;
  }

  // The error for bytes that the budget had no room for.
  [[nodiscard]] Error no_room(std::size_t more) const {
    const std::size_t bytes = share_ + more;
    return memory_error(*held_, bytes, claim_of(bytes), "a downloaded image");
  }

  [[nodiscard]] const Bytes& bytes() const { return bytes_; }

 private:
  std::shared_ptr<ByteBudget> held_;
  std::size_t share_ = 0;
  Bytes bytes_;
};

// An order that has not ended. Only the loop's thread uses it after it has taken the order over.
struct Order {
  Fetcher::OrderId id;
  FetchOrder wanted;
  Fetcher::Done done;
  // The limits at the time of fetch().
  std::shared_ptr<const FetchLimits> limits = {};
  Instant deadline;

  // The wanted URLs as the fetcher requests them.
  std::vector<RemoteUrl> urls;
  std::vector<FetchedImage> images;
  // The number of leading URLs whose downloads have begun.
  std::size_t started = 0;
  // Downloads that run or wait for their second attempt.
  std::uint32_t running = 0;
  std::size_t arrived = 0;
  // Bytes of all downloads of the order so far.
  std::uint64_t bytes = 0;
};

struct EasyDeleter {
  void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
};

// One download. It consists of one transfer, or of several if the host redirects or the fetcher
// retries. It stays at one address, because libcurl holds a pointer to it. Only the loop's thread
// uses it. Its order lives longer.
struct Download {
  Order& order;
  // The index of its URL.
  std::size_t place;
  const FetchLimits& limits;
  std::shared_ptr<Body> body;
  // The URL of the present transfer.
  RemoteUrl url;
  // The host and port whose share of the downloads it uses.
  std::string counted_for;

  std::unique_ptr<CURL, EasyDeleter> easy = nullptr;
  // Header bytes of all transfers.
  std::size_t header_bytes = 0;
  // Body bytes of redirections.
  std::size_t passed_over_bytes = 0;
  // The reason why the fetcher itself ended the transfer.
  std::optional<Error> refused = std::nullopt;
  // True if the host's address is not allowed (address_guard.h).
  bool has_refused_address = false;
  bool goes_through_proxy = false;
  // True if libcurl decodes gzip and deflate.
  bool decodes = true;
  std::uint32_t redirects = 0;
  bool is_second_attempt = false;

  [[nodiscard]] const std::string& wanted_url() const { return order.wanted.urls[place]; }
  [[nodiscard]] bool is_of_image() const { return place < order.wanted.images; }
};

// Creates the libcurl handle of a transfer, which may take the time `left`. The caller has called
// curl_global_init(). Errors: InvalidArgument, if a proxy would have to request a forbidden host.
// out_of_memory().
Result<Done> prepare_transfer(Download& download, std::chrono::milliseconds left);

// The steps that may follow a transfer. A whole image has arrived.
struct Arrived {
  FetchedImage image;
};
// The host redirects to this URL.
struct Redirected {
  RemoteUrl url;
};
// The transfer failed, and a second one may succeed after this pause.
struct TryAgain {
  std::chrono::milliseconds pause;
};
using Next = std::variant<Arrived, Redirected, TryAgain>;

// Decides the step after a transfer that ended with this code. Errors: as Fetcher::fetch().
Result<Next> next_of(const Download& download, CURLcode code);

// Drops the bytes of a failed attempt before the next attempt. They do not count towards the
// order's limit.
void begin_again(Download& download, std::shared_ptr<Body> body);

}  // namespace sightline::media
