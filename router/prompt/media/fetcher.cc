// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/prompt/media/fetcher.h"

#include <algorithm>
#include <list>
#include <new>
#include <optional>
#include <unordered_map>
#include <utility>

#include <curl/curl.h>

#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/base/out_of_memory.h"
#include "common/base/published.h"
#include "common/runtime/worker_thread.h"

#include "router/prompt/media/download.h"

namespace sightline::media {
namespace {

struct MultiDeleter {
  void operator()(CURLM* multi) const { curl_multi_cleanup(multi); }
};

// libcurl wants its process-wide state set up once, before any thread uses it.
void set_up_library() {
  static const bool is_up = curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
  SL_CHECK(is_up);
}

}  // namespace

class Fetcher::Loop {
 public:
  explicit Loop(const FetchLimits& limits)
      : limits_(std::make_shared<const FetchLimits>(limits)),
        held_(std::make_shared<ByteBudget>(
            limits.held_bytes_max,
            ByteBudget::Within{.parent = limits.memory, .limit = "media-held-bytes-max"})),
        multi_(make_multi(limits)),
        thread_("fetcher", [this](std::stop_token s) { run(std::move(s)); }) {}

  OrderId fetch(FetchOrder wanted, Done done) {
    SL_CHECK(!wanted.urls.empty());
    std::list<Order> fresh(1);
    Order& order = fresh.front();
    order.images.resize(wanted.urls.size());
    order.wanted = std::move(wanted);
    order.done = std::move(done);
    order.limits = limits_.read();
    order.deadline = system_clock().now() + order.limits->total_timeout;
    OrderId id{};
    {
      const MutexLock lock(mutex_);
      id = order.id = OrderId{++last_id_};
      fresh_.splice(fresh_.end(), fresh);
    }
    curl_multi_wakeup(multi_.get());
    return id;
  }

  void set_limits(FetchLimits limits) {
    const auto before = limits_.read();
    held_->set_bytes_max(limits.held_bytes_max);
    limits.memory = before->memory;
    limits.descriptor_max = before->descriptor_max;
    limits.allow_private_addresses = before->allow_private_addresses;
    limits.proxies = before->proxies;
    limits.ca_file = before->ca_file;
    limits_.publish(std::make_shared<const FetchLimits>(limits));
  }

  void cancel(OrderId order) {
    {
      const MutexLock lock(mutex_);
      cancelled_.push_back(order);
    }
    curl_multi_wakeup(multi_.get());
  }

 private:
  using Orders = std::list<Order>;
  // A download before its second attempt.
  struct Paused {
    std::unique_ptr<Download> download;
    Instant until;
  };

  static CURLM* make_multi(const FetchLimits& limits) {
    set_up_library();
    CURLM* multi = curl_multi_init();
    SL_CHECK(multi != nullptr);
    curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, static_cast<long>(limits.downloads_max));
    return multi;
  }

  void run(std::stop_token stop) {
    const std::stop_callback wake(stop, [this] { curl_multi_wakeup(multi_.get()); });
    while (!stop.stop_requested()) run_step([this] { turn(); });
    take_up();
    while (!orders_.empty()) {
      Error error = internal_error("the download was cancelled: the server is stopping");
      error.code = ErrorCode::Cancelled;
      end(orders_.front(), {.error = std::move(error)});
    }
  }

  void turn() {
    take_up();
    start_waiting();
    try_again();
    int running = 0;
    curl_multi_perform(multi_.get(), &running);
    finish_done();
    expire_waiting();
    // The first bounds how late a waiting order notices its deadline.
    constexpr int kPollMs = 500;
    constexpr int kPausePollMs = static_cast<int>(kRetryPause.count()) / 4;
    const int poll_ms = paused_.empty() ? kPollMs : kPausePollMs;
    curl_multi_poll(multi_.get(), nullptr, 0, poll_ms, nullptr);
  }

  // A step for an order; one that finds no memory ends it.
  template <class Step>
  void step_for(Order& order, const Step& step) {
    if (!run_step(step)) end(order, {.error = out_of_memory()});
  }

