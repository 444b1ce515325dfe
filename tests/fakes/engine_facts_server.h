// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "common/admin_port/admin_server.h"
#include "common/base/check.h"

namespace sightline::test {

// An engine reduced to what it says about itself: the answers of vLLM's /health, /v1/models,
// /kv_event_sources, /version and /metrics, which a test may change at any time.
// Thread safety: all methods from any thread.
class EngineFactsServer {
 public:
  struct Answer {
    int status = 200;
    std::string body;
  };

  explicit EngineFactsServer(std::uint16_t port = 0) {
    answers_["/health"] = {200, ""};
    answers_["/v1/models"] = {
        200, R"({"object":"list","data":[{"id":"tiny","parent":null,"max_model_len":4096}]})"};
    answers_["/kv_event_sources"] = {200, sources_text("tcp://*:5557", "tcp://*:5657")};
    answers_["/version"] = {200, R"({"version":"0.32.0"})"};
    answers_["/metrics"] = {200, metrics_text(0)};
    server_ = std::make_unique<admin_port::AdminServer>(
        admin_port::AdminServer::Options{.port = port}, metrics_);
    for (const auto& [path, answer] : answers_) {
      // The server's own /metrics gives way to this one.
      server_->add_route("GET", path, [this](const admin_port::AdminRequest& request) {
        const std::lock_guard lock(mutex_);
        ++asked_[request.path];
        const Answer& now = answers_.at(request.path);
        return admin_port::AdminResponse{now.status, now.body, "text/plain"};
      });
    }
    SL_CHECK(server_->start().ok());
  }

  [[nodiscard]] std::uint16_t port() const { return server_->port(); }
  [[nodiscard]] std::string url() const { return "http://127.0.0.1:" + std::to_string(port()); }

  void set(const std::string& path, Answer answer) {
    const std::lock_guard lock(mutex_);
    answers_[path] = std::move(answer);
  }
  [[nodiscard]] int times_asked(const std::string& path) const {
    const std::lock_guard lock(mutex_);
    const auto found = asked_.find(path);
    return found == asked_.end() ? 0 : found->second;
  }
  void stop() { server_->stop(); }

  static std::string sources_text(const std::string& events, const std::string& replay) {
    return R"({"0":{"enable_kv_cache_events":true,"publisher":"zmq","endpoint":")" + events +
           R"(","replay_endpoint":")" + replay + "\"}}";
  }
  static std::string metrics_text(int running) {
    return "vllm:num_requests_running{engine=\"0\",model_name=\"tiny\"} " +
           std::to_string(running) +
           "\nvllm:num_requests_waiting{engine=\"0\",model_name=\"tiny\"} 0\n"
           "vllm:kv_cache_usage_perc{engine=\"0\",model_name=\"tiny\"} 0.25\n"
           "vllm:cache_config_info{block_size=\"16\",engine=\"0\"} 1\n";
  }

 private:
  mutable std::mutex mutex_;  // guards answers_ and asked_
  std::map<std::string, Answer> answers_;
  std::map<std::string, int> asked_;
  runtime::Metrics metrics_;
  std::unique_ptr<admin_port::AdminServer> server_;
};

}  // namespace sightline::test
