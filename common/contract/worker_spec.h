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

inline constexpr std::uint32_t kRanksMax = 64;  // data-parallel ranks of one worker

// What an engine's events mean where it holds several copies of one block.
enum class Copies : std::uint8_t {
  RefCount,  // a removal for each copy (vLLM up to 0.32: the block pool announces each of them)
  LastCopy,  // a removal when the last copy is gone
};

// Whose server a worker is: its API, its events and its metrics.
enum class EngineFamily : std::uint8_t { Vllm, Sglang };
inline constexpr std::array kEngineFamilies = {EngineFamily::Vllm, EngineFamily::Sglang};
inline constexpr std::array<std::string_view, kEngineFamilies.size()> kEngineFamilyNames = {
    "vllm", "sglang"};

// As in `family=`.
constexpr std::string_view name_of(EngineFamily family) {
  return kEngineFamilyNames[static_cast<std::size_t>(family)];
}

// What the operator of the router says about one worker (one engine API server). Everything but
// the URL may be left out: the engine is asked for it, and what is given here wins.
struct WorkerSpec {
  std::string
      name;  // unique; a digest of the URL's address unless given; [A-Za-z0-9._:-], at most 63
  std::string url;   // "http://host:port", no path
  std::string host;  // of the URL, without the brackets of an IPv6 address
  std::uint16_t port = 0;
  // ZMQ endpoint of the KV events, empty: ask the engine. "*" as host is the URL's host. With "@"
  // in front the engine connects to us and we bind it. Of several data-parallel ranks this is the
  // first one's: rank r has the port r above, as vLLM numbers them.
  std::string events;
  std::string replay;            // ZMQ endpoint of the replay socket, likewise; empty: ask
  std::uint32_t ranks = 0;       // data-parallel ranks behind the URL, 0: ask the engine
  std::uint32_t block_size = 0;  // tokens per KV block, 0: ask the engine
  Copies copies = Copies::RefCount;
  EngineFamily family = EngineFamily::Vllm;
  bool drain = false;  // finish what runs, take no new requests
  // An agent beside the engine tells what it holds, over NATS: the router reads none of its events.
  bool agent = false;
  // File with the engine's API key, for the router's own calls; empty: they carry none.
  std::string api_key_file;

  bool operator==(const WorkerSpec&) const = default;
};

// May stand as host in a URL, and in a request's Host field.
bool is_url_host(std::string_view text);

struct NamedField {
  std::string name;
  std::string value;
};

// The fields a worker may have, in the order of the documentation.
std::span<const std::string_view> worker_fields();

// Splits "name=w0,url=http://127.0.0.1:8101" into its fields. Errors: InvalidArgument.
Result<std::vector<NamedField>> split_worker_fields(std::string_view text);

// The endpoint of the rank `offset` above the one whose endpoint this is: the port is that much
// higher. Errors: InvalidArgument for ipc:// (vLLM numbers ports only) and beyond port 65535.
Result<std::string> endpoint_of_rank(const std::string& endpoint, std::uint32_t offset);

// Builds a spec from its fields: unknown, repeated, missing or malformed ones are refused with
// what to write instead. Errors: InvalidArgument, message without the name of the source.
Result<WorkerSpec> worker_from_fields(std::span<const NamedField> fields);

// split_worker_fields, then worker_from_fields.
Result<WorkerSpec> parse_worker(std::string_view text);

// The spec as a --worker value that parses to the same spec.
std::string worker_text(const WorkerSpec& worker);

}  // namespace sightline::contract
