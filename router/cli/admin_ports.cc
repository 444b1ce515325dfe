// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/cli/admin_ports.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <memory>
#include <optional>
#include <utility>

#include "common/base/mutex.h"
#include "common/contract/names.h"
#include "common/http/exchange.h"

namespace sightline::cli {
namespace {

// The paths to request, in the order of the answers.
constexpr std::array<std::string_view, 4> kPaths = {contract::kWorkersPath, contract::kReplicasPath,
                                                    contract::kMetricsPath, contract::kReadyPath};

Error bad_url(const std::string& url) {
  return client_error(
      ErrorCode::InvalidArgument,
      "--admin: '" + url.substr(0, 100) +
          "' is no admin port: write http://HOST[:PORT], with commas between several");
}

Result<AdminPort> parse_admin_port(const std::string& url) {
  constexpr std::string_view kScheme = "http://";
  std::string place = url.starts_with(kScheme) ? url.substr(kScheme.size()) : url;
  if (place.ends_with('/')) place.pop_back();
  AdminPort port{.name = place, .address = {.host = place, .port = contract::kAdminPort}};
  const std::size_t colon = place.rfind(':');
  // A colon inside the brackets belongs to an IPv6 address.
  const bool has_port = colon != std::string::npos && place.find(']', colon) == std::string::npos;
  if (has_port) {
    port.address.host = place.substr(0, colon);
    const char* end = place.data() + place.size();
    const auto read = std::from_chars(place.data() + colon + 1, end, port.address.port);
    if (read.ec != std::errc() || read.ptr != end || port.address.port == 0) return bad_url(url);
  } else {
    port.name += ":" + std::to_string(contract::kAdminPort);
  }
  std::string& host = port.address.host;
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  const bool is_host = !host.empty() && std::all_of(host.begin(), host.end(), [](char c) {
    return c > ' ' && c < 127 && std::string_view("/?#@[]").find(c) == std::string_view::npos;
  });
  if (!is_host) return bad_url(url);
  return port;
}

}  // namespace

Result<std::vector<AdminPort>> parse_admin_ports(std::string_view urls) {
  std::vector<AdminPort> ports;
  while (true) {
    const std::size_t comma = urls.find(',');
    ports.push_back(SL_TRY(parse_admin_port(std::string(urls.substr(0, comma)))));
    if (ports.size() > kAdminPortsMax) {
      return client_error(
          ErrorCode::InvalidArgument,
          "--admin: at most " + std::to_string(kAdminPortsMax) + " admin ports are allowed");
    }
    if (comma == std::string_view::npos) return ports;
    urls.remove_prefix(comma + 1);
  }
}

// One round of requests. Requests that run when the round is over share it.
struct AdminPorts::Round {
  Round(const std::vector<AdminPort>& asked, Duration time)
      : ports(asked),
        patience(time),
        answers(asked.size()),
        missing(asked.size() * kPaths.size()) {}

  const std::vector<AdminPort> ports;
  const Duration patience;
  Mutex mutex;
  CondVar changed;
  std::vector<std::array<AdminAnswer, kPaths.size()>> answers SL_GUARDED_BY(mutex);
  std::size_t missing SL_GUARDED_BY(mutex);

