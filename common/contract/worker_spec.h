// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"

namespace sightline::contract {

// The most data-parallel ranks of one worker.
inline constexpr std::uint32_t kRanksMax = 64;

// What an engine's events mean if it holds several copies of a block.
enum class Copies : std::uint8_t {
  // One removal for each copy: the block pool of vLLM up to 0.32 announces each of them.
  RefCount,
  // One removal when the last copy is gone.
  LastCopy,
};

// The kind of server that a worker is. It decides about API, events and metrics.
enum class EngineFamily : std::uint8_t { Vllm, Sglang };
inline constexpr std::array kEngineFamilies = {EngineFamily::Vllm, EngineFamily::Sglang};
inline constexpr std::array<std::string_view, kEngineFamilies.size()> kEngineFamilyNames = {
    "vllm", "sglang"};

// The name as in `family=`.
constexpr std::string_view name_of(EngineFamily family) {
  return kEngineFamilyNames[static_cast<std::size_t>(family)];
}

// What an administrator configures about one worker (one engine API server). Only the URL is
// required. The router asks the engine for the rest, but a configured value wins.
struct WorkerSpec {
  // Unique, [A-Za-z0-9._:-], at most 63 bytes. By default a digest of the URL's address.
  std::string name;
  // "http://host:port", without a path.
  std::string url;
  // Of the URL, without the brackets of an IPv6 address.
  std::string host;
  std::uint16_t port = 0;
  // The ZMQ endpoint of the KV events. Empty: ask the engine. "*" as host means the URL's host.
  // With "@" in front, the router binds the endpoint and the engine connects. With several
  // data-parallel ranks it is the endpoint of rank 0: rank r has the port plus r, as vLLM numbers
  // them.
  std::string events;
  // The ZMQ endpoint of the replay socket, in the same form. Empty: ask the engine.
  std::string replay;
  // Data-parallel ranks behind the URL. 0: ask the engine.
  std::uint32_t ranks = 0;
  // Tokens of a KV block. 0: ask the engine.
  std::uint32_t block_size = 0;
  Copies copies = Copies::RefCount;
  EngineFamily family = EngineFamily::Vllm;
  // Finish active requests, accept no new ones.
  bool drain = false;
  // An agent beside the engine reports its blocks over NATS. The router does not read its events.
  bool agent = false;
  // A file with the engine's API key, for the router's own calls. Empty: these carry no key.
  std::string api_key_file;

  bool operator==(const WorkerSpec&) const = default;
};

// True if the text may be the host of a URL and of a request's Host field.
bool is_url_host(std::string_view text);

// One field of a worker's text form.
struct NamedField {
  std::string name;
  std::string value;
};

// The fields that a worker may have, in the order of the documentation.
std::span<const std::string_view> worker_fields();

// Splits "name=w0,url=http://127.0.0.1:8101" into its fields. Errors: InvalidArgument.
Result<std::vector<NamedField>> split_worker_fields(std::string_view text);

// The endpoint of the rank `offset` above the rank of `endpoint`: the port is higher by
// offset. Errors: InvalidArgument for ipc:// (vLLM numbers only ports), and for ports above 65535.
Result<std::string> endpoint_of_rank(const std::string& endpoint, std::uint32_t offset);

// Builds a spec from its fields. Refuses unknown, repeated, missing and malformed fields, and says
// what to write instead. Errors: InvalidArgument. The message does not name the source.
Result<WorkerSpec> worker_from_fields(std::span<const NamedField> fields);

// split_worker_fields(), then worker_from_fields().
Result<WorkerSpec> parse_worker(std::string_view text);

// The spec as a value of --worker, which parses to the same spec.
std::string worker_text(const WorkerSpec& worker);

}  // namespace sightline::contract
