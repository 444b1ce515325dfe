// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/contract/worker_spec.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "common/base/bytes.h"
#include "common/base/number.h"
#include "common/contract/setting_table.h"

namespace sightline::contract {
namespace {

constexpr std::array<std::string_view, 11> kFields = {"name",   "url",   "family",      "events",
                                                      "replay", "dp",    "block_size",  "copies",
                                                      "drain",  "agent", "api_key_file"};
constexpr std::string_view kRefCount = "refcount";
constexpr std::string_view kLastCopy = "last-copy";
constexpr std::size_t kNameBytesMax = 63;
constexpr std::size_t kUrlBytesMax = 1024;
constexpr std::size_t kPathBytesMax = 4095;  // PATH_MAX without its zero
constexpr std::uint32_t kBlockSizeMax = 65536;
constexpr std::uint32_t kPortMax = 65535;

Error invalid(std::string message) {
  return client_error(ErrorCode::InvalidArgument, std::move(message));
}

std::string quoted(std::string_view text) { return "'" + std::string(text) + "'"; }

bool is_name(std::string_view text) {
  if (text.empty() || text.size() > kNameBytesMax) return false;
  return std::all_of(text.begin(), text.end(), [](char c) {
    const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    return is_letter || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == ':' || c == '-';
  });
}

// Reads host[:port] of the URL into spec.
bool read_authority(std::string_view authority, WorkerSpec& spec) {
  std::string_view host = authority;
  std::string_view port = "80";
  const bool is_bracketed = authority.starts_with('[');
  const std::size_t bracket = authority.find(']');
  if (is_bracketed && bracket == std::string_view::npos) return false;
  const std::size_t colon = authority.rfind(':');
  if (colon != std::string_view::npos && (!is_bracketed || colon > bracket)) {
    host = authority.substr(0, colon);
    port = authority.substr(colon + 1);
  }
  if (is_bracketed) {
    if (!host.ends_with(']')) return false;
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return false;
  }
  const auto number = whole_number(port);
  if (!is_url_host(host) || !number || *number == 0 || *number > kPortMax) return false;
  spec.host = host;
  spec.port = static_cast<std::uint16_t>(*number);
  return true;
}

Result<Done> read_url(std::string_view url, WorkerSpec& spec) {
  constexpr std::string_view kScheme = "http://";
  std::string_view rest = url;
  if (rest.ends_with('/')) rest.remove_suffix(1);
  if (url.size() > kUrlBytesMax || !rest.starts_with(kScheme) ||
      !read_authority(rest.substr(kScheme.size()), spec)) {
    return invalid("url=" + std::string(url.substr(0, kUrlBytesMax)) +
                   " is not of the form http://HOST:PORT (no path, no https)");
  }
  spec.url = rest;
  return Done{};
}

Result<std::string> read_endpoint(const NamedField& field) {
  std::string_view endpoint = field.value;
  if (field.name == "events" && endpoint.starts_with('@')) endpoint.remove_prefix(1);
  const bool is_tcp = endpoint.starts_with("tcp://") && endpoint.rfind(':') > 5 &&
                      whole_number(endpoint.substr(endpoint.rfind(':') + 1)).has_value();
  const bool is_ipc = endpoint.starts_with("ipc://") && endpoint.size() > 6;
  if (field.value.size() > kUrlBytesMax || (!is_tcp && !is_ipc)) {
    return invalid(field.name + "=" + field.value.substr(0, kUrlBytesMax) +
                   " is not of the form tcp://HOST:PORT or ipc://PATH");
  }
  return field.value;
}

Result<Done> read_copies(const std::string& text, WorkerSpec& spec) {
  if (text != kRefCount && text != kLastCopy) {
    return invalid("copies=" + text.substr(0, kUrlBytesMax) + " must be refcount or last-copy");
  }
  spec.copies = text == kLastCopy ? Copies::LastCopy : Copies::RefCount;
  return Done{};
}

Result<Done> read_family(const std::string& text, WorkerSpec& spec) {
  std::string known;
  for (const EngineFamily family : kEngineFamilies) {
    known.append(known.empty() ? "" : " or ").append(name_of(family));
    if (text != name_of(family)) continue;
    spec.family = family;
    return Done{};
  }
  return invalid("family=" + text.substr(0, kUrlBytesMax) + " must be " + known);
}

// Refuses commas, which would end the field in a flag, and control characters, which log lines must
// not contain.
Result<std::string> read_path(const NamedField& field) {
  const bool is_plain = std::all_of(field.value.begin(), field.value.end(), [](char c) {
    return static_cast<unsigned char>(c) >= ' ' && c != 127 && c != ',';
  });
  if (field.value.empty() || field.value.size() > kPathBytesMax || !is_plain) {
    return invalid(field.name + "= must be the path of a file, without commas, at most " +
                   std::to_string(kPathBytesMax) + " bytes");
  }
  return field.value;
}

Result<Done> read_field(const NamedField& field, WorkerSpec& spec) {
  if (field.name == "url") return read_url(field.value, spec);
  if (field.name == "name") {
    if (!is_name(field.value)) {
      return invalid("name=" + field.value.substr(0, kUrlBytesMax) +
                     " must be 1 to 63 characters of A-Z a-z 0-9 . _ : -");
    }
    spec.name = field.value;
  } else if (field.name == "events") {
    spec.events = SL_TRY(read_endpoint(field));
  } else if (field.name == "replay") {
    spec.replay = SL_TRY(read_endpoint(field));
  } else if (field.name == "dp") {
    const auto number = whole_number(field.value);
    if (!number || *number == 0 || *number > kRanksMax) {
      return invalid("dp=" + field.value + " is not a whole number in 1.." +
                     std::to_string(kRanksMax));
    }
    spec.ranks = *number;
  } else if (field.name == "block_size") {
    const auto number = whole_number(field.value);
    if (!number || *number == 0 || *number > kBlockSizeMax) {
      return invalid("block_size=" + field.value + " is not a whole number in 1..65536");
    }
    spec.block_size = *number;
  } else if (field.name == "copies") {
    return read_copies(field.value, spec);
  } else if (field.name == "family") {
    return read_family(field.value, spec);
  } else if (field.name == "api_key_file") {
    spec.api_key_file = SL_TRY(read_path(field));
  } else {
    if (field.value != "true" && field.value != "false") {
      return invalid(field.name + "=" + field.value + " must be true or false");
    }
    (field.name == "drain" ? spec.drain : spec.agent) = field.value == "true";
  }
  return Done{};
}

// With several ranks, each rank has its own port in both ranges.
Result<Done> check_ranks(const WorkerSpec& spec) {
  if (spec.ranks < 2) return Done{};
  for (const std::string& endpoint : {spec.events, spec.replay}) {
    if (!endpoint.empty()) SL_TRY(endpoint_of_rank(endpoint, spec.ranks - 1));
  }
  for (std::uint32_t rank = 1; rank < spec.ranks && !spec.events.empty(); ++rank) {
    const bool meets =
        SL_TRY(endpoint_of_rank(spec.events, rank)) == spec.replay ||
        (!spec.replay.empty() && SL_TRY(endpoint_of_rank(spec.replay, rank)) == spec.events);
    if (!meets) continue;
    return invalid("the ports of events= and replay= overlap for dp=" + std::to_string(spec.ranks) +
                   ": rank r takes the port r above each");
  }
  return Done{};
}

Error unknown_field(const std::string& name) {
  const std::vector<std::string> known(kFields.begin(), kFields.end());
  std::string list;
  for (const std::string& field : known) list += (list.empty() ? "" : ", ") + field;
  return invalid("unknown worker field " + quoted(name) + suggestion(name, known) +
                 ". A worker has " + list);
}

// 32 bits of FNV-1a over "host:port". Clients see a worker's name, but must not see an engine's
// address. The digest is the same after each start.
std::string name_of_address(const std::string& host, std::uint16_t port) {
  std::uint32_t digest = 2166136261U;
  for (const char c : host + ":" + std::to_string(port)) {
    digest = (digest ^ static_cast<unsigned char>(c)) * 16777619U;
  }
  return "worker-" + to_hex(std::uint64_t{digest}).substr(8);
}

}  // namespace

bool is_url_host(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return c > ' ' && c < 127 && std::string_view("/?#@\"\\<>[]").find(c) == std::string_view::npos;
  });
}

