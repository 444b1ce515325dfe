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

#include "router/prompt/template/python/value.h"

namespace sightline::jinja {

using python::Dict;
using python::Value;

// Limits of a template. A model's template is 17 KB at most among public ones.
inline constexpr std::size_t kSourceBytesMax = 1U << 20U;
// Nested blocks; nested brackets of an expression.
inline constexpr std::size_t kNestingMax = 60;
// Levels of an expression's tree: also bounds chains such as a + b + c + …
inline constexpr std::size_t kExpressionDepthMax = 300;
// Expressions, blocks and (counting kMacroDepth each) macro calls within one another: bounds the
// native stack, to about a megabyte. CPython's own limit allows some 150 macro calls.
inline constexpr std::size_t kEvaluationDepthMax = 500;
inline constexpr std::size_t kMacroDepth = 3;
// range() of more items fails, as in Jinja2's sandbox (3.1).
inline constexpr std::int64_t kRangeItemsMax = 100'000;

struct RenderOptions {
  // Evaluated nodes, copied list items, and one per 16 copied bytes of text: also bounds the memory
  // a rendering can hold.
  std::uint64_t steps_max = 10'000'000;
  std::size_t output_bytes_max = 64U << 20U;
  // What strftime_now prints, in UTC.
  WallTime now{};
};

struct Syntax;

// A parsed chat template: Jinja2 3.1 as Hugging Face transformers set it up (immutable sandbox,
// trim_blocks, lstrip_blocks, loop controls, the generation tag, tojson without HTML escapes,
// raise_exception, strftime_now). Not supported, since no chat template has a loader or a use for
// it: include, import, extends, block, recursive loops, autoescape.
// Thread safety: immutable; render() may run on any number of threads.
class Template {
 public:
  // Errors: InvalidArgument with "line N: …"; TooLarge for source size and nesting.
  static Result<Template> parse(std::string_view source);

  // The text for the variables (a dict with text keys). Errors are the client's fault:
  // InvalidArgument with raise_exception's own message verbatim, or "line N: …" with Python's
  // wording; TooLarge for RenderOptions' limits; Unsupported for a filter, test or method that
  // Jinja2 or Python have and this interpreter has not.
  [[nodiscard]] Result<std::string> render(const Value& variables,
                                           const RenderOptions& options) const;

  // The syntax tree, for questions about the template itself (content format).
  [[nodiscard]] const Syntax& syntax() const { return *syntax_; }

 private:
  explicit Template(std::shared_ptr<const Syntax> syntax) : syntax_(std::move(syntax)) {}
  std::shared_ptr<const Syntax> syntax_;
};

}  // namespace sightline::jinja
