// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
//
// Reads what a peer may send to the selection API, or answer for it. A message that was
// read and written must read the same again. A refused message is the peer's fault.
#include <string>

#include "common/base/check.h"

#include "router/front/selection_json/messages.h"
#include "router/front/selection_json/renewal.h"
#include "router/front/selection_json/workers_report.h"
#include "tests/fuzz/target.h"

namespace sightline::fuzz {
namespace {

template <class Read, class Write>
void check_message(const std::string& text, Read read, Write write) {
  const auto first = read(text);
  if (!first.ok()) {
    SL_CHECK(first.error().blame == Blame::Client);
    return;
  }
  const std::string written = write(*first);
  const auto second = read(written);
  SL_CHECK(second.ok());
  SL_CHECK(write(*second) == written);
}

}  // namespace

void run(ByteView input) {
  namespace messages = selection_json;
  const std::string text(text_of(input));
  const auto ask = messages::read_ask(text);
  if (ask.ok() && ask->tokens) {
    SL_CHECK(ask->tokens->tokens.size() <= messages::kTokensMax);
    for (const auto& span : ask->tokens->media) {
      SL_CHECK(span.start + span.length <= std::int64_t(ask->tokens->tokens.size()));
    }
  } else {
    check_message(
        text, [](const std::string& body) { return messages::read_ask(body); },
        messages::write_ask);
  }
  const auto write = [](const selection::Selection& s) {
    return messages::write_selection(s, std::nullopt);
  };
  const auto read = [](std::string body) { return messages::read_selection(std::move(body)); };
  check_message(text, read, write);
  check_message(
      text, [](const std::string& body) { return messages::read_ending(body); },
      messages::write_ending);
  check_message(text, messages::read_explanation, messages::write_explanation);
  check_message(
      text, [](const std::string& body) { return messages::read_renewal(body); },
      messages::write_renewal);
  check_message(
      text, [](const std::string& body) { return messages::read_notes(body); },
      messages::write_notes);
  check_message(text, messages::read_told, messages::write_told);
  SL_CHECK(messages::error_message(text).size() <= messages::kMessageBytesMax);
  if (const auto error = messages::read_error(text))
    SL_CHECK(messages::read_error(messages::write_error(*error)).has_value());
}

}  // namespace sightline::fuzz