std::span<const std::string_view> worker_fields() { return kFields; }

Result<std::vector<NamedField>> split_worker_fields(std::string_view text) {
  std::vector<NamedField> fields;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const std::string_view part = text.substr(0, comma);
    const std::size_t equals = part.find('=');
    if (equals == std::string_view::npos) {
      return invalid(quoted(part) + " is not FIELD=VALUE. Write name=w0,url=http://HOST:PORT,...");
    }
    fields.push_back({std::string(part.substr(0, equals)), std::string(part.substr(equals + 1))});
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return fields;
}

Result<std::string> endpoint_of_rank(const std::string& endpoint, std::uint32_t offset) {
  if (offset == 0) return endpoint;
  const std::size_t colon = endpoint.rfind(':');
  const auto port = whole_number(std::string_view(endpoint).substr(colon + 1));
  if (endpoint.find("tcp://") == std::string::npos || !port) {
    return invalid(quoted(endpoint) +
                   " is the endpoint of one data-parallel rank: several ranks need "
                   "tcp://HOST:PORT, with a port for each rank");
  }
  if (*port > kPortMax || *port + offset > kPortMax) {
    return invalid(quoted(endpoint) + " leaves no valid port for the rank " +
                   std::to_string(offset) + " ports above: choose a lower port");
  }
  return endpoint.substr(0, colon + 1) + std::to_string(*port + offset);
}

