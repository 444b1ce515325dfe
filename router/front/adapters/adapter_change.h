// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "common/base/result.h"

namespace sightline::adapters {

// The largest body of a request that loads or unloads an adapter, in bytes. It contains two names
// and a few flags.
inline constexpr std::size_t kChangeBytesMax = 64U << 10U;

// Returns whether engines load or unload LoRA adapters at this path. These are
// /v1/load_lora_adapter and /v1/unload_lora_adapter (vLLM 0.32), and the same without /v1 (SGLang
// 0.5.23).
bool changes_adapters(std::string_view path);

// A client's request about an adapter.
struct AdapterChange {
  // True for a load, false for an unload.
  bool is_load = false;
  // The path of the request.
  std::string path;
  // "lora_name".
  std::string name;
  // "lora_path" of a load, or empty.
  std::string source;
  // "load_inplace" (vLLM): a loaded adapter is loaded again.
  bool is_in_place = false;

  // Returns whether a worker needs no change. `loaded_from` is the source of the adapter there, or
  // "" if it is not loaded.
  [[nodiscard]] bool is_done_at(std::string_view loaded_from) const;
};

// A request that restores the earlier state of a worker.
struct UndoRequest {
  std::string path;
  std::string body;  // JSON
};

// Returns this request for a worker. `loaded_from` is the source of the adapter before the change,
// or "" if it was not loaded.
UndoRequest undo_of(const AdapterChange& change, std::string_view loaded_from);

// Reads a request. Errors: InvalidArgument if the body is no JSON object or has no name of an
// adapter, TooLarge above kChangeBytesMax.
Result<AdapterChange> read_change(std::string_view path, const std::string& body);

}  // namespace sightline::adapters
