// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "common/base/result.h"

namespace sightline::adapters {

// Longest body of a request that loads or unloads an adapter, in bytes: two names and a few flags.
inline constexpr std::size_t kChangeBytesMax = 64U << 10U;

// True for the paths at which engines load and unload LoRA adapters: /v1/load_lora_adapter and
// /v1/unload_lora_adapter (vLLM 0.32), the same without /v1 (SGLang 0.5.23).
bool changes_adapters(std::string_view path);

// What a client asks of an adapter.
struct AdapterChange {
  bool is_load = false;      // else it is unloaded
  std::string path;          // of the request
  std::string name;          // "lora_name"
  std::string source;        // "lora_path" of a load; empty: not given
  bool is_in_place = false;  // "load_inplace" (vLLM): loaded again where it is loaded already

  // True where a worker that has loaded the adapter from there, "" if it has not, is left as it is.
  [[nodiscard]] bool is_done_at(std::string_view loaded_from) const;
};

// A request that brings a worker back to where it was.
struct UndoRequest {
  std::string path;
  std::string body;  // JSON
};

// Of a worker that had loaded the adapter from there before the change, "": it had not.
UndoRequest undo_of(const AdapterChange& change, std::string_view loaded_from);

// Errors: InvalidArgument for what is no JSON object or names no adapter, TooLarge.
Result<AdapterChange> read_change(std::string_view path, const std::string& body);

}  // namespace sightline::adapters
