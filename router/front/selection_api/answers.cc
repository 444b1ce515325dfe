// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/front/selection_api/answers.h"

#include <utility>

#include "common/base/json.h"

#include "router/front/selection_json/endings.h"
#include "router/openai/error_body.h"

namespace sightline::selection_api {
namespace {

std::string load_json(const fleet::Load& load) {
  return R"({"in_flight":)" + std::to_string(load.in_flight) + R"(,"prefill_tokens":)" +
         std::to_string(load.prefill_tokens) + R"(,"decode_blocks":)" +
         std::to_string(load.blocks) + "}";
}

std::string ranks_json(const fleet::Worker& worker, Instant now) {
  std::string out = "[";
  for (const fleet::Rank& rank : worker.ranks) {
    out += (out.size() > 1 ? "," : "") + (R"({"rank":)" + std::to_string(rank.number)) +
           R"(,"load":)" + load_json(rank.load->read(now)) + "}";
  }
  return out + "]";
}

}  // namespace

http::Response json_response(int status, std::string body) {
  http::Response response;
  response.status = status;
  response.headers.set("content-type", "application/json");
  response.body = std::move(body);
  return response;
}

http::Response refused(const Error& error) {
  auto response = json_response(openai::http_status_of(error), selection_json::write_error(error));
  if (response.status == 503) response.headers.set("retry-after", "1");
  return response;
}

http::Response refusal(int status, const Error& error) {
  return json_response(status, openai::error_body(error, status));
}

http::Response conflict(const std::string& message, const std::string& param) {
  return json_response(
      409, openai::error_body(client_error(ErrorCode::InvalidArgument, message, param), 409));
}

http::Response over(const leases::Name& name) {
  return conflict("the reservation " + leases::text_of(name) + " has ended", "reservation");
}

std::string workers_json(const fleet::FleetSnapshot& fleet, Instant now) {
  std::string out = "[";
  for (const auto& worker : fleet.workers) {
    out += (out.size() > 1 ? "," : "") + (R"({"worker":)" + json::to_quoted(worker->spec.name)) +
           R"(,"url":)" + json::to_quoted(worker->spec.url) + R"(,"state":)" +
           json::to_quoted(fleet::name_of(worker->state)) + R"(,"ranks":)" +
           ranks_json(*worker, now) + "}";
  }
  return out + "]";
}

std::string overlaps_json(const selection::Explanation& explanation, std::uint32_t block_size) {
  std::string out = R"({"block_size":)" + std::to_string(block_size) + R"(,"workers":[)";
  for (const auto& entry : explanation.entries) {
    if (!entry.is_eligible) continue;
    // Each tier includes the tiers before it, because a match continues from GPU to CPU and disk.
    const std::uint64_t gpu = std::uint64_t{entry.candidate.gpu_blocks} * block_size;
    const std::uint64_t cpu = gpu + std::uint64_t{entry.candidate.cpu_blocks} * block_size;
    const std::uint64_t disk = cpu + std::uint64_t{entry.candidate.storage_blocks} * block_size;
    out += (out.back() == '[' ? "" : ",") + (R"({"worker":)" + json::to_quoted(entry.worker)) +
           R"(,"rank":)" + std::to_string(entry.rank.value_or(0)) + R"(,"longest_matched":)" +
           std::to_string(disk) + R"(,"gpu":)" + std::to_string(gpu) + R"(,"cpu":)" +
           std::to_string(cpu) + R"(,"disk":)" + std::to_string(disk) + "}";
  }
  return out + "]}";
}

}  // namespace sightline::selection_api
