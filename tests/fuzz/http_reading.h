// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/bytes.h"
#include "common/base/check.h"
#include "common/http/codec.h"

namespace sightline::fuzz {

// Small limits, which inputs of a few hundred bytes can reach.
inline constexpr http::DecodeLimits kHttpLimits{
    .header_bytes_max = 1024, .header_fields_max = 12, .target_bytes_max = 200};
inline constexpr std::size_t kMessagesMax = 16;

// The result of a byte stream: one line for each event, with joined bodies.
using Transcript = std::vector<std::string>;

inline std::string line_of(const http::Headers& headers) {
  std::string line;
  for (const auto field : headers) line.append(field.name).append(": ").append(field.value) += '|';
  return line;
}

// Checks what every decoded header must have: clean names and values, one length, few fields.
inline void check_headers(const http::Headers& headers) {
  std::size_t lengths = 0;
  std::size_t codings = 0;
  for (const auto field : headers) {
    SL_CHECK(!field.name.empty() && field.name.find_first_of(" \t:") == field.name.npos);
    for (const auto text : {field.name, field.value}) {
      SL_CHECK(text.find_first_of(std::string_view("\r\n\0", 3)) == text.npos);
    }
    lengths += http::equal_names(field.name, "content-length") ? 1 : 0;
    codings += http::equal_names(field.name, "transfer-encoding") ? 1 : 0;
  }
  SL_CHECK(lengths + codings <= 1);
  SL_CHECK(headers.size() <= kHttpLimits.header_fields_max);
}

// A stream that arrives in pieces. The sizes repeat. Without sizes it arrives in one piece.
// presented() is the content of a connection's buffer: bytes that arrived and are not consumed.
class Arrival {
 public:
  Arrival(std::string_view stream, ByteView sizes) : stream_(stream), sizes_(sizes) {}

  [[nodiscard]] std::string_view presented() const { return stream_.substr(begin_, end_ - begin_); }
  void consume(std::size_t size) {
    SL_CHECK(size <= end_ - begin_);
    begin_ += size;
  }
  // Lets the next piece arrive. Returns false if all pieces have arrived.
  bool more() {
    if (end_ == stream_.size()) return false;
    const std::size_t size = sizes_.empty() ? stream_.size() : 1 + sizes_[turn_++ % sizes_.size()];
    end_ = std::min(stream_.size(), end_ + size);
    return true;
  }

 private:
  std::string_view stream_;
  ByteView sizes_;
  std::size_t turn_ = 0;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

// Decodes one message. Returns false if the message does not end. Calls on_head after Head.
template <class Decoder, class OnHead>
bool read_message(Decoder& decoder, Arrival& arrival, Transcript& transcript, OnHead on_head) {
  std::string body;
  for (;;) {
    // A copy of its own size lets a sanitizer detect a read behind its end.
    const Bytes input(bytes_of(arrival.presented()).begin(), bytes_of(arrival.presented()).end());
    const auto step = decoder.step(text_of(input));
    SL_CHECK(step.consumed <= input.size());
    body += step.body;
    arrival.consume(step.consumed);
    switch (step.kind) {
      case http::Step::Kind::Body:
        SL_CHECK(!step.body.empty());
        continue;
      case http::Step::Kind::Head:
        transcript.push_back(on_head());
        continue;
      case http::Step::Kind::NeedMore:
        if (arrival.more()) continue;
        transcript.push_back("unfinished " + body);
        return false;
      case http::Step::Kind::End:
        transcript.push_back("body " + body);
        return true;
      case http::Step::Kind::Refused:
        SL_CHECK(decoder.refusal().status >= 400 && !decoder.refusal().message.empty());
        transcript.push_back("body " + body);
        transcript.push_back("refused");
        return false;
    }
  }
}

}  // namespace sightline::fuzz
