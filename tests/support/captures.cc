// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "tests/support/captures.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include "common/base/check.h"
#include "common/base/json.h"

#include "tests/support/paths.h"

namespace sightline::test {

namespace {

using json::Value;

std::string text_at(const Value& object, std::string_view name) {
  const auto value = object.find(name);
  return std::string(value ? value->string().value_or("") : "");
}

// By value, so a loop can run over it. The member must exist.
Value member(const Value& object, std::string_view name) {
  const auto value = object.find(name);
  SL_CHECK(value.has_value());
  return *value;
}

double number_at(const Value& object, std::string_view name) {
  const auto value = object.find(name);
  SL_CHECK(value && value->number());
  return *value->number();
}

std::optional<std::int64_t> integer_at(const Value& object, std::string_view name) {
  const auto value = object.find(name);
  return value ? value->integer() : std::nullopt;
}

template <class Visit>
void for_each_line(std::string_view session, std::string_view file, Visit visit) {
  std::istringstream lines(read_capture_file(session, file));
  for (std::string line; std::getline(lines, line);) {
    const auto document = json::Document::parse(line);
    SL_CHECK(document.ok());
    visit(document->root());
  }
}

bool has_file(std::string_view session, std::string_view file) {
  return std::filesystem::exists(std::filesystem::path(in_build("test-data/captures")) / session /
                                 file);
}

CapturedMessage read_message(const Value& line) {
  CapturedMessage message{.scenario = text_at(line, "scenario"),
                          .received_s = number_at(line, "recv_time"),
                          .sequence = static_cast<std::uint64_t>(*integer_at(line, "seq"))};
  for (const auto frame : member(line, "frames_hex")) {
    auto bytes = from_hex(*frame.string());
    SL_CHECK(bytes.has_value());
    message.frames.push_back(std::move(*bytes));
  }
  return message;
}

CapturedExchange read_exchange(const Value& line) {
  CapturedExchange exchange{.n = integer_at(line, "n"),
                            .scenario = text_at(line, "scenario"),
                            .label = text_at(line, "label"),
                            .method = text_at(line, "method"),
                            .path = text_at(line, "path"),
                            .request_body = text_at(line, "request_body"),
                            .status = integer_at(line, "status").value_or(0),
                            .response_body = text_at(line, "response_body"),
                            .started_s = number_at(line, "t_start"),
                            .end_after_s = member(line, "end_after_s").number()};
  for (const auto sequence : member(line, "event_seqs")) {
    exchange.message_sequences.push_back(static_cast<std::uint64_t>(*sequence.integer()));
  }
  return exchange;
}

void read_token_ids(const Value& ids, CapturedPrompt& prompt) {
  for (const auto id : ids) prompt.token_ids.push_back(static_cast<TokenId>(*id.integer()));
}

CapturedPrompt read_prompt(const Value& line) {
  CapturedPrompt prompt{.n = integer_at(line, "n"),
                        .scenario = text_at(line, "scenario"),
                        .label = text_at(line, "label"),
                        .model = text_at(line, "model")};
  if (const auto salt = member(line, "cache_salt").string()) prompt.cache_salt = std::string(*salt);
  read_token_ids(member(line, "prompt_token_ids"), prompt);
  for (const auto item : member(line, "media")) {
    prompt.media.push_back({.identifier = text_at(item, "identifier"),
                            .offset = *integer_at(item, "offset"),
                            .length = *integer_at(item, "length")});
  }
  prompt.cached_tokens = integer_at(line, "cached_tokens");
  prompt.rank = integer_at(line, "rank").value_or(0);
  prompt.has_extra_key = line.find("extra_key").has_value();
  prompt.several_samples = line.find("samples").has_value();
  prompt.input_logprobs = line.find("input_logprobs").has_value();
  return prompt;
}

// The last `data:` line of a stream with a usage object, or the whole body.
std::optional<json::Document> document_with_usage(const std::string& body) {
  if (!body.starts_with("data:")) {
    auto whole = json::Document::parse(body);
    if (!whole.ok()) return std::nullopt;
    return std::move(*whole);
  }
  std::optional<json::Document> found;
  std::istringstream lines(body);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("data: {")) continue;
    auto chunk = json::Document::parse(line.substr(6));
    if (!chunk.ok()) continue;
    const auto usage = chunk->root().find("usage");
    if (usage && usage->is(json::Kind::Object)) found = std::move(*chunk);
  }
  return found;
}

}  // namespace