  void put(std::size_t port, std::size_t path, AdminAnswer answer) {
    {
      const MutexLock lock(mutex);
      answers[port].at(path) = std::move(answer);
      --missing;
    }
    changed.notify_all();
  }
};

AdminPorts::AdminPorts()
    : pool_({.io_threads = 1, .compute_threads = 0, .name = "top"}), client_(pool_, {}) {}

AdminPorts::~AdminPorts() { pool_.stop(); }

namespace {

Task<AdminAnswer> answer_of(http::Client& client, const AdminPort& port, http::RequestHead head,
                            Duration time) {
  http::Call call{
      .endpoint = port.address,
      .head = std::move(head),
      .body = {},
      .timeouts = {.connect = time, .write = time, .first_byte = time, .between_bytes = time},
      .fresh = true};
  call.head.headers.set("host", port.name);
  http::Exchange exchange(client);
  auto begun = co_await exchange.start(call);
  if (!begun.ok()) {
    if (exchange.connection_refused()) co_return AdminAnswer{0, {}, "connection refused"};
    co_return AdminAnswer{0, {}, begun.error().message};
  }
  auto body = co_await http::read_all(exchange, kAdminAnswerBytesMax);
  if (!body.ok()) co_return AdminAnswer{0, {}, body.error().message};
  co_return AdminAnswer{exchange.status(), std::move(*body), {}};
}

top::RouterFacts facts_of(const AdminPort& port, std::array<AdminAnswer, kPaths.size()>& answers) {
  const auto in_trouble = [&port](const std::string& why) {
    top::RouterFacts facts;
    facts.address = top::printable(port.name);
    facts.trouble = "no answer: " + top::printable(why);
    return facts;
  };
  for (const AdminAnswer& answer : answers) {
    if (answer.status == 0) {
      return in_trouble(answer.trouble.empty() ? "timeout" : answer.trouble);
    }
  }
  auto& [workers, replicas, metrics, ready] = answers;
  const auto body_of = [](AdminAnswer& answer) {
    // A role without a route answers 404, which is no trouble.
    return answer.status == 200 ? std::move(answer.body) : std::string();
  };
  const top::Answers bodies{.is_ready = ready.status == 200,
                            .workers = body_of(workers),
                            .replicas = body_of(replicas),
                            .metrics = body_of(metrics)};
  auto facts = top::read_facts(port.name, bodies);
  return facts.ok() ? std::move(*facts) : in_trouble(facts.error().message);
}

}  // namespace

Task<void> AdminPorts::ask_one(std::shared_ptr<Round> round, std::size_t port,
                               std::string_view path) {
  http::RequestHead head{"GET", std::string(path), {}};
  AdminAnswer answer =
      co_await answer_of(client_, round->ports[port], std::move(head), round->patience);
  const auto place = std::find(kPaths.begin(), kPaths.end(), path) - kPaths.begin();
  round->put(port, static_cast<std::size_t>(place), std::move(answer));
}

// The running request shares it.
struct AdminPorts::Posted {
  Posted(const AdminPort& to, http::RequestHead request, Duration time)
      : port(to), head(std::move(request)), patience(time) {}

  const AdminPort port;
  const http::RequestHead head;
  const Duration patience;
  Mutex mutex;
  CondVar changed;
  std::optional<AdminAnswer> answer SL_GUARDED_BY(mutex);
};

Task<void> AdminPorts::post_one(std::shared_ptr<Posted> posted) {
  http::RequestHead head = posted->head;
  AdminAnswer answer = co_await answer_of(client_, posted->port, std::move(head), posted->patience);
  {
    const MutexLock lock(posted->mutex);
    posted->answer = std::move(answer);
  }
  posted->changed.notify_all();
}

AdminAnswer AdminPorts::post(const AdminPort& port, std::string path, const std::string& token,
                             Duration patience) {
  http::RequestHead head{"POST", std::move(path), {}};
  head.headers.set("content-length", "0");
  if (!token.empty()) head.headers.set("authorization", "Bearer " + token);
  const auto posted = std::make_shared<Posted>(port, std::move(head), patience);
  spawn(pool_.context(0).get_executor(), post_one(posted));
  const MutexLock lock(posted->mutex);
  posted->changed.wait(posted->mutex,
                       [&]() SL_REQUIRES(posted->mutex) { return posted->answer.has_value(); });
  return *posted->answer;
}

std::vector<top::RouterFacts> AdminPorts::ask(const std::vector<AdminPort>& ports,
                                              Duration patience) {
  const auto round = std::make_shared<Round>(ports, patience);
  for (std::size_t port = 0; port < ports.size(); ++port) {
    for (const std::string_view path : kPaths) {
      spawn(pool_.context(0).get_executor(), ask_one(round, port, path));
    }
  }
  std::vector<std::array<AdminAnswer, kPaths.size()>> answers;
  {
    const MutexLock lock(round->mutex);
    const Instant end = system_clock().now() + patience;
    while (round->missing > 0 && system_clock().now() < end) {
      round->changed.wait_for(round->mutex, end - system_clock().now(),
                              [&]() SL_REQUIRES(round->mutex) { return round->missing == 0; });
    }
    answers = round->answers;
  }
  std::vector<top::RouterFacts> facts;
  for (std::size_t port = 0; port < ports.size(); ++port) {
    facts.push_back(facts_of(ports[port], answers[port]));
  }
  return facts;
}

}  // namespace sightline::cli
