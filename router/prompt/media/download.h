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

// An image as it arrives, counted as held while it lives; the budget outlives the fetcher with it.
class Body {
 public:
  explicit Body(std::shared_ptr<ByteBudget> held) : held_(std::move(held)) {}
  ~Body() { held_->release(share_); }
  Body(const Body&) = delete;
  Body& operator=(const Body&) = delete;

  // False, and nothing is added, if all together would then hold too much.
  bool append(std::span<const std::uint8_t> more) {
    if (!held_->add(share_, more.size(), claim_of(share_ + more.size()))) return false;
    bytes_.insert(bytes_.end(), more.begin(), more.end());
    return true;
  }

  // Why so many more bytes could not be added.
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

// An order under way. Lives on the loop's thread once taken up.
struct Order {
  Fetcher::OrderId id;
  FetchOrder wanted;
  Fetcher::Done done;
  std::shared_ptr<const FetchLimits> limits = {};  // as they were when it came
  Instant deadline;

  std::vector<RemoteUrl> urls;  // as the wanted ones are asked for
  std::vector<FetchedImage> images;
  std::size_t started = 0;  // leading URLs whose download was begun
  std::uint32_t running = 0;
  std::size_t arrived = 0;
  std::uint64_t bytes = 0;  // of all downloads, as they come
};

struct EasyDeleter {
  void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
};

// One download: a transfer, or several where it is redirected or tried again. Lives on the loop's
// thread, shorter than its order and without moving.
struct Download {
  Order& order;
  std::size_t place;  // of its URL
  const FetchLimits& limits;
  std::shared_ptr<Body> body;
  RemoteUrl url;            // of this transfer
  std::string counted_for;  // the host whose share it uses

  std::unique_ptr<CURL, EasyDeleter> easy = nullptr;
  std::size_t header_bytes = 0;                 // of all transfers
  std::size_t passed_over_bytes = 0;            // of bodies of redirections
  std::optional<Error> refused = std::nullopt;  // why the transfer was ended from this side
  bool has_refused_address = false;
  bool goes_through_proxy = false;
  bool decodes = true;
  std::uint32_t redirects = 0;
  bool is_second_attempt = false;

  [[nodiscard]] const std::string& wanted_url() const { return order.wanted.urls[place]; }
  [[nodiscard]] bool is_of_image() const { return place < order.wanted.images; }
};

// Makes the handle of a transfer that may take `left`. curl_global_init() has been called. Error:
// the host may not be asked through a proxy, or out_of_memory().
Result<Done> prepare_transfer(Download& download, std::chrono::milliseconds left);

// What follows a transfer.
struct Arrived {
  FetchedImage image;
};
struct Redirected {
  RemoteUrl url;
};
struct TryAgain {
  std::chrono::milliseconds pause;
};
using Next = std::variant<Arrived, Redirected, TryAgain>;

// Of a transfer that ended with this code. Errors: as Fetcher::fetch().
Result<Next> next_of(const Download& download, CURLcode code);

// Gives up what a failed attempt has brought, before the next one.
void begin_again(Download& download, std::shared_ptr<Body> body);

}  // namespace sightline::media
