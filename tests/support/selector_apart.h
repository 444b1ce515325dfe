// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "common/base/check.h"
#include "common/http/server.h"

#include "router/front/remote_selector/remote_selector.h"
#include "router/front/selection_api/selection_api.h"
#include "tests/fakes/run_task.h"
#include "tests/support/told_fleet.h"

namespace sightline::test {

// A selector as a frontend in another process has it: the remote selector asks the selection API on
// its own port, which asks the selector there. Each call returns only after the other side has it.
// Thread safety: as Selector. Its calls wait, so do not make them on its own pool.
class SelectorApart : public selection::Selector {
 public:
  explicit SelectorApart(selection::Selector& there) : there_(there) {
    auto answer = [this](http::Request& request, http::ResponseWriter& peer) -> Task<void> {
      auto response = co_await api_.answer(request);
      const auto sent = co_await peer.send(std::move(response));
      static_cast<void>(sent);
    };
    server_ = std::move(
        *http::Server::create(pool_, {.host = "127.0.0.1", .port = 0}, std::move(answer)));
    remote_ = std::make_unique<remote_selector::RemoteSelector>(
        remote_selector::RemoteSelector::Options{.routers = {{"127.0.0.1", server_->port()}},
                                                 .instance = "f",
                                                 .identity = "k",
                                                 .call_time = fakes::kPatience,
                                                 .ask_time = fakes::kPatience},
        remote_selector::RemoteSelector::Deps{pool_, names_, nullptr, metrics_, system_clock()});
    remote_->start();
    SL_CHECK(fakes::eventually([this] { return remote_->check().ok(); }));
  }
  ~SelectorApart() override {
    remote_->stop();
    names_.stop();
    server_.reset();
    pool_.stop();
  }
  SelectorApart(const SelectorApart&) = delete;
  SelectorApart& operator=(const SelectorApart&) = delete;

  Task<Result<selection::Selection>> select(const selection::Inquiry& inquiry) override {
    Result<selection::Selection> result = Error{};
    fakes::run_task(pool_, [&]() -> Task<void> {
      auto selected = co_await remote_->select(inquiry);
      result = std::move(selected);
    });
    const std::lock_guard lock(mutex_);
    if (result.ok()) has_token_[result->reservation] = false;
    co_return result;
  }
  void first_token(selection::ReservationId reservation) override {
    const std::lock_guard lock(mutex_);
    const auto open = has_token_.find(reservation);
    const bool is_news = open != has_token_.end() && !std::exchange(open->second, true);
    tell([&] { remote_->first_token(reservation); }, is_news);
  }
  void end(selection::ReservationId reservation, const selection::Ending& ending) override {
    const std::lock_guard lock(mutex_);
    const bool is_news = has_token_.erase(reservation) > 0;
    tell([&] { remote_->end(reservation, ending); }, is_news);
  }
  std::shared_ptr<fleet::LifeSign> life(selection::ReservationId reservation) override {
    return remote_->life(reservation);
  }
  Task<Result<selection::Explanation>> explain(const selection::Inquiry& inquiry) override {
    Result<selection::Explanation> result = Error{};
    fakes::run_task(pool_, [&]() -> Task<void> {
      auto explained = co_await remote_->explain(inquiry);
      result = std::move(explained);
    });
    co_return result;
  }

 private:
  // The selector on the other side, with a count of its calls.
  class Counted : public selection::Selector {
   public:
    explicit Counted(selection::Selector& inner) : inner_(inner) {}
    Task<Result<selection::Selection>> select(const selection::Inquiry& inquiry) override {
      return inner_.select(inquiry);
    }
    void first_token(selection::ReservationId reservation) override {
      inner_.first_token(reservation);
      ++told;
    }
    void end(selection::ReservationId reservation, const selection::Ending& ending) override {
      inner_.end(reservation, ending);
      ++told;
    }
    std::shared_ptr<fleet::LifeSign> life(selection::ReservationId reservation) override {
      return inner_.life(reservation);
    }
    Task<Result<selection::Explanation>> explain(const selection::Inquiry& inquiry) override {
      return inner_.explain(inquiry);
    }

    std::atomic<std::size_t> told = 0;

   private:
    selection::Selector& inner_;
  };

  // Makes the call. If the remote selector sends it, waits until the other side has it.
  template <class Call>
  void tell(const Call& call, bool is_news) {
    const std::size_t told = there_.told;
    call();
    if (is_news) SL_CHECK(fakes::eventually([&] { return there_.told > told; }));
  }

  Counted there_;
  runtime::Metrics metrics_;
  const keys::Scheme scheme_{contract::development_identity_key()};
  // It has no workers, because the selector alone decides which one it names.
  const ToldFleet workers_{metrics_, system_clock()};
  IoPool pool_{{.io_threads = 1, .compute_threads = 0}};
  selection_api::SelectionApi api_{
      {.pool = pool_,
       .selector = there_,
       .fleet = workers_.fleet,
       .scheme = scheme_,
       .metrics = metrics_,
       .clock = system_clock(),
       .served = [] { return std::make_shared<const fleet::Served>(); },
       .adopt = [](const selection::Adoption&) -> std::optional<selection::Selection> {
         return std::nullopt;
       }},
      {.identity = "k", .scope_model = "m", .leases = {}, .on_taken = {}}};
  std::unique_ptr<http::Server> server_;
  hosts::Lookup names_{{},
                       [](const std::string&, const hosts::Lookup::Done& done) {
                         done({.addresses = {}, .trouble = hosts::LookupFailure::Unknown});
                       },
                       system_clock(),
                       nullptr};
  std::unique_ptr<remote_selector::RemoteSelector> remote_;
  std::mutex mutex_;
  std::map<selection::ReservationId, bool> has_token_;  // of the open ones
};

}  // namespace sightline::test