std::string read_capture_file(std::string_view session, std::string_view file) {
  std::ifstream in(std::filesystem::path(in_build("test-data/captures")) / session / file,
                   std::ios::binary);
  SL_CHECK(in.good());
  std::ostringstream content;
  content << in.rdbuf();
  return std::move(content).str();
}

const CapturedExchange& CapturedSession::exchange(std::int64_t n) const {
  const auto found =
      std::find_if(exchanges.begin(), exchanges.end(),
                   [&](const CapturedExchange& exchange) { return exchange.n == n; });
  SL_CHECK(found != exchanges.end());
  return *found;
}

CapturedSession load_capture(std::string_view name) {
  CapturedSession session{.name = std::string(name)};
  for_each_line(name, "events.jsonl",
                [&](const Value& line) { session.messages.push_back(read_message(line)); });
  for_each_line(name, "exchanges.jsonl",
                [&](const Value& line) { session.exchanges.push_back(read_exchange(line)); });
  if (has_file(name, "events-rank1.jsonl")) {
    for_each_line(name, "events-rank1.jsonl",
                  [&](const Value& line) { session.messages_rank1.push_back(read_message(line)); });
  }
  if (has_file(name, "token_ids.jsonl")) {
    for_each_line(name, "token_ids.jsonl",
                  [&](const Value& line) { session.prompts.push_back(read_prompt(line)); });
  }
  return session;
}

std::vector<CapturedPrompt> prompts_from_renderings(const CapturedSession& session) {
  std::vector<CapturedPrompt> prompts;
  for (const auto& chat : session.exchanges) {
    if (chat.path != "/v1/chat/completions" || chat.status != 200) continue;
    const auto rendering =
        std::find_if(session.exchanges.begin(), session.exchanges.end(), [&](const auto& other) {
          return other.path == "/v1/chat/completions/render" && other.scenario == chat.scenario &&
                 other.label == chat.label + " render";
        });
    if (rendering == session.exchanges.end()) continue;
    const auto document = json::Document::parse(rendering->response_body);
    SL_CHECK(document.ok());
    const auto root = document->root();
    CapturedPrompt prompt{.n = chat.n,
                          .scenario = chat.scenario,
                          .label = chat.label,
                          .model = text_at(root, "model")};
    if (const auto salt = member(root, "cache_salt").string())
      prompt.cache_salt = std::string(*salt);
    read_token_ids(member(root, "token_ids"), prompt);
    const auto features = root.find("features");
    if (features && features->is(json::Kind::Object)) {
      for (const auto hash : member(member(*features, "mm_hashes"), "image")) {
        prompt.media.push_back({.identifier = std::string(*hash.string())});
      }
      auto item = prompt.media.begin();
      for (const auto range : member(member(*features, "mm_placeholders"), "image")) {
        item->offset = *integer_at(range, "offset");
        item->length = *integer_at(range, "length");
        ++item;
      }
    }
    prompts.push_back(std::move(prompt));
  }
  return prompts;
}

std::optional<CapturedUsage> usage_of(const CapturedExchange& exchange, bool leaves_zero_out) {
  const auto document = document_with_usage(exchange.response_body);
  if (!document) return std::nullopt;
  const auto usage = document->root().find("usage");
  const auto details = usage ? usage->find("prompt_tokens_details") : std::nullopt;
  auto cached = details ? integer_at(*details, "cached_tokens") : std::nullopt;
  if (!cached && usage && leaves_zero_out) cached = 0;
  if (!cached) return std::nullopt;
  return CapturedUsage{.prompt_tokens = integer_at(*usage, "prompt_tokens").value_or(0),
                       .cached_tokens = *cached};
}

}  // namespace sightline::test
