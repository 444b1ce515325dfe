// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
//
// Renders any template over any variables. The limits must hold.
#include <memory>
#include <string>

#include "common/base/check.h"
#include "common/base/json.h"

#include "router/prompt/chat/content_format.h"
#include "router/prompt/template/jinja/template.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/target.h"

namespace sightline::fuzz {
namespace {

constexpr std::uint64_t kStepsMax = 5'000;
constexpr std::size_t kOutputBytesMax = std::size_t{1} << 16U;

}  // namespace

void run(ByteView bytes) {
  Input input(bytes);
  // Parses a copy and frees it: rendering must not need the source.
  auto source = std::make_unique<std::string>(input.section());
  const auto parsed = jinja::Template::parse(*source);
  source.reset();
  if (!parsed.ok()) {
    SL_CHECK(!parsed.error().message.empty());
    return;
  }
  (void)chat::detect_content_format(*parsed);
  const auto document = json::Document::parse(std::string(input.section()));
  const bool has_variables = document.ok() && document->root().is(json::Kind::Object);
  const auto variables =
      has_variables ? jinja::Value::from_json(document->root()) : jinja::Value::dict(jinja::Dict());
  const auto text = parsed->render(
      variables, {.steps_max = kStepsMax, .output_bytes_max = kOutputBytesMax, .now = {}});
  if (text.ok()) {
    SL_CHECK(text->size() <= kOutputBytesMax);
  } else {
    SL_CHECK(text.error().blame == Blame::Client);
  }
}

}  // namespace sightline::fuzz
