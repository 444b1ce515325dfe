// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "common/base/clock.h"
#include "common/base/result.h"

#include "router/prompt/template/python/python_value.h"

namespace sightline::jinja {

using python::Dict;
using python::Value;

// The largest source of a template, in bytes. The largest template of a public model has 17 KB.
inline constexpr std::size_t kSourceBytesMax = 1U << 20U;
// The most nested blocks of a template, and the most nested brackets of an expression.
inline constexpr std::size_t kNestingMax = 60;
// The most levels in the tree of an expression. It also limits chains, for example a + b + c + …
inline constexpr std::size_t kExpressionDepthMax = 300;
// The most expressions, blocks and macro calls inside one another. A macro call counts kMacroDepth.
// This limits the native stack to about a megabyte. CPython's own limit allows some 150 macro
// calls.
inline constexpr std::size_t kEvaluationDepthMax = 500;
inline constexpr std::size_t kMacroDepth = 3;
// range() with more items is an error, as in the sandbox of Jinja2 3.1.
inline constexpr std::int64_t kRangeItemsMax = 100'000;

// The limits and the environment of one rendering.
struct RenderOptions {
  // The most steps. A step is an evaluated node, a copied list item or 16 copied bytes of text. The
  // steps thus limit the memory of a rendering as well.
  std::uint64_t steps_max = 10'000'000;
  // The most bytes of the rendered text.
  std::size_t output_bytes_max = 64U << 20U;
  // The time that strftime_now prints, in UTC.
  WallTime now{};
};

struct Syntax;

// A parsed chat template. It follows Jinja2 3.1 with the settings of Hugging Face transformers:
// - immutable sandbox,
// - trim_blocks and lstrip_blocks,
// - loop controls and the generation tag,
// - tojson without HTML escapes,
// - raise_exception and strftime_now.
//
// It does not support include, import, extends, block, recursive loops and autoescape. No chat
// template has a loader or a use for them.
//
// Thread safety: immutable. Any number of threads may call render().
class Template {
 public:
  // Parses the source. Errors, blamed on the client: InvalidArgument with "line N: …", TooLarge for
  // the size and the nesting, Unsupported.
  static Result<Template> parse(std::string_view source);

  // Renders the text. The variables are a dict with text keys. Errors, blamed on the client:
  // - InvalidArgument with the exact message of raise_exception, or with "line N: …" and Python's
  //   wording,
  // - TooLarge for the limits of RenderOptions,
  // - Unsupported for filters, tests and methods of Jinja2 or Python that this interpreter lacks.
  [[nodiscard]] Result<std::string> render(const Value& variables,
                                           const RenderOptions& options) const;

  // The syntax tree, for questions about the template itself (content format).
  [[nodiscard]] const Syntax& syntax() const { return *syntax_; }

 private:
  explicit Template(std::shared_ptr<const Syntax> syntax) : syntax_(std::move(syntax)) {}
  std::shared_ptr<const Syntax> syntax_;
};

}  // namespace sightline::jinja
