// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/error.h"
#include "common/http/message.h"

namespace sightline::http {

// Encodes and decodes messages of HTTP/1.1 (RFC 9112). No I/O.

// Limits on the header of a message. A message above one is refused.
struct DecodeLimits {
  // Start line and fields, with their line ends.
  std::size_t header_bytes_max = 65536;
  std::size_t header_fields_max = 100;
  // Of requests only.
  std::size_t target_bytes_max = 8192;
};

// The result of one decoding step.
struct Step {
  enum class Kind {
    // The rest of the input is incomplete: call again with more bytes behind it.
    NeedMore,
    // The header is complete.
    Head,
    // `body` is the next piece of the decoded body.
    Body,
    // The message is complete. Input after it belongs to the next message.
    End,
    // The input is not HTTP, is ambiguous, or exceeds a limit. refusal() gives the reason.
    Refused,
  };
  Kind kind = Kind::NeedMore;
  // How many bytes of the input were decoded.
  std::size_t consumed = 0;
  // A part of the input. Empty except for Body.
  std::string_view body;
};

// The reason why a message was refused. For a request, `status` is the answer's status.
struct Malformed {
  int status = 400;
  ErrorCode code = ErrorCode::InvalidArgument;
  std::string message;
  // The limit that was exceeded, as in Error.
  std::string limit;
};

// Decodes requests, one after the other. It refuses messages that two readers could understand
// differently, because a proxy and a server that disagree allow request smuggling. Refused are:
// - a repeated or malformed Content-Length, or Content-Length with Transfer-Encoding
// - another transfer coding than a single "chunked", and malformed chunks
// - a missing or repeated Host
//
// The caller may read a body of known length itself, without the decoder. reset() then begins the
// next request.
// Thread safety: one thread at a time, also for ResponseDecoder.
class RequestDecoder {
 public:
  explicit RequestDecoder(const DecodeLimits& limits);
  ~RequestDecoder();

  // Begins the next request.
  void reset();
  // Decodes up to the next Step. `input` begins where the previous step's `consumed` ended.
  Step step(std::string_view input);

  // True after the first byte of a request. Empty lines before it do not count.
  [[nodiscard]] bool begun() const;

  // The header's data, valid after Head. The caller may move method, target and headers away.
  [[nodiscard]] std::string& method();
  [[nodiscard]] std::string& target();
  [[nodiscard]] Headers& headers();
  // False: HTTP/1.0.
  [[nodiscard]] bool http11() const;
  [[nodiscard]] bool keep_alive() const;
  [[nodiscard]] bool chunked() const;
  [[nodiscard]] std::optional<std::uint64_t> content_length() const;

  // Valid after Refused.
  [[nodiscard]] const Malformed& refusal() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Decodes responses. Equally strict about framing.
class ResponseDecoder {
 public:
  explicit ResponseDecoder(const DecodeLimits& limits);
  ~ResponseDecoder();

  // Begins the next response. A response to a HEAD request has no body, even if its header
  // announces one.
  void reset(bool answers_head = false);
  // Decodes up to the next Step, as RequestDecoder does.
  Step step(std::string_view input);
  // For the end of the connection. Returns End, or Refused if the message is
  // incomplete or was refused before.
  Step end_of_input();

  // Valid after Head.
  [[nodiscard]] int status() const;
  [[nodiscard]] const Headers& headers() const;
  [[nodiscard]] bool keep_alive() const;

  // Valid after Refused.
  [[nodiscard]] const Malformed& refusal() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// How the body of a message ends.
struct Framing {
  enum class Kind { None, Length, Chunked, UntilClose };
  Kind kind = Kind::None;
  // Only for Length.
  std::uint64_t bytes = 0;
};

// What append_response_head() writes.
struct ResponseHead {
  int status = 200;
  // May be null. Its framing fields are left out.
  const Headers* headers = nullptr;
  Framing framing;
  // The version of the request.
  bool http11 = true;
  bool keep_alive = true;
};

// Appends a response's header with the fields that `framing` and keep_alive need.
void append_response_head(std::string& out, const ResponseHead& head);

// Appends a request's header with this Host value. Leaves out the framing and host fields of
// head.headers. POST, PUT and PATCH always get a Content-Length.
void append_request_head(std::string& out, const RequestHead& head, std::string_view host,
                         std::uint64_t body_bytes);

// Appends the line that begins a chunk. kChunkEnd ends the chunk, kLastChunk the body.
void append_chunk_head(std::string& out, std::size_t bytes);
inline constexpr std::string_view kChunkEnd = "\r\n";
inline constexpr std::string_view kLastChunk = "0\r\n\r\n";
inline constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

}  // namespace sightline::http
