// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/prompt/chat/tool_arguments.h"

#include <string>
#include <utility>

#include "common/base/json.h"

namespace sightline::chat {
namespace {

using jinja::Dict;
using jinja::Value;

// The most nested containers in the arguments of a tool call.
constexpr std::size_t kDepthMax = 128;
constexpr char kValuesLimit[] = "tool-arguments-values-max";

Error too_many_values() {
  return limit_error(ErrorCode::InvalidArgument, kValuesLimit,
                     "messages: the arguments of all tool calls may contain at most " +
                         std::to_string(kArgumentValuesMax) + " JSON values together (" +
                         kValuesLimit + ", fixed)",
                     "messages");
}

// Returns whether Python's json module may read a text that JSON does not allow. The engine accepts
// these texts.
bool is_python_json(std::string_view text) {
  for (const std::string_view sign : {"NaN", "Infinity", "\\ud", "\\uD"}) {
    if (text.find(sign) != std::string_view::npos) return true;
  }
  return false;
}

}  // namespace

struct ToolArguments::State {
  std::size_t values_left = kArgumentValuesMax;
  // The first error.
  std::optional<Error> error;

  std::optional<json::Document> parse(std::string_view text) {
    // After an error the prompt is not used. Further parsing would be wasted.
    if (error) return std::nullopt;
    // The limit of values holds for all texts together.
    const json::ParseLimits limits{.depth_max = kDepthMax, .values_max = values_left};
    auto parsed = json::Document::parse(std::string(text), limits);
    if (parsed.ok()) {
      values_left -= parsed->value_count();
      return std::move(parsed).value();
    }
    // Any other broken text counts as {}, as in the engine.
    if (parsed.error().limit == json::kValuesLimit) {
      error = too_many_values();
    } else if (parsed.error().code == ErrorCode::TooLarge) {
      error = std::move(parsed).error();
    } else if (is_python_json(text)) {
      error = client_error(
          ErrorCode::Unsupported,
          "tool call arguments with NaN, Infinity or lone surrogates are not supported",
          "messages");
    }
    return std::nullopt;
  }
};

namespace {

class LateArguments : public python::LateDict {
 public:
  LateArguments(std::shared_ptr<ToolArguments::State> state, std::string_view text)
      : state_(std::move(state)), text_(text) {}

  [[nodiscard]] const Value& made() const override {
    if (made_) return *made_;
    // A second read must not parse again, even after an error.
    made_ = Value::dict(Dict());
    auto document = state_->parse(text_);
    if (document && document->root().is(json::Kind::Object)) {
      document_ = std::move(document);
      made_ = Value::from_json(document_->root());
    }
    return *made_;
  }
  [[nodiscard]] std::uint32_t depth_max() const override { return kDepthMax + 1; }

 private:
  const std::shared_ptr<ToolArguments::State> state_;
  const std::string_view text_;
  // `made_` holds views into this document.
  mutable std::optional<json::Document> document_;
  mutable std::optional<Value> made_;
};

}  // namespace

ToolArguments::ToolArguments() : state_(std::make_shared<State>()) {}

Value ToolArguments::dict_of(std::string_view text) const {
  return Value::late_dict(std::make_shared<const LateArguments>(state_, text));
}

const std::optional<Error>& ToolArguments::error() const { return state_->error; }

}  // namespace sightline::chat
