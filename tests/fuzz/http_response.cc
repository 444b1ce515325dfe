// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
//
// Reads an engine's bytes on a connection. The responses must be the same for any split of the
// bytes.
#include <string>

#include "common/http/codec.h"

#include "tests/fuzz/http_reading.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/target.h"

namespace sightline::fuzz {
namespace {

// Checks that the forwarded head is one response with the same fields.
void check_forwarded(const http::ResponseDecoder& decoder) {
  const auto headers = http::end_to_end(decoder.headers());
  std::string text;
  http::append_response_head(text, {.status = decoder.status(),
                                    .headers = &headers,
                                    .framing = {.kind = http::Framing::Kind::Length, .bytes = 0}});
  http::ResponseDecoder client({.header_bytes_max = 4096, .header_fields_max = 20});
  auto step = client.step(text);
  SL_CHECK(step.kind == http::Step::Kind::Head && step.consumed == text.size());
  SL_CHECK(client.status() == decoder.status());
}

std::string head_of(const http::ResponseDecoder& decoder) {
  check_headers(decoder.headers());
  if (decoder.status() >= 200) check_forwarded(decoder);
  return std::to_string(decoder.status()) + (decoder.keep_alive() ? " keep " : " close ") +
         line_of(decoder.headers());
}

Transcript read(std::string_view stream, ByteView sizes, bool answers_head) {
  http::ResponseDecoder decoder(kHttpLimits);
  decoder.reset(answers_head);
  Arrival arrival(stream, sizes);
  Transcript transcript;
  for (std::size_t i = 0; i < kMessagesMax; ++i) {
    if (!read_message(decoder, arrival, transcript, [&] { return head_of(decoder); })) break;
    decoder.reset(answers_head);
  }
  const auto last = decoder.end_of_input();
  transcript.push_back(last.kind == http::Step::Kind::End ? "end" : "broken off");
  return transcript;
}

}  // namespace

void run(ByteView bytes) {
  Input input(bytes);
  const bool answers_head = (input.byte() & 1U) != 0;
  const auto sizes = input.take(4);
  // Ends any header. If the header arrives in pieces, an error in its first line may show only
  // here.
  const auto stream = std::string(input.text()) + "\r\n\r\n";
  SL_CHECK(read(stream, {}, answers_head) == read(stream, sizes, answers_head));
}

}  // namespace sightline::fuzz
