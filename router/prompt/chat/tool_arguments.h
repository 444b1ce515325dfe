// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>

#include "common/base/result.h"

#include "router/prompt/template/jinja/template.h"

namespace sightline::chat {

// JSON values in all tool call arguments of a request together, as many as in its body. Each is
// held in some 200 bytes while the prompt is rendered.
inline constexpr std::size_t kArgumentValuesMax = 500'000;

// The tool call arguments of one request, which come as texts of JSON. One is parsed when the
// template first looks at it; what no template looks at costs nothing.
// Thread safety: one thread at a time, its values included.
class ToolArguments {
 public:
  ToolArguments();

  // The text as a dict: {} for anything that is no object. It views the text, which must outlive
  // it.
  [[nodiscard]] jinja::Value dict_of(std::string_view text) const;

  // Why a dict that was looked at is not what the text says: the limits (InvalidArgument with the
  // name of the limit for the values, TooLarge for depth), or Unsupported for arguments that
  // Python's json module reads and JSON does not allow.
  [[nodiscard]] const std::optional<Error>& error() const;

  struct State;

 private:
  std::shared_ptr<State> state_;
};

}  // namespace sightline::chat
