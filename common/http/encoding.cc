// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include <array>
#include <charconv>

#include "common/http/codec.h"

namespace sightline::http {
namespace {

// Fields that the encoder itself writes. A second copy could contradict the real framing.
bool is_framing(std::string_view name) {
  return equal_names(name, "content-length") || equal_names(name, "transfer-encoding") ||
         equal_names(name, "connection");
}

void append_field(std::string& out, std::string_view name, std::string_view value) {
  out.append(name).append(": ").append(value).append("\r\n");
}

void append_number_field(std::string& out, std::string_view name, std::uint64_t value) {
  append_field(out, name, std::to_string(value));
}

}  // namespace

void append_response_head(std::string& out, const ResponseHead& head) {
  out.append("HTTP/1.1 ").append(std::to_string(head.status)).append(" ");
  out.append(reason_of(head.status)).append("\r\n");
  if (head.headers != nullptr) {
    for (const auto field : *head.headers) {
      if (!is_framing(field.name)) append_field(out, field.name, field.value);
    }
  }
  if (head.framing.kind == Framing::Kind::Length) {
    append_number_field(out, "content-length", head.framing.bytes);
  } else if (head.framing.kind == Framing::Kind::Chunked) {
    append_field(out, "transfer-encoding", "chunked");
  }
  if (!head.keep_alive) {
    append_field(out, "connection", "close");
    // HTTP/1.0 closes by default, so keeping the connection open must be announced.
  } else if (!head.http11) {
    append_field(out, "connection", "keep-alive");
  }
  out.append("\r\n");
}

void append_request_head(std::string& out, const RequestHead& head, std::string_view host,
                         std::uint64_t body_bytes) {
  out.append(head.method).append(" ").append(head.target).append(" HTTP/1.1\r\n");
  append_field(out, "host", host);
  for (const auto field : head.headers) {
    if (!is_framing(field.name) && !equal_names(field.name, "host")) {
      append_field(out, field.name, field.value);
    }
  }
  // RFC 9110 section 8.6: a request whose method expects a body announces a length of 0.
  const bool expects_body = head.method == "POST" || head.method == "PUT" || head.method == "PATCH";
  if (body_bytes > 0 || expects_body) append_number_field(out, "content-length", body_bytes);
  out.append("\r\n");
}

void append_chunk_head(std::string& out, std::size_t bytes) {
  std::array<char, 16> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), bytes, 16).ptr;
  out.append(digits.data(), end).append("\r\n");
}

}  // namespace sightline::http
