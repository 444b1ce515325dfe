// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
//
// Reads a client's bytes on a connection. The requests must be the same for any split of the bytes.
// No other reader may see two requests where this one sees one.
#include <string>

#include "common/http/codec.h"

#include "tests/fuzz/http_reading.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/target.h"

namespace sightline::fuzz {
namespace {

// Checks that the forwarded head is one request with the same fields, for any request of the
// client.
void check_forwarded(http::RequestDecoder& decoder) {
  http::RequestHead head{decoder.method(), decoder.target(), http::end_to_end(decoder.headers())};
  std::string text;
  http::append_request_head(text, head, "engine:1", 0);
  constexpr http::DecodeLimits kWide{
      .header_bytes_max = 4096, .header_fields_max = 20, .target_bytes_max = 400};
  http::RequestDecoder engine(kWide);
  auto step = engine.step(text);
  SL_CHECK(step.kind == http::Step::Kind::Head && step.consumed == text.size());
  SL_CHECK(engine.method() == head.method && engine.target() == head.target);
  SL_CHECK(engine.headers().find("host") == "engine:1" && !engine.chunked());
  SL_CHECK(engine.content_length().value_or(0) == 0);
  step = engine.step({});
  SL_CHECK(step.kind == http::Step::Kind::End);
}

std::string head_of(http::RequestDecoder& decoder) {
  check_headers(decoder.headers());
  SL_CHECK(decoder.begun() && decoder.target().size() <= kHttpLimits.target_bytes_max);
  SL_CHECK(!decoder.http11() || decoder.headers().find("host").has_value());
  SL_CHECK(!decoder.chunked() || !decoder.content_length());
  check_forwarded(decoder);
  http::Request request;
  request.target = decoder.target();
  SL_CHECK(!request.path().empty() && request.query().size() < request.target.size());
  return decoder.method() + " " + decoder.target() + (decoder.http11() ? " 1.1 " : " 1.0 ") +
         (decoder.keep_alive() ? "keep " : "close ") + line_of(decoder.headers());
}

Transcript read(std::string_view stream, ByteView sizes) {
  http::RequestDecoder decoder(kHttpLimits);
  Arrival arrival(stream, sizes);
  Transcript transcript;
  for (std::size_t i = 0; i < kMessagesMax; ++i) {
    if (!read_message(decoder, arrival, transcript, [&] { return head_of(decoder); })) break;
    decoder.reset();
  }
  return transcript;
}

}  // namespace

void run(ByteView bytes) {
  Input input(bytes);
  const auto sizes = input.take(4);
  // Ends any header. If the header arrives in pieces, an error in its first line may show only
  // here.
  const auto stream = std::string(input.text()) + "\r\n\r\n";
  SL_CHECK(read(stream, {}) == read(stream, sizes));
}

}  // namespace sightline::fuzz