  // Takes new orders over and ends those that nobody wants any more.
  void take_up() {
    std::vector<OrderId> cancelled;
    Orders fresh;
    {
      const MutexLock lock(mutex_);
      fresh.splice(fresh.end(), fresh_);
      cancelled.swap(cancelled_);
    }
    while (!fresh.empty()) {
      orders_.splice(orders_.end(), fresh, fresh.begin());
      Order& order = orders_.back();
      step_for(order, [&] { read_urls(order); });
    }
    for (const OrderId id : cancelled) {
      const auto found = std::find_if(orders_.begin(), orders_.end(),
                                      [id](const Order& order) { return order.id == id; });
      if (found == orders_.end()) continue;
      end(*found, {.error = client_error(ErrorCode::Cancelled, "the client left")});
    }
  }

  void read_urls(Order& order) {
    for (std::size_t i = 0; i < order.wanted.urls.size(); ++i) {
      auto url = read_remote_url(order.wanted.urls[i]);
      if (!url.ok()) return end(order, {.error = std::move(url).error(), .failed = i});
      order.urls.push_back(std::move(url).value());
    }
  }

  // In the last tenth of its time a download that begins would not come far.
  [[nodiscard]] bool is_late(const Order& order, Instant now) const {
    return order.deadline - now < order.limits->total_timeout / 10;
  }

  // The order whose turn it is; null if none may start a download.
  Order* next_order() {
    const Instant now = system_clock().now();
    const std::size_t places = limits_.read()->downloads_max;
    const std::size_t taken = running_.size() + paused_.size();
    if (places <= taken) return nullptr;
    const std::size_t free = places - taken;
    Order* next = nullptr;
    for (Order& order : orders_) {
      if (order.started == order.wanted.urls.size() || is_late(order, now)) continue;
      const auto host = hosts_.find(order.urls[order.started].authority());
      if (host != hosts_.end() && host->second >= std::max(kHostDownloadsMin, free)) continue;
      if (next == nullptr || order.running < next->running) next = &order;
    }
    const std::size_t share = std::max<std::size_t>(1, free / kFreeShare);
    return next != nullptr && next->running < share ? next : nullptr;
  }

  void start_waiting() {
    while (Order* order = next_order()) {
      step_for(*order, [&] { start(*order); });
    }
  }

  void start(Order& order) {
    const std::size_t place = order.started;
    auto download =
        std::make_unique<Download>(Download{.order = order,
                                            .place = place,
                                            .limits = *order.limits,
                                            .body = std::make_shared<Body>(held_),
                                            .url = order.urls[place],
                                            .counted_for = order.urls[place].authority()});
    ++hosts_[download->counted_for];
    ++order.running;
    ++order.started;
    transfer(std::move(download));
  }

