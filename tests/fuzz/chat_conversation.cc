// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
//
// Renders the published templates over any conversation.
#include <array>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "common/base/check.h"

#include "router/openai/request.h"
#include "router/prompt/chat/chat_template.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/target.h"
#include "tests/support/paths.h"

namespace sightline::fuzz {
namespace {

// A kept input selects a family by its place, so new families go to the end.
constexpr std::array kFamilies = {"qwen2_vl",  "qwen3_vl",   "deepseek_v3", "deepseek_vl2",
                                  "gemma4",    "glm4moe",    "gptoss",      "idefics3",
                                  "internvl3", "minicpmv45", "phi3_5",      "llava_onevision",
                                  "qwen2_5",   "qwen3",      "mistral_nemo"};

std::vector<chat::ChatTemplate> read_templates() {
  std::vector<chat::ChatTemplate> templates;
  for (const std::string family : kFamilies) {
    std::ifstream file(test::in_sources("tests/data/templates/") + family + ".jinja");
    SL_CHECK(file.good());
    const std::string source{std::istreambuf_iterator<char>(file), {}};
    auto chat_template = chat::ChatTemplate::create(
        source, {{"bos_token", "<s>"}, {"eos_token", "</s>"}, {"pad_token", std::nullopt}},
        {.image = "<image>", .video = "<video>", .audio = ""});
    SL_CHECK(chat_template.ok());
    templates.push_back(std::move(chat_template).value());
  }
  return templates;
}

}  // namespace

void run(ByteView bytes) {
  static const auto templates = read_templates();
  Input input(bytes);
  const auto& chat_template = templates[input.byte() % templates.size()];
  const auto request = openai::parse_request(openai::Endpoint::Chat, std::string(input.text()), {});
  if (!request.ok()) return;
  const openai::ChatBody& chat = *request->chat();
  const auto prompt = chat_template.render({.messages = chat.messages,
                                            .tools = chat.tools,
                                            .documents = chat.documents,
                                            .template_kwargs = chat.template_kwargs,
                                            .reasoning_effort = request->reasoning_effort,
                                            .add_generation_prompt = chat.add_generation_prompt,
                                            .continue_final_message = chat.continue_final_message},
                                           WallTime{});
  if (!prompt.ok()) {
    SL_CHECK(prompt.error().blame == Blame::Client);
    return;
  }
  SL_CHECK(is_utf8(prompt->text));
  for (std::size_t i = 1; i < prompt->media.size(); ++i) {
    const auto& before = prompt->media[i - 1];
    const auto& slot = prompt->media[i];
    SL_CHECK(before.message < slot.message ||
             (before.message == slot.message && before.part < slot.part));
  }
}

}  // namespace sightline::fuzz
