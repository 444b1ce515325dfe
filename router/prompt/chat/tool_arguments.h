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

// The most JSON values in all tool call arguments of a request together. A request's body has the
// same limit. While the prompt is rendered, each value takes some 200 bytes. The limit has the name
// tool-arguments-values-max and is fixed.
inline constexpr std::size_t kArgumentValuesMax = 500'000;

// The tool call arguments of one request, which arrive as JSON texts. A text is parsed when the
// template first reads its dict. Arguments that no template reads cost nothing.
//
// Thread safety: only one thread at a time may use it and its values.
class ToolArguments {
 public:
  ToolArguments();

  // Returns the text as a dict, or {} for a text that holds no object. The dict is a view of the
  // text, which must live longer.
  [[nodiscard]] jinja::Value dict_of(std::string_view text) const;

  // The first error of the texts that were read, if any:
  // - InvalidArgument with the name of the limit, for too many values,
  // - TooLarge, for too many nested containers,
  // - Unsupported, for arguments that Python's json module reads and JSON does not allow.
  [[nodiscard]] const std::optional<Error>& error() const;

  struct State;

 private:
  std::shared_ptr<State> state_;
};

}  // namespace sightline::chat
