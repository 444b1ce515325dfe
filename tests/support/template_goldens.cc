// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "tests/support/template_goldens.h"

#include <chrono>
#include <fstream>
#include <sstream>

#include "common/base/check.h"

#include "router/prompt/chat/content_format.h"
#include "router/prompt/chat/template_call.h"

namespace sightline::test {
namespace {

using jinja::Value;

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  SL_CHECK(file.good());
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

json::Document parse(std::string text) {
  auto document = json::Document::parse(std::move(text));
  SL_CHECK(document.ok());
  return std::move(document).value();
}

std::vector<json::Document> read_lines(const std::filesystem::path& path) {
  std::ifstream file(path);
  SL_CHECK(file.good());
  std::vector<json::Document> rows;
  for (std::string line; std::getline(file, line);) rows.push_back(parse(line));
  return rows;
}

// 2026-11-21 12:34:56 UTC, the moment when the tables were made.
WallTime frozen_time() {
  using namespace std::chrono_literals;
  return WallTime(std::chrono::sys_days(std::chrono::year(2026) / 11 / 21)) + 12h + 34min + 56s;
}

Value member(const json::Value& object, std::string_view name) {
  const auto found = object.find(name);
  return found ? Value::from_json(*found) : Value::none();
}

bool flag(const json::Value& object, std::string_view name) {
  const auto found = object.find(name);
  return found && found->boolean().value_or(false);
}

void add_members(const json::Value& object, std::vector<jinja::Dict::Entry>& entries) {
  for (const json::Value value : object) {
    entries.emplace_back(Value::text_view(value.name()), Value::from_json(value));
  }
}

chat::TemplateCall call_of(const json::Value& conversation, const json::Value& family) {
  chat::TemplateCall call;
  call.messages = member(conversation, "messages");
  call.tools = member(conversation, "tools");
  call.documents = member(conversation, "documents");
  call.add_generation_prompt = flag(conversation, "agp");
  call.continue_final_message = flag(conversation, "cont");
  add_members(*family.find("special_tokens"), call.variables);
  if (const auto kwargs = conversation.find("kwargs")) add_members(*kwargs, call.variables);
  return call;
}

TemplateGoldens::Outcome compare(const json::Value& row, const Result<std::string>& rendered) {
  TemplateGoldens::Outcome outcome;
  outcome.id = *row.find("id")->string();
  outcome.got = rendered.ok() ? *rendered : "error: " + rendered.error().message;
  if (const auto out = row.find("out")) {
    outcome.expected = *out->string();
    outcome.passes = rendered.ok() && outcome.got == outcome.expected;
    return outcome;
  }
  const json::Value error = *row.find("error");
  outcome.expected = "error: " + std::string(*error.find("msg")->string());
  const bool is_raised = error.find("kind")->string() == "raise";
  outcome.passes = !rendered.ok() && (!is_raised || outcome.got == outcome.expected);
  return outcome;
}

}  // namespace

TemplateGoldens::TemplateGoldens(const std::filesystem::path& conversations,
                                 std::filesystem::path folder)
    : folder_(std::move(folder)), families_(parse(read_file(folder_ / "families.json"))) {
  for (json::Document& row : read_lines(conversations)) {
    const std::string id(*row.root().find("id")->string());
    conversations_.emplace(id, std::move(row));
  }
}

std::vector<std::string> TemplateGoldens::families() const {
  std::vector<std::string> names;
  for (const json::Value family : families_.root()) names.emplace_back(family.name());
  return names;
}

std::string TemplateGoldens::source(const std::string& family) const {
  return read_file(folder_ / (family + ".jinja"));
}

std::vector<TemplateGoldens::Outcome> TemplateGoldens::run(const std::string& family) const {
  const json::Value facts = *families_.root().find(family);
  const std::string text = source(family);
  const auto parsed = jinja::Template::parse(text);
  if (!parsed.ok()) return {{"parse", "a template", "error: " + parsed.error().message, false}};
  std::vector<Outcome> outcomes;
  Outcome format{"content format", std::string(*facts.find("vllm_content_format")->string()),
                 std::string(chat::name_of(chat::detect_content_format(*parsed))), false};
  format.passes = format.got == format.expected;
  outcomes.push_back(std::move(format));
  jinja::RenderOptions options;
  options.now = frozen_time();
  for (const json::Document& row : read_lines(folder_ / (family + ".jsonl"))) {
    const auto conversation = conversations_.find(std::string(*row.root().find("id")->string()));
    SL_CHECK(conversation != conversations_.end());
    const auto call = call_of(conversation->second.root(), facts);
    outcomes.push_back(compare(row.root(), chat::call_template(*parsed, text, call, options)));
  }
  return outcomes;
}

}  // namespace sightline::test
