// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "common/http/exchange.h"
#include "common/runtime/worker_thread.h"

#include "tests/fakes/raw_socket.h"
#include "tests/fakes/run_task.h"

// Servers by host name, with name servers that answer when the test decides.
namespace sightline::http {
namespace {

using fakes::eventually;
using fakes::RawListener;
using fakes::run_task;
using std::chrono::milliseconds;

// The connection closes after it, so no connection is used twice.
constexpr std::string_view kHello =
    "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello";
const hosts::Resolved kHere{{asio::ip::make_address("127.0.0.1")}};

class HostNames : public testing::Test {
 protected:
  void TearDown() override {
    names_.stop();
    pool_.stop();
  }

  void answer(const std::string& name, const hosts::Resolved& found) {
    hosts::Lookup::Done done;
    {
      const std::lock_guard lock(mutex_);
      done = std::exchange(open_[name], nullptr);
    }
    done(found);
  }
  [[nodiscard]] bool is_asked(const std::string& name) {
    const std::lock_guard lock(mutex_);
    return open_[name] != nullptr;
  }

  Call call(const std::string& host, milliseconds connect = fakes::kPatience) {
    return {.endpoint = {.host = host, .port = listener_.port()},
            .head = {.method = "GET", .target = "/", .headers = {}},
            .body = {},
            .timeouts = {.connect = connect}};
  }
  // Answers this many requests, one connection each.
  void serve(int requests) {
    server_.emplace("upstream", [this, requests](const std::stop_token&) {
      for (int i = 0; i < requests; ++i) {
        auto socket = listener_.accept();
        socket.receive_until("\r\n\r\n");
        socket.send(kHello);
      }
    });
  }
  Failure run(const Call& call) {
    Failure failure = Failure::None;
    run_task(pool_, [&]() -> Task<void> {
      Exchange exchange(client_);
      const auto started = co_await exchange.start(call);
      EXPECT_EQ(started.ok(), exchange.failure() == Failure::None);
      failure = exchange.failure();
    });
    return failure;
  }

  std::mutex mutex_;  // for the next two
  std::map<std::string, hosts::Lookup::Done> open_;
  int asked_ = 0;
  hosts::Lookup names_{{.good_age_max = milliseconds(0)},
                       [this](const std::string& name, hosts::Lookup::Done done) {
                         const std::lock_guard lock(mutex_);
                         ++asked_;
                         open_[name] = std::move(done);
                       },
                       system_clock(),
                       nullptr};
  RawListener listener_;
  IoPool pool_{{}};
  Client client_{pool_, {.lookup_patience = milliseconds(20)}, names_};
  std::optional<WorkerThread> server_;
};

TEST_F(HostNames, RequestsShareALookUpAndDelayNoOtherName) {
  constexpr int kTogether = 3;
  serve(kTogether + 1);
  std::vector<std::unique_ptr<WorkerThread>> together;
  std::atomic<int> good = 0;
  for (int i = 0; i < kTogether; ++i) {
    together.push_back(std::make_unique<WorkerThread>("call", [&](const std::stop_token&) {
      good += run(call("slow")) == Failure::None ? 1 : 0;
    }));
  }
  ASSERT_TRUE(eventually([&] { return is_asked("slow"); }));
  WorkerThread answers("answers", [&](const std::stop_token&) {
    EXPECT_TRUE(eventually([&] { return is_asked("quick"); }));
    answer("quick", kHere);
  });
  EXPECT_EQ(run(call("quick")), Failure::None);
  EXPECT_EQ(good, 0);
  answer("slow", kHere);
  together.clear();
  EXPECT_EQ(good, kTogether);
}

TEST_F(HostNames, AHangingNameHoldsNoRequestBeyondItsTimeout) {
  EXPECT_EQ(run(call("hangs", milliseconds(50))), Failure::Connect);
  Failure failure = Failure::None;
  run_task(pool_, [&]() -> Task<void> {
    Exchange exchange(client_);
    Deadline deadline(pool_.deadlines(0), [&exchange] { exchange.cancel(); });
    deadline.set(milliseconds(20));
    const auto request = call("hangs");
    const auto started = co_await exchange.start(request);
    EXPECT_FALSE(started.ok());
    failure = exchange.failure();
  });
  EXPECT_EQ(failure, Failure::Cancelled);
  EXPECT_EQ(asked_, 1);
  answer("hangs", kHere);  // no request waits any more
}

TEST_F(HostNames, UsesTheLastGoodAddressesDuringALongLookUp) {
  serve(2);
  WorkerThread answers("answers", [&](const std::stop_token&) {
    EXPECT_TRUE(eventually([&] { return is_asked("engine"); }));
    answer("engine", kHere);
  });
  EXPECT_EQ(run(call("engine")), Failure::None);
  answers.join();
  EXPECT_EQ(run(call("engine")), Failure::None);
  EXPECT_TRUE(is_asked("engine"));
}

TEST_F(HostNames, AnUnknownNameIsNoRefusedConnection) {
  WorkerThread answers("answers", [&](const std::stop_token&) {
    EXPECT_TRUE(eventually([&] { return is_asked("gone"); }));
    answer("gone", {{}, hosts::LookupFailure::Unknown});
  });
  run_task(pool_, [&]() -> Task<void> {
    Exchange exchange(client_);
    const auto request = call("gone");
    const auto started = co_await exchange.start(request);
    EXPECT_FALSE(started.ok());
    EXPECT_EQ(exchange.failure(), Failure::Connect);
    EXPECT_FALSE(exchange.connection_refused());
  });
}

}  // namespace
}  // namespace sightline::http