Result<WorkerSpec> worker_from_fields(std::span<const NamedField> fields) {
  WorkerSpec spec;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const std::string& name = fields[i].name;
    if (std::find(kFields.begin(), kFields.end(), name) == kFields.end()) {
      return unknown_field(name);
    }
    const auto before = fields.first(i);
    if (std::any_of(before.begin(), before.end(), [&](const auto& f) { return f.name == name; })) {
      return invalid("worker field " + quoted(name) + " is given twice");
    }
    SL_TRY(read_field(fields[i], spec));
  }
  if (spec.url.empty()) return invalid("a worker needs url=http://HOST:PORT");
  if (spec.agent && (!spec.events.empty() || !spec.replay.empty())) {
    return invalid(
        "with agent=true, only the agent reads the engine's events: give events= and replay= to "
        "the agent");
  }
  if (spec.name.empty()) spec.name = name_of_address(spec.host, spec.port);
  SL_TRY(check_ranks(spec));
  return spec;
}

Result<WorkerSpec> parse_worker(std::string_view text) {
  const std::vector<NamedField> fields = SL_TRY(split_worker_fields(text));
  return worker_from_fields(fields);
}

std::string worker_text(const WorkerSpec& worker) {
  std::string text = "name=" + worker.name + ",url=" + worker.url;
  if (!worker.events.empty()) text += ",events=" + worker.events;
  if (!worker.replay.empty()) text += ",replay=" + worker.replay;
  if (worker.ranks != 0) text += ",dp=" + std::to_string(worker.ranks);
  if (worker.block_size != 0) text += ",block_size=" + std::to_string(worker.block_size);
  if (worker.family != EngineFamily::Vllm) text += ",family=" + std::string(name_of(worker.family));
  if (worker.copies == Copies::LastCopy) text += ",copies=" + std::string(kLastCopy);
  if (worker.drain) text += ",drain=true";
  if (worker.agent) text += ",agent=true";
  if (!worker.api_key_file.empty()) text += ",api_key_file=" + worker.api_key_file;
  return text;
}

}  // namespace sightline::contract