  void transfer(std::unique_ptr<Download> download) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        download->order.deadline - system_clock().now());
    auto begun = begin_transfer(*download, left);
    if (!begun.ok()) {
      leave_place(*download);
      const std::size_t place = download->place;
      return end(download->order, {.error = std::move(begun).error(), .failed = place});
    }
    CURL* easy = download->easy.get();
    running_[easy] = std::move(download);
  }

  // With a place among those that run.
  Result<Done> begin_transfer(Download& download, std::chrono::milliseconds left) {
    try {
      SL_TRY(prepare_transfer(download, left));
      running_.try_emplace(download.easy.get());
    } catch (const std::bad_alloc&) {
      return out_of_memory();
    }
    if (curl_multi_add_handle(multi_.get(), download.easy.get()) == CURLM_OK) return Done{};
    running_.erase(download.easy.get());
    return out_of_memory();
  }

  // A download that is neither running nor paused any more.
  void leave_place(const Download& download) {
    --download.order.running;
    const auto host = hosts_.find(download.counted_for);
    if (--host->second == 0) hosts_.erase(host);
  }

  // Downloads whose pause is over.
  void try_again() {
    const Instant now = system_clock().now();
    const auto is_due = [now](const Paused& paused) { return paused.until <= now; };
    for (;;) {
      // One that fails at once may end others.
      const auto due = std::find_if(paused_.begin(), paused_.end(), is_due);
      if (due == paused_.end()) return;
      std::unique_ptr<Download> download = std::move(due->download);
      paused_.erase(due);
      transfer(std::move(download));
    }
  }

  void finish_done() {
    int left = 0;
    while (const CURLMsg* message = curl_multi_info_read(multi_.get(), &left)) {
      if (message->msg == CURLMSG_DONE) finish(message->easy_handle, message->data.result);
    }
    // A finished download frees a place; the next one need not wait for the next wake-up.
    start_waiting();
  }

  void finish(CURL* easy, CURLcode code) {
    const auto found = running_.find(easy);
    SL_CHECK(found != running_.end());
    std::unique_ptr<Download> download = std::move(found->second);
    running_.erase(found);
    curl_multi_remove_handle(multi_.get(), easy);
    std::optional<Result<Next>> told;
    if (!run_step([&] { told.emplace(next_of(*download, code)); })) told.emplace(out_of_memory());
    Result<Next>& next = *told;
    if (next.ok() && std::holds_alternative<Redirected>(*next)) {
      download->url = std::move(std::get<Redirected>(*next).url);
      ++download->redirects;
      return transfer(std::move(download));
    }
    if (next.ok() && std::holds_alternative<TryAgain>(*next)) {
      begin_again(*download, std::make_shared<Body>(held_));
      download->is_second_attempt = true;
      download->decodes = code != CURLE_BAD_CONTENT_ENCODING;
      const Instant until = system_clock().now() + std::get<TryAgain>(*next).pause;
      paused_.push_back({std::move(download), until});
      return;
    }
    leave_place(*download);
    Order& order = download->order;
    if (!next.ok()) {
      return end(order, {.error = std::move(next).error(), .failed = download->place});
    }
    order.images[download->place] = std::move(std::get<Arrived>(*next).image);
    if (++order.arrived == order.images.size()) end(order, {.images = std::move(order.images)});
  }

  // Ends orders that got no place in time; libcurl ends the downloads of those that did.
  void expire_waiting() {
    const Instant now = system_clock().now();
    for (auto at = orders_.begin(); at != orders_.end();) {
      Order& order = *at++;
      if (order.running > 0 || !is_late(order, now)) continue;
      end(order,
          {.error = overload_error("media-downloads-max", "too many images are being downloaded")});
    }
  }

  // Ends what runs of the order and answers it.
  void end(Order& order, Fetched fetched) {
    std::erase_if(running_, [&](const auto& entry) {
      if (&entry.second->order != &order) return false;
      curl_multi_remove_handle(multi_.get(), entry.first);
      leave_place(*entry.second);
      return true;
    });
    std::erase_if(paused_, [&](const Paused& paused) {
      if (&paused.download->order != &order) return false;
      leave_place(*paused.download);
      return true;
    });
    const Done done = std::move(order.done);
    orders_.remove_if([&](const Order& other) { return &other == &order; });
    run_step([&] { done(std::move(fetched)); });
  }

  Published<FetchLimits> limits_;
  const std::shared_ptr<ByteBudget> held_;
  const std::unique_ptr<CURLM, MultiDeleter> multi_;
  Mutex mutex_;
  Orders fresh_ SL_GUARDED_BY(mutex_);                    // not yet seen by the loop
  std::vector<OrderId> cancelled_ SL_GUARDED_BY(mutex_);  // the same
  std::uint64_t last_id_ SL_GUARDED_BY(mutex_) = 0;
  Orders orders_;                                                 // loop thread only; as they came
  std::unordered_map<CURL*, std::unique_ptr<Download>> running_;  // loop thread only
  std::vector<Paused> paused_;                                    // loop thread only
  // Loop thread only; downloads that run or pause, by the host of their first URL.
  std::unordered_map<std::string, std::size_t> hosts_;
  WorkerThread thread_;  // last: it uses all of the above and ends first
};

Fetcher::Fetcher(const FetchLimits& limits) : loop_(std::make_unique<Loop>(limits)) {}
Fetcher::~Fetcher() = default;

void Fetcher::set_limits(const FetchLimits& limits) { loop_->set_limits(limits); }

Fetcher::OrderId Fetcher::fetch(FetchOrder order, Done done) {
  return loop_->fetch(std::move(order), std::move(done));
}

void Fetcher::cancel(OrderId order) { loop_->cancel(order); }

}  // namespace sightline::media
