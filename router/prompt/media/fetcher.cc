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

// libcurl needs one global initialization before any thread uses it.
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
    // The time limit begins here, and includes the time in the queue.
    order.deadline = system_clock().now() + order.limits->total_timeout;
    OrderId id{};
    {
      const MutexLock lock(mutex_);
      id = order.id = OrderId{++last_id_};
      fresh_.splice(fresh_.end(), fresh);
    }
    // The loop may sleep in curl_multi_poll().
    curl_multi_wakeup(multi_.get());
    return id;
  }

  // The values that are kept here are set at the start only. A pushed setting must not open private
  // addresses or change proxies.
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
  // A download that waits for its second attempt.
  struct Paused {
    std::unique_ptr<Download> download;
    Instant until;
  };

  static CURLM* make_multi(const FetchLimits& limits) {
    set_up_library();
    CURLM* multi = curl_multi_init();
    SL_CHECK(multi != nullptr);
    // Idle connections are limited too. Each of them holds a descriptor.
    curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, static_cast<long>(limits.downloads_max));
    return multi;
  }

  void run(std::stop_token stop) {
    const std::stop_callback wake(stop, [this] { curl_multi_wakeup(multi_.get()); });
    while (!stop.stop_requested()) run_step([this] { turn(); });
    // Orders that arrived after the last turn get an answer as well.
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
    // The poll time limits how late a waiting order notices its deadline. It is shorter while a
    // download waits for its retry.
    constexpr int kPollMs = 500;
    constexpr int kPausePollMs = static_cast<int>(kRetryPause.count()) / 4;
    const int poll_ms = paused_.empty() ? kPollMs : kPausePollMs;
    curl_multi_poll(multi_.get(), nullptr, 0, poll_ms, nullptr);
  }

  // Runs a step for an order. If the step finds no memory, the order ends with this error.
  template <class Step>
  void step_for(Order& order, const Step& step) {
    if (!run_step(step)) end(order, {.error = out_of_memory()});
  }

  // Takes over new orders, and ends the cancelled ones.
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

  // Returns whether less than a tenth of the time is left. A download that begins then would rarely
  // finish.
  [[nodiscard]] bool is_late(const Order& order, Instant now) const {
    return order.deadline - now < order.limits->total_timeout / 10;
  }

  // Returns the order that may start the next download, or null.
  Order* next_order() {
    const Instant now = system_clock().now();
    const std::size_t places = limits_.read()->downloads_max;
    const std::size_t taken = running_.size() + paused_.size();
    if (places <= taken) return nullptr;
    const std::size_t free = places - taken;
    Order* next = nullptr;
    for (Order& order : orders_) {
      // A late order starts no more downloads.
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

  // Starts a transfer and reserves its entry in running_.
  Result<Done> begin_transfer(Download& download, std::chrono::milliseconds left) {
    try {
      SL_TRY(prepare_transfer(download, left));
      // The entry is made before libcurl gets the handle. An allocation that fails later would
      // leave a handle without a download.
      running_.try_emplace(download.easy.get());
    } catch (const std::bad_alloc&) {
      return out_of_memory();
    }
    if (curl_multi_add_handle(multi_.get(), download.easy.get()) == CURLM_OK) return Done{};
    running_.erase(download.easy.get());
    return out_of_memory();
  }

  // Counts a download that neither runs nor pauses any longer.
  void leave_place(const Download& download) {
    --download.order.running;
    const auto host = hosts_.find(download.counted_for);
    if (--host->second == 0) hosts_.erase(host);
  }

  // Starts the second attempts whose pauses have ended.
  void try_again() {
    const Instant now = system_clock().now();
    const auto is_due = [now](const Paused& paused) { return paused.until <= now; };
    for (;;) {
      // The search begins again after each transfer. A transfer that fails immediately ends its
      // order, and with it other paused downloads.
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
    // A finished download frees a slot. The next download starts without waiting for the next
    // wake-up.
    start_waiting();
  }

  void finish(CURL* easy, CURLcode code) {
    const auto found = running_.find(easy);
    SL_CHECK(found != running_.end());
    std::unique_ptr<Download> download = std::move(found->second);
    running_.erase(found);
    // The handle leaves libcurl before anything else happens, because the download owns it.
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
      // A host may name a content coding that the body does not have. The second attempt then takes
      // the body as it is.
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

  // Ends orders without a running download when their time is nearly over. libcurl ends running
  // downloads itself.
  void expire_waiting() {
    const Instant now = system_clock().now();
    for (auto at = orders_.begin(); at != orders_.end();) {
      Order& order = *at++;
      if (order.running > 0 || !is_late(order, now)) continue;
      end(order,
          {.error = overload_error("media-downloads-max", "too many images are being downloaded")});
    }
  }

  // Ends the running downloads of an order, and calls its callback.
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
    // The order is removed before the call. It owns the callback, and therefore the callback is
    // moved out first.
    const Done done = std::move(order.done);
    orders_.remove_if([&](const Order& other) { return &other == &order; });
    run_step([&] { done(std::move(fetched)); });
  }

  Published<FetchLimits> limits_;
  const std::shared_ptr<ByteBudget> held_;
  const std::unique_ptr<CURLM, MultiDeleter> multi_;
  Mutex mutex_;
  // Orders that the loop has not taken over.
  Orders fresh_ SL_GUARDED_BY(mutex_);
  // Orders to cancel.
  std::vector<OrderId> cancelled_ SL_GUARDED_BY(mutex_);
  std::uint64_t last_id_ SL_GUARDED_BY(mutex_) = 0;
  // The next members belong to the loop's thread. Orders in the order of arrival.
  Orders orders_;
  std::unordered_map<CURL*, std::unique_ptr<Download>> running_;
  std::vector<Paused> paused_;
  // Downloads that run or pause, by the host and port of their first URL.
  std::unordered_map<std::string, std::size_t> hosts_;
  // The last member, because its thread uses all others and must end first.
  WorkerThread thread_;
};

Fetcher::Fetcher(const FetchLimits& limits) : loop_(std::make_unique<Loop>(limits)) {}
Fetcher::~Fetcher() = default;

void Fetcher::set_limits(const FetchLimits& limits) { loop_->set_limits(limits); }

Fetcher::OrderId Fetcher::fetch(FetchOrder order, Done done) {
  return loop_->fetch(std::move(order), std::move(done));
}

void Fetcher::cancel(OrderId order) { loop_->cancel(order); }

}  // namespace sightline::media
